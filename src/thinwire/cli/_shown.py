"""How far a training is, from the events it writes: a table that is redrawn in a terminal, lines anywhere else."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from thinwire.observe.records import Began, Event, Planned, Stepped, Tail, Wired

_SMOOTHING = 0.95
_LOOK_EVERY = 0.2  # seconds


class Standings:
    """What a run's events amount to so far."""

    def __init__(self) -> None:
        self.began: Began | None = None
        self.wire = ""
        self.steps: dict[str, Stepped] = {}
        self.losses: dict[str, float] = {}
        self.plans: dict[str, str] = {}
        self.seed = 0
        self._first: tuple[float, int] | None = None

    def take(self, events: Sequence[Event]) -> None:
        """Add events.

        Args:
            events: The next ones.
        """
        for event in events:
            if isinstance(event, Began):
                self.began = event
            elif isinstance(event, Stepped):
                self._step(event)
            elif isinstance(event, Planned):
                self.plans[event.method] = event.short or event.plan
            elif isinstance(event, Wired):
                self.wire = wire_words(event)

    def _step(self, event: Stepped) -> None:
        if event.seed != self.seed:
            self.seed, self.losses = event.seed, {}
        self.steps[event.method] = event
        if event.loss is not None:
            before = self.losses.get(event.method, event.loss)
            self.losses[event.method] = _SMOOTHING * before + (1 - _SMOOTHING) * event.loss
        if self._first is None:
            self._first = (time.monotonic(), self.done)

    @property
    def done(self) -> int:
        """Steps that every method has done, earlier seeds included."""
        if self.began is None or not self.steps:
            return 0
        turn = self.began.seeds.index(self.seed) if self.seed in self.began.seeds else 0
        own = {name: each.step + 1 for name, each in self.steps.items() if each.seed == self.seed}
        return turn * self.began.steps + min(own.get(name, 0) for name in self.began.methods)

    @property
    def total(self) -> int:
        """Steps of each method in all seeds."""
        return self.began.steps * len(self.began.seeds) if self.began is not None else 0

    @property
    def left(self) -> str:
        """How long the rest takes at the pace since the first step was seen; what came before it was set-up."""
        if self._first is None or self.done <= self._first[1]:
            return "? s"
        pace = (time.monotonic() - self._first[0]) / (self.done - self._first[1])
        return duration((self.total - self.done) * pace)

    def row(self, name: str) -> tuple[str, ...]:
        """A method's figures as text.

        Args:
            name: Of the method.
        """
        step, began = self.steps[name], self.began
        assert began is not None
        pace = step.elapsed / (step.step + 1)
        dense = 4 * began.parameters * (step.step + 1) * 2 * (began.world - 1) / began.world
        saved = f"{100 * (1 - step.bytes_total / dense):.1f} %" if step.bytes_total else "?"
        return (
            name,
            f"{self.losses.get(name, float('nan')):.3f}",
            f"{1e3 * pace:.0f}",
            f"{began.world * step.samples / pace:,.0f}",
            size(step.bytes_total),
            saved,
        )


HEAD = ("method", "training loss", "ms/step", "{counted}/s", "sent by rank 0", "bytes saved")


class Watcher:
    """Follows a file of events in a thread of its own, and shows it.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self.standings = Standings()
        self._tail = Tail(path)
        self._tail.skip()
        self._over = threading.Event()
        self._screen: Any = None
        self._next = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator["Watcher"]:
        """Show what comes until the block ends."""
        thread = threading.Thread(target=self._follow, name="thinwire-display", daemon=True)
        with self._live():
            thread.start()
            try:
                yield self
            finally:
                self._over.set()
                thread.join()

    @contextlib.contextmanager
    def _live(self) -> Iterator[None]:
        if not fancy():
            yield
            return
        from rich.live import Live

        with Live(refresh_per_second=8) as self._screen:
            yield

    def _follow(self) -> None:
        over = False
        while not over:
            over = self._over.wait(_LOOK_EVERY)
            self.standings.take(self._tail.new())
            if self.standings.done:
                self._show()

    def _show(self) -> None:
        if self._screen is not None:
            self._screen.update(_table(self.standings))
            return
        standings = self.standings
        if standings.done < self._next and (standings.done < standings.total or self._next > standings.total):
            return
        self._next = standings.done + max(1, standings.total // 10)
        if standings.done >= standings.total:
            self._next = standings.total + 1
        unit = standings.began.unit if standings.began is not None else ""
        figures = (
            f"{name} {standings.losses.get(name, float('nan')):.2f} {unit}, {size(step.bytes_total)} sent"
            for name, step in standings.steps.items()
        )
        print(f"  step {standings.done}/{standings.total}  {'; '.join(figures)}; {standings.left} left", flush=True)


def _table(standings: Standings) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Column, Table
    from rich.text import Text

    began = standings.began
    assert began is not None
    names = [name.format(counted=began.counted) for name in HEAD]
    table = Table(names[0], *(Column(name, justify="right") for name in names[1:]))
    for name in standings.steps:
        table.add_row(*standings.row(name))
    progress = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=standings.total, completed=standings.done, width=32)
    progress.add_row(f"step {standings.done}/{standings.total}", bar, f"{standings.left} left")
    lines = [Text(f"wire: {standings.wire or began.network}")]
    lines += [Text(f"{name}: {plan}", style="dim", overflow="ellipsis") for name, plan in standings.plans.items()]
    return Group(table, progress, *lines)


def wire_words(event: Wired) -> str:
    """A wire in words.

    Args:
        event: What it is like.
    """
    rate = f"{event.bandwidth / 1e6:g} Mbit/s" if event.bandwidth else ""
    delay = f"{1e3 * event.latency:g} ms one way" if event.latency else ""
    return ", ".join(filter(None, (rate, delay))) or "not known"


def fancy() -> bool:
    """Whether somebody looks at this who can see more than lines."""
    return sys.stdout.isatty() and find_spec("rich") is not None


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, ruled in a terminal.

    Args:
        head: Names of the columns; the first is aligned to the left, the others to the right.
        rows: Their cells.
    """
    if fancy():
        from rich.console import Console
        from rich.table import Column, Table

        table = Table(head[0], *(Column(name, justify="right") for name in head[1:]))
        for row in rows:
            table.add_row(*row)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells))


def size(count: int | None) -> str:
    """Bytes as people say them; a question mark where nobody counted.

    Args:
        count: How many.
    """
    if count is None:
        return "?"
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def duration(seconds: float) -> str:
    """A time as people say it.

    Args:
        seconds: How long.
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
