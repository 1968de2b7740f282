"""One method's model, optimizer, synchroniser and figures, on one rank."""

import hashlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import thinwire
from thinwire import optimizers
from thinwire.control.controller import Controller
from thinwire.errors import PlanError, StateError
from thinwire.observe import events
from thinwire.observe.recorder import Recorder
from thinwire.observe.sinks import Sink
from thinwire.tasks.methods import Method
from thinwire.tasks.task import Task

_LOOK_EVERY = 25


@dataclass(frozen=True, kw_only=True)
class Finish:
    """How one method ended for one seed, as one rank saw it.

    Attributes:
        method: Its name.
        seed: Of the run.
        steps: Done.
        seconds: That they took on this rank.
        bytes_sent: By this rank; None where nobody counts.
        quality: On held-out data.
        checksum: Of the bits of the final weights.
        agree: All ranks ended with these bits.
    """

    method: str
    seed: int
    steps: int
    seconds: float
    bytes_sent: int | None
    quality: float
    checksum: str
    agree: bool = True


class Runner:
    """Trains a task by one method.

    Args:
        task: What to train.
        method: How to synchronise.
        seed: Of the weights and the batches.
        sink: Where this rank's events go.
        counts: Whether this process's network interface carries its own bytes only, so that they can be counted there.
    """

    def __init__(self, task: Task, method: Method, *, seed: int, sink: Sink, counts: bool = False) -> None:
        self.method = method
        self.rate = method.rate or task.rate
        self._task = task
        self._seed = seed
        torch.manual_seed(seed)
        self.model = task.model(rows=method.rows)
        self.ddp = method.wrap(self.model)
        self.optimizer = task.optimizer(self.model, self.rate)
        self.sync = None
        self._what = method.words
        if method.plan is not None:
            plan = optimizers.arrange(self.optimizer, method.plan) if method.arrange else method.plan
            self.sync = thinwire.attach(self.ddp, plan)
            self._what = str(plan)
        self._steered = isinstance(method.plan, Controller)
        self._counts = counts and self.sync is None
        look = _LOOK_EVERY if method.rows else 0
        self.record = Recorder(self.sync, sink, method=method.name, seed=seed, look_every=look)

    @property
    def words(self) -> str:
        """What the method does, and with which optimizer."""
        what = self._what
        moment = optimizers.first_moment(self.optimizer)
        memory = f"with a first moment of {moment:g}" if moment else "without a first moment"
        return f"{what}; {type(self.optimizer).__name__} {memory}"

    def step(self, step: int, rank: int, steps: int) -> None:
        """Train on the batch of a step.

        Args:
            step: From 0.
            rank: Whose batch.
            steps: Of the whole run, for the learning rate.

        Raises:
            PlanError: The training has left the numbers.
        """
        batch = self._task.batch((self._seed, step, rank))
        for group in self.optimizer.param_groups:
            group["lr"] = self._task.rate_at(step, steps, self.rate)
        sent = _bytes_of_interfaces() if self._counts else 0
        began = time.perf_counter()
        self.optimizer.zero_grad()
        loss = self.ddp(*batch)
        deaf = events.listen(self.record.decided) if self._steered else None
        loss.backward()
        if deaf is not None:
            deaf()
        self.optimizer.step()
        seconds = time.perf_counter() - began
        if not math.isfinite(shown := self._task.shown(loss.item())):
            raise PlanError(
                f"the loss of {self.method.name} is {shown} in step {step}; try a smaller learning rate, for example "
                f"{_with_rate(self.method, self.rate / 2)}"
            )
        counted = _bytes_of_interfaces() - sent if self._counts else None
        self.record.step(loss=shown, samples=self._task.samples, seconds=seconds, sent=counted)

    def examine(self) -> float:
        """The quality of the model now, on every rank alike; an event tells of it."""
        with torch.no_grad():
            quality = self._task.examine(self.model)
        self.record.examined(quality)
        return quality

    def finish(self) -> Finish:
        """Examine for the last time, and let go."""
        finish = Finish(
            method=self.method.name,
            seed=self._seed,
            steps=self.record.steps,
            seconds=self.record.elapsed,
            bytes_sent=self.record.bytes_total,
            quality=self.examine(),
            checksum=self._checksum(),
        )
        if self.sync is not None:
            self.sync.flush()  # Nobody steps any more, but a debt is never dropped silently.
            self.sync.detach()
        return finish

    def _checksum(self) -> str:
        bits = hashlib.sha256()
        for parameter in self.model.parameters():
            bits.update(parameter.detach().cpu().numpy().tobytes())
        return bits.hexdigest()

    def state_dict(self) -> dict[str, Any]:
        """Everything that is needed to go on bitwise."""
        return {
            "method": self.method.name,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "sync": self.sync.state_dict() if self.sync is not None else None,
            "record": self.record.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken.

        Args:
            state: Of a runner of the same method.

        Raises:
            StateError: It is another method's.
        """
        if state["method"] != self.method.name:
            raise StateError(f"the checkpoint is of the method {state['method']}, this is {self.method.name}")
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.sync is not None:
            self.sync.load_state_dict(state["sync"])
        self.record.load_state_dict(state["record"])


def _with_rate(method: Method, rate: float) -> str:
    name = method.name.removesuffix(")")
    return f"{name}{', ' if '(' in name else '('}rate={rate:g})"


def _bytes_of_interfaces() -> int:
    """Bytes that left this host, headers of all layers included; loopback does not count."""
    lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    columns = {name.strip(): rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    return sum(int(fields[8]) for name, fields in columns.items() if name != "lo")
