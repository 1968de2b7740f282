"""Counting what happens to every group of parameters: bytes, seconds, density, gain."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from thinwire.types import Observation


class Stopwatch:
    """Seconds of each stage of one exchange."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Count the time inside the ``with`` towards a stage."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += time.perf_counter() - began


@dataclass(frozen=True, kw_only=True)
class Total:
    """Sums over all groups and steps, for this rank."""

    exchanges: int = 0
    """Groups synchronised."""
    bytes_sent: int = 0
    """Bytes this rank put on the wire, headers, padding, roll calls and votes included."""
    rounds: int = 0
    """Rounds that wait for each other."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage."""
    density: float = 1.0
    """Elements sent over elements synchronised."""
    gain: float = 1.0
    """Energy sent over energy owed, each group counted alike."""


@dataclass(frozen=True, kw_only=True)
class Stats:
    """What a synchroniser has done so far."""

    plan: str
    """The plan in force."""
    steps: int
    """Steps carried out."""
    overflows: int
    """Steps in which some rank had a gradient that was not finite, or the mean was not."""
    failures: int
    """Steps given up with an error."""
    total: Total
    """Everything so far."""
    groups: tuple[Observation, ...]
    """The last step, group by group: the buckets as DDP has them."""


class Counter:
    """Adds observations up."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.overflows = 0
        self.failures = 0
        self._groups: list[Observation] = []
        self._exchanges = self._bytes = self._rounds = self._sent = self._numel = 0
        self._gain = 0.0
        self._seconds: dict[str, float] = defaultdict(float)

    def ended(self, *, failed: bool, overflow: bool) -> None:
        """Count the end of a step."""
        self.failures += failed
        self.overflows += overflow and not failed

    def add(self, seen: Observation) -> None:
        """Count one exchange of one group."""
        if self._groups and self._groups[0].step != seen.step:
            self._groups.clear()
        self._groups.append(seen)
        self._exchanges += 1
        self._numel += seen.numel
        self._sent += seen.sent
        self._gain += seen.gain
        self.add_traffic(seen.bytes_sent, seen.rounds)
        for stage, seconds in seen.seconds.items():
            self._seconds[stage] += seconds

    def add_traffic(self, bytes_sent: int, rounds: int) -> None:
        """Count traffic that belongs to no group: votes, flushes."""
        self._bytes += bytes_sent
        self._rounds += rounds

    def stats(self, plan: str, steps: int) -> Stats:
        """Everything counted so far."""
        total = Total(
            exchanges=self._exchanges,
            bytes_sent=self._bytes,
            rounds=self._rounds,
            seconds=dict(self._seconds),
            density=self._sent / self._numel if self._numel else 1.0,
            gain=self._gain / self._exchanges if self._exchanges else 1.0,
        )
        return Stats(
            plan=plan,
            steps=steps,
            overflows=self.overflows,
            failures=self.failures,
            total=total,
            groups=tuple(self._groups),
        )
