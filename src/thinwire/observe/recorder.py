"""From a synchroniser's statistics to events: what one step added to the totals.

    record = Recorder(sync, Jsonl("run/events.jsonl"))
    for ...:
        ...
        optimizer.step()
        record.step(loss=loss.item(), samples=len(batch))

Use it on rank 0. It asks the synchroniser only for what it has counted anyway; now and then it looks at the debts too.
"""

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from thinwire.observe.records import FIRST_EXPONENT, Examined, Owing, Planned, Predicted, Stepped, Wired
from thinwire.observe.sinks import Sink
from thinwire.observe.stats import Stats

_BARS = 60  # of the histogram


class Watched(Protocol):
    """What a recorder asks; `thinwire.SyncState` answers."""

    def stats(self) -> Stats:
        """What was counted."""

    def state_dict(self) -> dict[str, Any]:
        """With the debts under ``owed``."""


class Recorder:
    """Writes the events of one method's run.

    Args:
        sync: Whose statistics; None where there is nothing but time and loss.
        sink: Where events go.
        method: The method's name.
        seed: Of the run.
        look_every: Steps between two looks at the debts; 0 for none.
    """

    def __init__(
        self, sync: Watched | None, sink: Sink, *, method: str = "run", seed: int = 0, look_every: int = 25
    ) -> None:
        self._sync = sync
        self._sink = sink
        self._who: dict[str, Any] = {"method": method, "seed": seed}
        self._look_every = look_every
        self._before = sync.stats() if sync is not None else None
        self._began = time.perf_counter()
        self._plan = ""
        self.steps = 0
        self.elapsed = 0.0
        self.bytes_total: int | None = 0 if sync is not None else None

    def step(self, *, loss: float, samples: int = 0, seconds: float | None = None, sent: int | None = None) -> None:
        """A step is done, its optimizer's step included.

        Args:
            loss: Of this rank's batch.
            samples: In this rank's batch.
            seconds: That it took; None for the time since the last call.
            sent: Bytes that this rank sent, where there is no synchroniser to ask.
        """
        now = time.perf_counter()
        seconds = now - self._began if seconds is None else seconds
        self._began = now
        self.elapsed += seconds
        figures = self._figures() if self._sync is not None else {"bytes_sent": sent}
        if figures["bytes_sent"] is not None:
            self.bytes_total = (self.bytes_total or 0) + figures["bytes_sent"]
        self._sink.write(
            Stepped(
                **self._who,
                step=self.steps,
                seconds=seconds,
                elapsed=self.elapsed,
                time=round(time.time(), 3),
                loss=loss if math.isfinite(loss) else None,
                samples=samples,
                bytes_total=self.bytes_total,
                **figures,
            )
        )
        self.steps += 1
        if self._look_every and self._sync is not None and self.steps % self._look_every == 0:
            self._look(self._sync.state_dict()["owed"])

    def _figures(self) -> dict[str, Any]:
        """What this step added to the totals."""
        assert self._sync is not None
        now, before = self._sync.stats(), self._before
        assert before is not None
        self._before = now
        if now.plan != self._plan:
            self.planned(now.plan)
        numel = sum(group.numel for group in now.groups)
        return {
            "bytes_sent": now.total.bytes_sent - before.total.bytes_sent,
            "stages": {
                stage: round(seconds - before.total.seconds.get(stage, 0.0), 7)
                for stage, seconds in now.total.seconds.items()
            },
            "density": sum(group.sent for group in now.groups) / numel if numel else None,
            "gain": sum(group.gain for group in now.groups) / len(now.groups) if now.groups else None,
        }

    def planned(self, plan: str, *, short: str = "", why: str = "") -> None:
        """Another plan is in force. Plans that the synchroniser shows are found by themselves.

        Args:
            plan: The plan.
            short: In a word or two.
            why: What made somebody choose it.
        """
        self._plan = plan
        event = Planned(**self._who, step=self.steps, elapsed=self.elapsed, plan=plan, short=short, why=why)
        self._sink.write(event)

    def decided(self, decision: Mapping[str, Any]) -> None:
        """A controller has decided: what it takes the wire for, what it had predicted, and perhaps another plan.

        Args:
            decision: As `thinwire.observe.events` tells it.
        """
        wire = decision.get("wire")
        if wire:
            sensed = {"bandwidth": 8.0 / wire["per_byte"] if wire["per_byte"] else None, "latency": wire["latency"] / 2}
            self._sink.write(Wired(**self._who, step=self.steps, time=round(time.time(), 3), source="sensed", **sensed))
        if decision.get("predicted") and decision.get("measured"):
            seconds = {name: decision[name] for name in ("predicted", "measured")}
            self._sink.write(Predicted(**self._who, step=self.steps, **seconds))
        if decision.get("switched"):
            self.planned(decision["plan"], short=decision.get("choice") or "", why=decision.get("reason") or "")

    def examined(self, quality: float) -> None:
        """The model was examined.

        Args:
            quality: Lower is better.
        """
        self._sink.write(
            Examined(
                **self._who,
                step=self.steps,
                elapsed=self.elapsed,
                bytes_total=self.bytes_total,
                quality=quality if math.isfinite(quality) else None,
            )
        )
        self._began = time.perf_counter()

    def _look(self, owed: Mapping[str, Tensor]) -> None:
        debts = {name: debt.detach().flatten() for name, debt in owed.items() if debt.numel()}
        norm = math.sqrt(sum(float(debt.double().square().sum()) for debt in debts.values()))
        self._sink.write(
            Owing(
                **self._who,
                step=self.steps - 1,
                norm=norm,
                layers={name: int(debt.count_nonzero()) / debt.numel() for name, debt in debts.items()},
                histogram=_histogram(debts.values()) if debts else (),
            )
        )
        self._began = time.perf_counter()

    def state_dict(self) -> dict[str, Any]:
        """What is needed to go on counting where this left off."""
        return {"steps": self.steps, "elapsed": self.elapsed, "bytes_total": self.bytes_total}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting.

        Args:
            state: What `state_dict` returned.
        """
        self.steps, self.elapsed, self.bytes_total = state["steps"], state["elapsed"], state["bytes_total"]


def _histogram(debts: Iterable[Tensor]) -> tuple[int, ...]:
    """How many magnitudes lie between two powers of two; zeros are not counted."""
    bars = torch.zeros(_BARS, dtype=torch.int64)
    for debt in debts:
        magnitudes = debt[debt != 0].abs().float()
        exponents = torch.frexp(magnitudes).exponent.long() - 1 - FIRST_EXPONENT
        bars += torch.bincount(exponents.clamp(0, _BARS - 1).cpu(), minlength=_BARS)
    return tuple(bars.tolist())
