"""Timing contestants in turns."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import torch

from thinwire.bench.kernels.record import Role, Times
from thinwire.bench.machine import last_level_cache

_CACHES = 4
_FEWEST = 3
_WAKE = 2


class Slots:
    """The arguments of one sample's calls, each call with its own, and how they were before.

    Attributes:
        arguments: Of every call.
        small: Of the same function, but small: calls with them wake up its code, and leave the data where they are.
    """

    def __init__(
        self, arguments: Sequence[tuple[Any, ...]], changes: tuple[int, ...] = (), *, small: tuple[Any, ...]
    ) -> None:
        """Keep a copy of what is going to be changed."""
        self.arguments = list(arguments)
        self.small = small
        self._changes = changes
        self._before = [tuple(call[position].clone() for position in changes) for call in self.arguments]

    def restore(self) -> None:
        """Undo what the calls changed."""
        for call, before in zip(self.arguments, self._before, strict=True):
            for position, tensor in zip(self._changes, before, strict=True):
                call[position].copy_(tensor)

    def before(self, number: int) -> tuple[Any, ...]:
        """The arguments of a call as they were made; not to be changed."""
        call = list(self.arguments[number])
        for position, tensor in zip(self._changes, self._before[number], strict=True):
            call[position] = tensor
        return tuple(call)


@dataclass(kw_only=True)
class Contestant:
    """Somebody whose calls are timed.

    Attributes:
        name: For the tables.
        role: What it stands for.
        threads: How many torch may use meanwhile.
        call: What is timed.
        slots: What it is called with.
        count_wrong: The wrong elements of a call's result, from the number of the call; None for no check.
        moved: The bytes that a call moves, where that is known.
    """

    name: str
    role: Role
    threads: int
    call: Callable[..., Any]
    slots: Slots
    count_wrong: Callable[[int, Any], int] | None = None
    moved: int = 0
    wrong: int = 0
    error: str = ""
    every: int = 1
    samples: list[float] = field(default_factory=list)

    def times(self) -> Times:
        """The record of it."""
        return Times(
            name=self.name,
            role=self.role,
            threads=self.threads,
            nanoseconds=self.samples,
            moved=self.moved,
            wrong=self.wrong,
            error=self.error,
        )


class Broom:
    """A buffer of several times the last-level cache, to sweep it with."""

    def __init__(self, size: int | None = None) -> None:
        """Touch it; ``size`` in bytes if not by the cache."""
        self._buffer = torch.ones(max(1, (_CACHES * last_level_cache() if size is None else size) // 4))

    def sweep(self) -> None:
        """Fill the caches with clean lines that nobody wants."""
        torch.set_num_threads(1)
        self._buffer.sum()

    @property
    def nbytes(self) -> int:
        """How much is read."""
        return self._buffer.numel() * 4


class Clock(StrEnum):
    """What is counted: the time that passes, or the time that the calling thread has a processor."""

    WALL = "wall"
    CPU = "cpu"

    @property
    def now(self) -> Callable[[], int]:
        """The function that tells it, in nanoseconds."""
        return time.perf_counter_ns if self is Clock.WALL else time.thread_time_ns


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: Turns of every contestant.
        seconds: Of one contestant at the most: who is slow takes part in fewer rounds, evenly spread, three at least.
        clock: What is counted.
    """

    rounds: int
    seconds: float
    clock: Clock = Clock.WALL


def race(contestants: Sequence[Contestant], broom: Broom, effort: Effort) -> None:
    """Let everybody warm up, then take turns; the times and the wrong elements are kept by the contestants.

    Args:
        contestants: Those to be timed.
        broom: What sweeps the caches between two turns.
        effort: How long.
    """
    asked = torch.get_num_threads()
    try:
        for one in contestants:
            _warm_up(one, effort)
        for number in range(effort.rounds):
            # Nobody always comes behind the same one.
            first = number % len(contestants)
            for one in (*contestants[first:], *contestants[:first]):
                if not one.error and number % one.every == 0:
                    broom.sweep()
                    _take_turn(one, effort.clock.now, last=number + one.every >= effort.rounds)
    finally:
        torch.set_num_threads(asked)


def _warm_up(one: Contestant, effort: Effort) -> None:
    """Check the result of every slot; find out how many rounds there is time for."""
    torch.set_num_threads(one.threads)
    spent = 0
    for number, arguments in enumerate(one.slots.arguments):
        began = time.perf_counter_ns()
        try:
            result = one.call(*arguments)
        except Exception as error:  # one broken kernel must not end a long sweep
            one.error = f"{type(error).__name__}: {error}"
            break
        spent += time.perf_counter_ns() - began
        if one.count_wrong is not None:
            one.wrong += one.count_wrong(number, result)
    one.slots.restore()
    turns = max(_FEWEST, int(effort.seconds * 1e9 / max(1, spent)))
    one.every = max(1, -(-effort.rounds // turns))


def _take_turn(one: Contestant, now: Callable[[], int], *, last: bool) -> None:
    call, calls = one.call, one.slots.arguments
    torch.set_num_threads(one.threads)
    result: Any = None
    # The sweep has driven the code out of the caches too, and torch's dispatch alone takes 0.1 ms to come back.
    for _ in range(_WAKE):
        call(*one.slots.small)
    began = now()
    for arguments in calls:
        result = call(*arguments)
    ended = now()
    one.samples.append(round((ended - began) / len(calls), 1))
    if last and one.count_wrong is not None:
        one.wrong += one.count_wrong(len(calls) - 1, result)
    one.slots.restore()
