"""What a run found, as records, as JSON and as CSV."""

import csv
import io
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from thinwire.bench import files

SCHEMA = "thinwire bench exchange 1"
_ITEM = 4
_EQUAL = 5e-4
"""Gains that differ by less are equal: three places are shown."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One contestant in one cell.

    Attributes:
        name: Of the contestant.
        peer: It is somebody else's.
        density: The part of the elements that it sends, where it has one.
        seconds: Of every exchange, until the last rank had its mean.
        bytes_sent: By the busiest rank in one exchange, as its sockets count; None where they do not.
        stages: Seconds of ``compress``, ``exchange`` and ``decode`` on the slowest rank, in the median.
        gain: Energy of the true mean that arrives.
        wrong: Elements that break what the method promises.
        loss: What was learnt with it, in bits per byte, where something was trained.
        missing: Why it was not measured; empty if it was.
        note: What a reader must know.
    """

    name: str
    peer: bool = False
    density: float | None = None
    seconds: list[float] = field(default_factory=list)
    bytes_sent: int | None = None
    stages: dict[str, float] = field(default_factory=dict)
    gain: float | None = None
    wrong: int = 0
    loss: float | None = None
    missing: str = ""
    note: str = ""

    @property
    def label(self) -> str:
        """The name with the density."""
        return self.name if self.density is None else f"{self.name} {100 * self.density:g} %"

    @property
    def median(self) -> float:
        """The time in the middle."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float | None:
        """The range of the middle half of the times; None for a single one."""
        if len(self.seconds) < 2:
            return None
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return high - low


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One message on one network: all contestants, in turns.

    Attributes:
        net: Its name.
        rate: Bits per second that each rank can send; 0 where that is not known.
        world: How many ranks.
        size: Elements of the message, as asked for.
        task: What was trained; empty where recorded gradients were exchanged.
        numel: Elements of the message.
        rows: Of all contestants.
    """

    net: str
    rate: float
    world: int
    size: int
    numel: int
    rows: list[Row]
    task: str = ""

    @property
    def measured(self) -> list[Row]:
        """Those with a time."""
        return [row for row in self.rows if row.seconds]

    @property
    def dense(self) -> Row | None:
        """What all ratios are to: plain DDP's all-reduce if it was measured, else thinwire's."""
        named = {row.name: row for row in self.measured}
        return named.get("ddp") or named.get("dense")

    def floor(self, row: Row) -> float | None:
        """The seconds that its bytes take on the link; None where either is not known.

        Args:
            row: Of this cell.
        """
        return row.bytes_sent * 8 / self.rate if self.rate and row.bytes_sent is not None else None

    @property
    def ring(self) -> float:
        """The bytes that a dense all-reduce sends from each rank."""
        return 2 * (self.world - 1) / self.world * self.numel * _ITEM

    def rival(self, peer: Row) -> Row | None:
        """The quickest of thinwire's plans that brings at least as much of the mean as a peer.

        Args:
            peer: The peer.
        """
        good = [row for row in self.measured if not row.peer and _gain(row) >= _gain(peer) - _EQUAL]
        return min(good, key=lambda row: row.median, default=None)


def _gain(row: Row) -> float:
    return row.gain if row.gain is not None else float("-inf")


@dataclass(frozen=True, kw_only=True)
class Run:
    """A whole sweep.

    Attributes:
        facts: About the machine, and about how it was measured.
        asked: The sweep, as it was asked for.
        cells: What was measured.
    """

    facts: dict[str, Any]
    asked: dict[str, Any]
    cells: list[Cell]

    @property
    def failures(self) -> list[str]:
        """What is wrong, in words."""
        return [
            f"{row.label} on {cell.net}, {cell.numel} elements: {row.wrong} elements wrong"
            for cell in self.cells
            for row in cell.rows
            if row.wrong
        ]

    def write(self, path: Path) -> None:
        """Write the run as JSON, one line for each cell.

        Args:
            path: Where to.

        Raises:
            BenchError: It cannot be written there.
        """
        files.write(path, files.to_json(SCHEMA, asdict(self), "cells"))

    @staticmethod
    def read(path: Path) -> "Run":
        """Read what `write` wrote.

        Args:
            path: Where from.

        Raises:
            BenchError: There is no such file, or it is something else.
        """
        return files.read(path, SCHEMA, _run, "thinwire bench exchange --json FILE")

    def with_cells(self, cells: list[Cell]) -> "Run":
        """The same run with these cells after its own.

        Args:
            cells: Of another run.
        """
        return Run(facts=self.facts, asked=self.asked, cells=[*self.cells, *cells])

    def csv(self) -> str:
        """Every row of every cell as a line of commas, numbers in SI units."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for cell in self.cells:
            for row in cell.measured:
                writer.writerow(_line(cell, row))
        return text.getvalue()


COLUMNS = (
    *("net", "rate", "ranks", "size", "count", "type", "method", "peer", "density", "repeats", "time", "spread"),
    *("algbw", "busbw", "dense_equivalent", "wire_bytes", "compress", "exchange", "decode", "to_dense", "to_floor"),
    *("gain", "wrong", "loss"),
)


def _line(cell: Cell, row: Row) -> list[Any]:
    floor, dense = cell.floor(row), cell.dense
    found = [
        *(cell.net, cell.rate, cell.world, cell.numel * _ITEM, cell.numel, "float32", row.name, int(row.peer)),
        *(row.density, len(row.seconds), row.median, row.spread, algbw(cell, row), busbw(row)),
        *(dense_equivalent(cell, row), row.bytes_sent, *(row.stages.get(name) for name in STAGES)),
        *(
            dense.median / row.median if dense else None,
            row.median / floor if floor else None,
            row.gain,
            row.wrong,
            row.loss,
        ),
    ]
    return ["" if value is None else f"{value:.6g}" if isinstance(value, float) else value for value in found]


STAGES = ("compress", "exchange", "decode")


def algbw(cell: Cell, row: Row) -> float:
    """Bytes of the message per second.

    Args:
        cell: With the message.
        row: With the time.
    """
    return cell.numel * _ITEM / row.median


def busbw(row: Row) -> float | None:
    """Bytes that the busiest rank sends per second: for an all-reduce what nccl-tests calls so.

    Args:
        row: With bytes and time.
    """
    return None if row.bytes_sent is None else row.bytes_sent / row.median


def dense_equivalent(cell: Cell, row: Row) -> float:
    """Bits per second that a dense all-reduce would have to send to be as quick.

    Args:
        cell: With the message.
        row: With the time.
    """
    return cell.ring * 8 / row.median


def _run(content: dict[str, Any]) -> Run:
    cells = [Cell(**{**cell, "rows": [Row(**row) for row in cell["rows"]]}) for cell in content.pop("cells")]
    return Run(cells=cells, **content)
