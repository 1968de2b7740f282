"""`thinwire demo`: dense and compressed training side by side, for real, on this machine."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from thinwire.errors import PlanError

if TYPE_CHECKING:
    from thinwire.tasks.side_by_side import Finish, Standing

_LINK = 100e6  # bits per second of the link in the closing arithmetic
_SECONDS_PER_STEP = 20.0  # a step slower than this on average is a hang
_NOTABLE = 0.02  # bits per byte; seeds differ by about as much
_INTERRUPTED = 130


def demo(*, ranks: int = 2, steps: int = 400, density: float = 0.01, seed: int = 0) -> int:
    """Train a small language model twice, dense and compressed, and compare.

    Both start from the same weights and see the same batches of the Python standard library's sources. They
    take turns step by step in the same processes, so that noise on this machine hits both alike.

    Args:
        ranks: How many processes train together.
        steps: Training steps for each of the two.
        density: The part of each gradient that the compressed run sends.
        seed: Of the weights and the batches.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        PlanError: An option has no meaning.
        RankFailed: A rank failed; the message has its traceback.
    """
    began = time.monotonic()
    try:
        finishes = _train(ranks, steps, density, seed)
    except KeyboardInterrupt:
        print(f"\nstopped after {time.monotonic() - began:.0f} s; all ranks are gone")
        return _INTERRUPTED
    results = summarise(finishes)
    print()
    _print_table(_HEAD, [_cells(result) for result in results])
    print("\n" + "\n".join(closing_words(*results)))
    return 0


def _train(ranks: int, steps: int, density: float, seed: int) -> "list[dict[str, Finish]]":
    if steps < 1:
        raise PlanError(f"asked for {steps} steps; write 1 or more")
    if ranks < 2:
        raise PlanError(f"asked for {ranks} ranks; write 2 or more, so that there is somebody to send to")
    if not 0.0 < density <= 1.0:
        raise PlanError(f"asked for a density of {density}; write more than 0 and at most 1, for example 0.01")
    from thinwire import recipes
    from thinwire.lab.ranks import RankPool
    from thinwire.tasks.side_by_side import Race, race

    plans = {"dense": recipes.dense(), "top-k": recipes.ar_topk(density=density)}
    job = Race(plans=plans, steps=steps, seed=seed)
    print(f"Training twice on {ranks} ranks, {steps} steps each, on Python's own source code:")
    print("  dense  every gradient element of every step")
    print(f"  top-k  {100 * density:.3g} % of them by size, the rest owed to later steps\n", flush=True)
    threads = max(1, (os.cpu_count() or 1) // ranks)
    limit = 120.0 + _SECONDS_PER_STEP * steps
    with RankPool(ranks, threads=threads) as pool, _display(steps) as show:
        return pool.run(race, job, timeout=limit, on_report=lambda _, standings: show.update(standings))


class Display(Protocol):
    """Shows how far the training is."""

    def update(self, standings: "dict[str, Standing]") -> None:
        """Show these figures of rank 0 instead of the last ones.

        Args:
            standings: By method.
        """


@contextlib.contextmanager
def _display(steps: int) -> Iterator[Display]:
    if not _fancy():
        yield _Lines(steps)
        return
    from rich.live import Live

    with Live(refresh_per_second=8) as live:
        yield _Bars(live, steps)


def _fancy() -> bool:
    return sys.stdout.isatty() and find_spec("rich") is not None


class _Lines:
    """One line for every tenth of the way: for logs, and for machines without rich."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._clock = _Clock(steps)
        self._next = 0

    def update(self, standings: "dict[str, Standing]") -> None:
        step = max(standing.step for standing in standings.values())
        if step < self._next and step < self._steps:
            return
        self._next = step + max(1, self._steps // 10)
        figures = (
            f"{name} {standing.bits:.2f} bits/byte, {_size(standing.bytes_sent)} sent"
            for name, standing in standings.items()
        )
        print(f"  step {step}/{self._steps}  {'; '.join(figures)}; {self._clock.left(step)} left", flush=True)


class _Bars:
    """A bar and a table that rich redraws in place."""

    def __init__(self, live: object, steps: int) -> None:
        self._live = live
        self._steps = steps
        self._clock = _Clock(steps)

    def update(self, standings: "dict[str, Standing]") -> None:
        from rich.console import Group
        from rich.live import Live
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        assert isinstance(self._live, Live)
        step = max(standing.step for standing in standings.values())
        table = Table("method", *_right("training loss", "sent by rank 0", "ms/step"))
        for name, standing in standings.items():
            pace = f"{1e3 * standing.seconds / standing.step:.0f}"
            table.add_row(name, f"{standing.bits:.2f} bits/byte", _size(standing.bytes_sent), pace)
        progress = Table.grid(padding=(0, 1))
        progress.add_row(
            f"step {step}/{self._steps}",
            ProgressBar(total=self._steps, completed=step, width=32),
            f"{self._clock.left(step)} left",
        )
        self._live.update(Group(table, progress))


class _Clock:
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._first: tuple[float, int] | None = None

    def left(self, step: int) -> str:
        """How long the rest takes at the pace since the first report; what came before it was set-up."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, step)
        done = step - self._first[1]
        if not done and step < self._steps:
            return "? s"
        rest = (self._steps - step) * (now - self._first[0]) / max(1, done)
        return f"{rest:.0f} s"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a method came to, over all ranks.

    Attributes:
        name: Of the method.
        bits: Held-out loss, in bits per byte.
        seconds: Of its steps, on the slowest rank.
        steps: How many.
        bytes_sent: By the busiest rank.
        replicas_agree: All ranks ended with the same weights.
    """

    name: str
    bits: float
    seconds: float
    steps: int
    bytes_sent: int
    replicas_agree: bool

    @property
    def pace(self) -> float:
        """Milliseconds for each step."""
        return 1e3 * self.seconds / self.steps

    @property
    def seconds_on_link(self) -> float:
        """What its bytes alone would take on a slow link. Arithmetic, not a measurement."""
        return self.bytes_sent * 8 / _LINK


def summarise(finishes: "Sequence[dict[str, Finish]]") -> list[Result]:
    """Make one result per method out of what every rank saw.

    Args:
        finishes: From every rank.

    Returns:
        In the order of the methods.
    """
    results = []
    for name in finishes[0]:
        seen = [finish[name] for finish in finishes]
        results.append(
            Result(
                name=name,
                bits=sum(finish.held_out_bits for finish in seen) / len(seen),
                seconds=max(finish.last.seconds for finish in seen),
                steps=seen[0].last.step,
                bytes_sent=max(finish.last.bytes_sent for finish in seen),
                replicas_agree=len({finish.checksum for finish in seen}) == 1,
            )
        )
    return results


def closing_words(dense: Result, compressed: Result) -> list[str]:
    """Say what the figures show, and what they do not.

    Args:
        dense: The plain run.
        compressed: The other one.

    Returns:
        Lines of text.
    """
    gap = compressed.bits - dense.bits
    lines = [
        "What this shows, and what it does not:",
        "- On this machine the ranks talk over loopback, where bytes cost next to nothing, so dense is quick here:",
        f"  {dense.pace:.0f} ms a step against {compressed.pace:.0f} ms. Compression is for slower wires.",
        f"- On a link of 100 Mbit/s the bytes alone would take {dense.seconds_on_link:.1f} s dense and "
        f"{compressed.seconds_on_link:.1f} s with top-k.",
        "  That is arithmetic (bytes x 8 / 100 Mbit/s, no latency, no overlap with compute), not a measurement.",
    ]
    if gap > _NOTABLE:
        lines += [
            f"- Top-k pays in quality: {gap:+.2f} bits/byte after the same steps. Plain top-k with error",
            "  feedback loses under AdamW here; a default made for adaptive optimizers is future work.",
        ]
    else:
        lines += [
            f"- Held-out loss differs by {gap:+.2f} bits/byte. One short run with one seed shows no more than that."
        ]
    if dense.replicas_agree and compressed.replicas_agree:
        lines += ["- With either method all ranks ended with bitwise the same weights."]
    else:
        lines += ["- WARNING: the ranks ended with different weights. That is a fault; please report it."]
    return lines


_HEAD = ("method", "held-out loss", "seconds", "ms/step", "sent per rank", "at 100 Mbit/s (arithmetic)")


def _cells(result: Result) -> tuple[str, ...]:
    return (
        result.name,
        f"{result.bits:.2f} bits/byte",
        f"{result.seconds:.1f}",
        f"{result.pace:.0f}",
        _size(result.bytes_sent),
        f"{result.seconds_on_link:.1f} s of sending",
    )


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if _fancy():
        from rich.console import Console
        from rich.table import Table

        table = Table(head[0], *_right(*head[1:]))
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells))


def _right(*names: str) -> list[Any]:
    from rich.table import Column

    return [Column(name, justify="right") for name in names]


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"
