"""The state of a controller: all it remembers, as a value that can be written down and read back to the bit."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from thinwire.control.gains import Curve
from thinwire.control.guard import Guard
from thinwire.control.machine import Machine
from thinwire.control.menu import FAMILIES, Choice
from thinwire.control.network import Sense
from thinwire.control.notes import KNOTS
from thinwire.control.track import Tracker
from thinwire.errors import StateError


@dataclass(frozen=True, kw_only=True)
class State:
    """What a controller knows. The same on every rank.

    Args:
        choice: The candidate in force.
        step: Steps whose notes were read.
        apart: In the step to come, all messages go in calls that can be timed.
        silent: Steps in a row in which nothing was timed, since all went along with roll calls.
        sense: The wire.
        machine: The slowest rank's kernels.
        slowness: How many times longer they take than calibrated.
        compute: Seconds of forward, backward and optimizer.
        window: Seconds that exchanges can hide behind.
        overlap: The part of these in which they do.
        exposed: Seconds that exchanges take beyond the backward pass, in the silent steps of the plan in force.
        curve: Gains.
        guard: Phases of the training.
        wanted: A candidate that looks better, if any.
        patience: Steps in a row that one has looked better.
        hold: Steps until the next switch is allowed that no change of the network calls for.
        rest: How long the last hold was.
        factors: Logarithms of how many times longer each way over the wire takes than it should.
        trial: What was found of the way in force, as long as that is being found out.
        predicted: Seconds of exchanges and of a step that were predicted for the choice in force.
    """

    choice: Choice
    step: int = 0
    apart: bool = False
    silent: int = 0
    sense: Sense = field(default_factory=Sense)
    machine: Machine = field(default_factory=Machine)
    slowness: Tracker = field(default_factory=Tracker)
    compute: Tracker = field(default_factory=Tracker)
    window: Tracker = field(default_factory=Tracker)
    overlap: Tracker = field(default_factory=Tracker)
    exposed: Tracker = field(default_factory=Tracker)
    curve: Curve = field(default_factory=Curve)
    guard: Guard = field(default_factory=Guard)
    wanted: Choice | None = None
    patience: int = 0
    hold: int = 0
    rest: int = 0
    factors: tuple[tuple[str, float], ...] = ()
    trial: tuple[float, ...] = ()
    predicted: tuple[float, float] = (0.0, 0.0)

    @property
    def text(self) -> str:
        """Everything in one canonical line. Numbers are written so that they are read back to the bit."""
        return json.dumps(_plain(self), sort_keys=True, separators=(",", ":"))

    @property
    def fingerprint(self) -> bytes:
        """Eight bytes that differ for states that differ in anything."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).digest()

    @staticmethod
    def read(text: str) -> "State":
        """The inverse of `text`, trusting nothing.

        Raises:
            StateError: It is no state.
        """
        try:
            return _built(json.loads(text))
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise StateError(
                f"the saved controller is damaged: {type(error).__name__}: {error}. Nothing was loaded."
            ) from error


_TRACKERS = ("slowness", "compute", "window", "overlap", "exposed")


def _plain(state: State) -> dict[str, Any]:
    return {
        "choice": [state.choice.family, state.choice.place],
        "step": state.step,
        "apart": state.apart,
        "silent": state.silent,
        "latency": state.sense.latency.logs,
        "per_byte": state.sense.per_byte.logs,
        "machine": astuple(state.machine),
        **{name: getattr(state, name).logs for name in _TRACKERS},
        "shares": state.curve.shares,
        "looks": state.curve.looks,
        "energies": state.guard.energies,
        "losses": state.guard.losses,
        "odd": state.guard.odd,
        "critical": state.guard.critical,
        "stale": state.guard.stale,
        "wanted": None if state.wanted is None else [state.wanted.family, state.wanted.place],
        "patience": state.patience,
        "hold": state.hold,
        "rest": state.rest,
        "factors": state.factors,
        "trial": state.trial,
        "predicted": state.predicted,
    }


def _built(data: Mapping[str, Any]) -> State:
    shares = _numbers(data["shares"])
    if len(shares) != len(KNOTS):
        raise ValueError(f"{len(shares)} gains instead of {len(KNOTS)}")
    plain, stage, write, read, group = _numbers(data["machine"])
    exchange, whole = _numbers(data["predicted"])
    guard = replace(
        Guard(),
        energies=_numbers(data["energies"]),
        losses=_numbers(data["losses"]),
        odd=_whole(data["odd"]),
        critical=_whole(data["critical"]),
        stale=bool(data["stale"]),
    )
    return State(
        choice=_choice(data["choice"]),
        step=_whole(data["step"]),
        apart=bool(data["apart"]),
        silent=_whole(data["silent"]),
        sense=Sense(latency=_tracker(data["latency"]), per_byte=_tracker(data["per_byte"])),
        machine=Machine(plain=plain, stage=stage, write=write, read=read, group=group),
        slowness=_tracker(data["slowness"]),
        compute=_tracker(data["compute"]),
        window=_tracker(data["window"]),
        overlap=_tracker(data["overlap"]),
        exposed=_tracker(data["exposed"]),
        curve=Curve(shares=shares, looks=_whole(data["looks"])),
        guard=guard,
        wanted=None if data["wanted"] is None else _choice(data["wanted"]),
        patience=_whole(data["patience"]),
        hold=_whole(data["hold"]),
        rest=_whole(data["rest"]),
        factors=tuple((str(way), _number(log)) for way, log in data["factors"]),
        trial=_numbers(data["trial"]),
        predicted=(exchange, whole),
    )


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise TypeError(f"{value!r} instead of a whole number")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float) or not -1e300 < float(value) < 1e300:  # type: ignore[arg-type]
        raise TypeError(f"{value!r} instead of a number")
    return float(value)  # type: ignore[arg-type]


def _numbers(values: object) -> tuple[float, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} instead of a list of numbers")
    return tuple(_number(value) for value in values)


def _tracker(values: object) -> Tracker:
    return Tracker(logs=_numbers(values))


def _choice(value: object) -> Choice:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r} instead of a candidate")
    family, place = value
    if family not in FAMILIES or not 0 <= _whole(place) < len(FAMILIES[family].densities):
        raise ValueError(f"there is no candidate {value!r}")
    return Choice(family, place)
