"""What a run found, as records and as JSON."""

import statistics
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from thinwire.bench import files

SCHEMA = "thinwire bench kernels 1"


class Role(StrEnum):
    """What a contestant stands for."""

    KERNEL = "kernel"
    TORCH = "torch"
    YARDSTICK = "yardstick"


class Yardstick(StrEnum):
    """What the others are measured against."""

    COPY = "copy"
    READ = "read"
    ADD = "add"


@dataclass(frozen=True, kw_only=True)
class Times:
    """How long one contestant took.

    Attributes:
        name: The implementation, ``torch``, or the yardstick.
        role: What it stands for.
        threads: How many it might use.
        nanoseconds: For one call, one number from every round it took part in.
        moved: For yardsticks, the bytes that one call moves.
        wrong: Elements of its results that are wrong.
        error: What it raised instead of returning a result.
    """

    name: str
    role: Role
    threads: int
    nanoseconds: list[float] = field(default_factory=list)
    moved: int = 0
    wrong: int = 0
    error: str = ""

    @property
    def best(self) -> float:
        """The shortest time, in nanoseconds."""
        return min(self.nanoseconds)

    @property
    def median(self) -> float:
        """The time in the middle."""
        return statistics.median(self.nanoseconds)

    @property
    def spread(self) -> float | None:
        """The range of the middle half of the times; None for a single one."""
        if len(self.nanoseconds) < 2:
            return None
        low, _, high = statistics.quantiles(self.nanoseconds, n=4, method="inclusive")
        return high - low


@dataclass(frozen=True, kw_only=True)
class Heat:
    """One case at one size and density: all its contestants, interleaved.

    Attributes:
        case: Its name.
        family: Where it belongs.
        size: Elements of the gradient.
        density: The part of them that is selected; None where it does not matter.
        moves: The bytes that the kernel must move.
        in_place: Whether it changes its arguments.
        times: Of every contestant.
        remark: What a reader must know about the comparison.
    """

    case: str
    family: str
    size: int
    density: float | None
    moves: int
    in_place: bool
    times: list[Times]
    remark: str = ""

    def yardstick(self, which: Yardstick, threads: int) -> Times | None:
        """A yardstick of this heat.

        Args:
            which: Of the yardsticks.
            threads: With so many threads.

        Returns:
            Its times; None if it was not measured.
        """
        own = (one for one in self.times if one.role is Role.YARDSTICK and one.name == which)
        return next((one for one in own if one.threads == threads and one.nanoseconds), None)

    def floor(self, threads: int) -> float | None:
        """The nanoseconds that moving the case's bytes takes at the speed of the copy beside it.

        What works in place may be faster than that, as a copy must fetch the lines that it overwrites; it is held
        against the speed of an addition in place instead.

        Args:
            threads: Of the yardstick.

        Returns:
            None if it was not measured.
        """
        pace = self.yardstick(Yardstick.ADD if self.in_place else Yardstick.COPY, threads)
        return self.moves * pace.best / pace.moved if pace else None

    def torch(self, threads: int) -> Times | None:
        """The torch expression's times.

        Args:
            threads: With so many threads.

        Returns:
            None if it was not measured.
        """
        own = (one for one in self.times if one.role is Role.TORCH and one.nanoseconds)
        return next((one for one in own if one.threads == threads), None)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A whole sweep.

    Attributes:
        facts: About the machine, and about how it was measured.
        asked: The sweep, as it was asked for.
        heats: What was measured.
        skipped: What was not, and why.
        load_before: Processes that wanted to run, over the last 1, 5 and 15 minutes.
        load_after: The same at the end.
    """

    facts: dict[str, Any]
    asked: dict[str, Any]
    heats: list[Heat]
    skipped: list[str]
    load_before: list[float]
    load_after: list[float]

    @property
    def failures(self) -> list[str]:
        """Contestants with a wrong result or none, in words."""
        found = []
        for heat in self.heats:
            for one in heat.times:
                what = one.error or (f"{one.wrong} elements wrong" if one.wrong else "")
                if what:
                    where = f"{heat.case} of {heat.size} elements by {one.name}, {one.threads} threads"
                    found.append(f"{where}: {what}")
        return found

    def write(self, path: Path) -> None:
        """Write the run as JSON.

        Args:
            path: Where to.

        Raises:
            BenchError: It cannot be written there.
        """
        files.write(path, files.to_json(SCHEMA, asdict(self), "heats"))

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Read what `write` wrote.

        Args:
            path: Where from.

        Returns:
            The same run.

        Raises:
            BenchError: There is no such file, or it is something else.
        """
        return files.read(path, SCHEMA, _run, "thinwire bench kernels --json FILE")


def _run(content: dict[str, Any]) -> Run:
    heats = [Heat(**{**heat, "times": _times(heat["times"])}) for heat in content.pop("heats")]
    return Run(heats=heats, **content)


def _times(items: list[dict[str, Any]]) -> list[Times]:
    return [Times(**{**item, "role": Role(item["role"])}) for item in items]
