"""The pilot of one model: measures on this rank, tells it in the vote, and holds the plan that all ranks come to.

The only part of control that has a clock. It measures nothing that is not done anyway: the wire's calls, the stages of
each group, the time between two steps. A pilot without a controller holds a plan and measures nothing.
"""

import hashlib
import math
import time
from collections.abc import Sequence

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.control.controller import Controller
from thinwire.control.decision import Decision
from thinwire.control.gains import look
from thinwire.control.machine import calibrated
from thinwire.control.mind import State
from thinwire.control.notes import SIZE, UNKNOWN, Note, together
from thinwire.debt import Debt
from thinwire.errors import DisagreementError, StateError
from thinwire.observe import events
from thinwire.observe.stats import Stats
from thinwire.pace import Pace
from thinwire.plans import Plan
from thinwire.units import flatten

LOOK = 32
"""Every so many steps the gradient's gains are looked at, and in the first three."""
_GLANCE = 1 << 13


class Pilot:
    """Holds the plan of the next step.

    Args:
        wanted: A plan, which stays; or a controller, which chooses.
    """

    def __init__(self, wanted: Plan | Controller) -> None:
        """Begin with what is wanted."""
        self.controller = wanted if isinstance(wanted, Controller) else None
        self.plan = wanted if isinstance(wanted, Plan) else wanted.plan(wanted.begin())
        self.loss = UNKNOWN
        self._state: State | None = None if self.controller is None else self.controller.begin()
        self._next: tuple[State, Decision] | None = None
        self._decision: Decision | None = None
        self._times: dict[str, float] = {}
        self._last = (UNKNOWN, UNKNOWN, UNKNOWN)
        self._round_trip = 0.0
        self._voting = False
        self.begin()

    def begin(self) -> None:
        """A step begins, and nothing was measured of it. What was decided for it and never came to count is dropped."""
        self._next = None
        self._sizes: list[int] = []
        self._fresh = self._owed = 0.0
        self._rest: list[tuple[float, tuple[float, ...]]] = []
        self._talk = 0.0
        self._wire = [0.0, 0.0, 0.0]

    # What is measured ------------------------------------------------------------------------------------------

    def listen(self, pace: Pace) -> None:
        """Hear how long every call of a wire takes."""
        pace.listener = None if self.controller is None else self._heard

    def _heard(self, bytes_sent: int, rounds: int, seconds: float, patient: bool) -> None:
        if patient:
            self._talk += seconds
            if self._voting:  # other notes are sent ahead, and may have come long before they are heard
                self._round_trip, self._voting = seconds, False
        else:
            self._wire = [self._wire[0] + bytes_sent, self._wire[1] + rounds, self._wire[2] + seconds]

    def bucket(self) -> None:
        """A bucket is ready."""
        now = time.perf_counter()
        self._times.setdefault("first", now)
        self._times["last"] = now

    def backward_ended(self) -> None:
        """Backward is over; from here on, exchanges are waited for."""
        self._times["backward"] = time.perf_counter()

    def step_ended(self) -> None:
        """All exchanges are over."""
        now, before = time.perf_counter(), self._times
        backward = before.get("backward", math.nan)
        compute = backward - before.get("end", math.nan)
        window = before.get("last", math.nan) - before.get("first", math.nan)
        self._last = (compute, window, now - backward)
        self._times = {"end": now}

    def look(self, gradient: Tensor, debt: Debt | None) -> None:
        """Look at one group before anything is taken out of it."""
        if self._state is None:
            return
        self._sizes.append(gradient.numel())
        flat = flatten(gradient)
        stride = max(1, flat.numel() // _GLANCE)
        self._fresh += stride * kernels.energy(_wide(flat[::stride].contiguous()))
        if self._state.step < 3 or self._state.step % LOOK == 0:
            owed = _wide(flat) if debt is None else debt.total
            energy = kernels.energy(owed)
            self._owed += energy
            self._rest.append((energy, look(owed, self._state.step)))

    # What is told, and heard -----------------------------------------------------------------------------------

    def note(self, stats: Stats) -> bytes:
        """What this rank has to say at the end of a step.

        Args:
            stats: Its groups are those of the step.
        """
        if self._state is None or self.controller is None:
            return Note().pack()
        machine, (compute, window, exposed) = calibrated(), self._last
        stages = sum(sum(seen.seconds.values()) for seen in stats.groups)
        bytes_sent, rounds, seconds = self._wire
        note = Note(
            mind=hashlib.blake2b((self.controller.text + self._state.text).encode(), digest_size=8).digest(),
            round_trip=self._round_trip or UNKNOWN, exchange=seconds or UNKNOWN, rounds=rounds, bytes_sent=bytes_sent,
            kernels=stages - seconds - self._talk, plain=machine.plain, stage=machine.stage, write=machine.write,
            read=machine.read, group=machine.group, compute=compute, window=window, exposed=exposed,
            fresh=self._fresh or UNKNOWN, owed=self._owed or UNKNOWN, loss=self.loss, gains=self._gains(),
        )  # fmt: skip
        # The round of this vote is told in the next: it is the one that ranks come to most nearly together.
        self.loss, self._round_trip, self._voting = UNKNOWN, 0.0, True
        return note.pack()

    def _gains(self) -> tuple[float, ...]:
        """The gains of all groups together: each counts as its energy."""
        looked = [(energy, gains) for energy, gains in self._rest if gains and energy > 0.0]
        total = math.fsum(energy for energy, _ in looked)
        if not looked or not math.isfinite(total):
            return ()
        columns = zip(*(gains for _, gains in looked), strict=True)
        weights = [energy / total for energy, _ in looked]
        return tuple(math.fsum(w * g for w, g in zip(weights, column, strict=True)) for column in columns)

    def hear(self, asides: Sequence[bytes]) -> None:
        """Decide, from what all ranks said. Nothing is changed before `turn`.

        Raises:
            DisagreementError: The ranks are of different minds; the same error on every rank.
        """
        notes = [Note.unpack(aside[:SIZE]) for aside in asides]
        minds = [note.mind for note in notes]
        usual = max(minds, key=lambda mind: (minds.count(mind), -minds.index(mind)))
        if odd := tuple(rank for rank, mind in enumerate(minds) if mind != usual):
            raise DisagreementError(
                f"the ranks do not agree: the controller of rank {', '.join(map(str, odd))} has other options, or has "
                f"seen other steps. Nothing was changed. Call attach, switch, rejoin and load_state_dict with the same "
                f"arguments on every rank.",
                ranks=odd,
                fields=("controller",),
            )
        if self.controller is not None and self._state is not None:
            self._next = self.controller.decide(self._state, together(notes), tuple(self._sizes))

    # What follows ----------------------------------------------------------------------------------------------

    def turn(self) -> None:
        """The step counts: what was decided in its vote comes into force."""
        if self._next is None or self.controller is None:
            return
        before, (self._state, self._decision) = self._state, self._next
        self._next = None
        if before is None or (before.choice, before.apart) != (self._state.choice, self._state.apart):
            self.plan = self.controller.plan(self._state)
        if events.heard():
            events.emit({**self._decision.record(), "plan": str(self.plan)})

    def explain(self) -> str:
        """Why this plan, what was second, what the wire is like."""
        if self.controller is None:
            return f"{self.plan}: given, not chosen. To let thinwire choose, call switch(thinwire.recipes.adaptive())."
        if self._decision is None:
            return f"{self.plan}: the start of {self.controller.policy}; nothing was measured yet."
        return self._decision.explanation

    # State -----------------------------------------------------------------------------------------------------

    def save(self) -> tuple[str, str]:
        """The controller and its state as text; empty without one."""
        if self.controller is None or self._state is None:
            return "", ""
        return self.controller.text, self._state.text

    @staticmethod
    def load(plan: Plan, controller: str, state: str) -> "Pilot":
        """The inverse of `save`.

        Raises:
            StateError: It is damaged.
        """
        if not controller:
            return Pilot(plan)
        try:
            pilot = Pilot(Controller.read(controller))
        except ValueError as error:
            raise StateError(f"the saved controller is damaged: {error}. Nothing was loaded.") from error
        assert pilot.controller is not None
        pilot._state = State.read(state)
        if pilot._state.choice.family not in pilot.controller.families:
            raise StateError("the saved controller is damaged: its choice is none of its own. Nothing was loaded.")
        pilot.plan = pilot.controller.plan(pilot._state)
        return pilot

    def reset(self) -> "Pilot":
        """A pilot that wants the same and knows nothing: after a failure, ranks may have heard different things."""
        return Pilot(self.plan if self.controller is None else self.controller)


def _wide(values: Tensor) -> Tensor:
    """As kernels take it: float32 at least."""
    return values if values.dtype == torch.float64 else values.float()
