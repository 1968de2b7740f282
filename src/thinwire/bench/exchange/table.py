"""A run as a table: for terminals and for pages."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from thinwire.bench import figures
from thinwire.bench.exchange.record import STAGES, Cell, Row, Run, busbw, dense_equivalent
from thinwire.bench.figures import amount, duration, times

_NONE = "-"
_ITEM = 4

HEAD = (
    *("method", "repeats", "time", "IQR", "algbw", "busbw", "dense-eq.", "sent/rank"),
    *(*STAGES, "vs dense", "/ floor", "gain", "loss", "#wrong"),
)
SHORT = ("method", "time", "sent/rank", "vs dense", "/ floor", "gain", "loss", "#wrong")
"""What a page has room for."""


def heading(cell: Cell) -> str:
    """Network, ranks, size, count and type, for people.

    Args:
        cell: Of which.
    """
    rate = f" at {amount(cell.rate)}bit/s" if cell.rate else ""
    size = amount(cell.numel * _ITEM)
    task = f", steps of {cell.task}" if cell.task else ""
    return f"{cell.net}{rate}{task}, {cell.world} ranks, {size}B: {amount(cell.numel).strip()} float32"


def cells(cell: Cell, row: Row) -> dict[str, str]:
    """One row, by the names of the columns.

    Args:
        cell: It was measured in.
        row: Whose.
    """
    floor, dense, bus = cell.floor(row), cell.dense, busbw(row)
    return {
        "method": row.label,
        "repeats": str(len(row.seconds)),
        "time": _duration(row.median),
        "IQR": _NONE if row.spread is None else _duration(row.spread),
        "algbw": f"{amount(cell.numel * _ITEM / row.median)}B/s",
        "busbw": _NONE if bus is None else f"{amount(bus)}B/s",
        "dense-eq.": f"{amount(dense_equivalent(cell, row))}bit/s",
        "sent/rank": _NONE if row.bytes_sent is None else f"{amount(row.bytes_sent)}B",
        **{name: _duration(row.stages[name]) if name in row.stages else _NONE for name in STAGES},
        "vs dense": times(dense.median / row.median) if dense else _NONE,
        "/ floor": f"{row.median / floor:.2f}" if floor else _NONE,
        "gain": _NONE if row.gain is None else f"{row.gain:.3f}",
        "loss": _NONE if row.loss is None else f"{row.loss:.3f}",
        "#wrong": str(row.wrong),
    }


def _duration(seconds: float) -> str:
    return duration(seconds * 1e9)


def verdicts(cell: Cell) -> list[tuple[Row, Row | None]]:
    """Every peer with the quickest plan of thinwire's that brings at least as much; None where there is none.

    Args:
        cell: In which.
    """
    return [(row, cell.rival(row)) for row in cell.measured if row.peer and not cell.task]


def verdict(peer: Row, rival: Row | None) -> str:
    """One of `verdicts` in words.

    Args:
        peer: Whom thinwire is held against.
        rival: Its answer.
    """
    if rival is None:
        return f"{peer.label}: behind, no plan that was measured brings as much ({peer.gain:.3f})"
    ratio = peer.median / rival.median
    word = "ahead" if ratio > 1.0 else "BEHIND"
    return f"{peer.label}: {word} {times(ratio)} with {rival.label} (gain {rival.gain:.3f} and {peer.gain:.3f})"


def columns(run: Run, head: tuple[str, ...] = HEAD) -> tuple[str, ...]:
    """The columns that have something to say: a loss only where something was trained, a gain only where nothing was.

    Args:
        run: The run.
        head: All of them.
    """
    trained = any(cell.task for cell in run.cells)
    exchanged = any(not cell.task for cell in run.cells)
    return tuple(name for name in head if {"gain": exchanged, "loss": trained}.get(name, True))


def notes(run: Run) -> list[str]:
    """What a reader must know to understand the table.

    Args:
        run: The run.
    """
    facts, asked = run.facts, run.asked
    clock = "ranks begin at one moment" if facts["one_clock"] else "each rank's own clock"
    return [
        f"{facts['cpu']}, {facts['cpus']} CPUs for {facts['ranks']} ranks, {asked['threads']} threads each; "
        f"{facts['backend']}, torch {facts['torch']}, thinwire {facts['thinwire']}, kernels {facts['kernels_active']}",
        f"load average {facts['load_before'][0]} before, {facts['load_after'][0]} after; {clock}",
        "gradients: recorded from training, error-fed, the same for everybody; methods take turns. Steps of training: "
        "forward, backward, exchange and update, one behind the other; loss: held-out, bits per byte",
        "time: median until the last rank has its mean, IQR: range of the middle half",
        "algbw: message / time, busbw: bytes sent by the busiest rank / time, "
        "dense-eq.: what a dense ring would have to send to be as quick",
        "sent/rank: what the sockets of the busiest rank sent, without headers of TCP and IP. "
        "/ floor: to the time that these bytes take on the link",
        "compress, exchange, decode: on the slowest rank, where a method can tell them apart",
        "gain: energy of the true mean that arrives. #wrong: elements that break what the method promises",
        *(f"{', '.join(names)}: {remark}" for remark, names in _remarks(run).items()),
        *(f"not measured: {line}" for line in _missing(run)),
        *(f"FAILED: {line}" for line in run.failures),
    ]


def _remarks(run: Run) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for cell in run.cells:
        for row in cell.rows:
            if row.note:
                found.setdefault(row.note, {})[row.name] = None
    return {remark: list(names) for remark, names in found.items()}


def _missing(run: Run) -> Iterator[str]:
    told: set[str] = set()
    for cell in run.cells:
        for row in cell.rows:
            # Who is absent is so in every cell; who is too slow only in some.
            line = f"{row.label}: {row.missing}" + (f" ({heading(cell)})" if row.missing.startswith("would") else "")
            if row.missing and line not in told:
                told.add(line)
                yield line


def for_terminal(run: Run) -> Table:
    """The table for rich.

    Args:
        run: The run.
    """
    table = Table(box=SIMPLE_HEAD)
    head = columns(run)
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for cell in run.cells:
        table.add_section()
        table.add_row(Text(heading(cell), style="bold"))
        for row in cell.measured:
            style = "bold red" if row.wrong else "dim" if row.peer else ""
            found = cells(cell, row)
            table.add_row(*(Text(found[name], style=style) for name in head))
    return table


def summary(run: Run) -> str:
    """A table with a line for each method and a column for each network: times, and the gain once.

    Args:
        run: The run.
    """
    lines = []
    for size in dict.fromkeys(cell.size for cell in run.cells):
        own = [cell for cell in run.cells if cell.size == size]
        lines += [f"| {figures.size(size)} elements | gain | " + " | ".join(cell.net for cell in own) + " |"]
        lines += ["|---" + "|--:" * (len(own) + 1) + "|"]
        found = [{row.label: row for row in cell.measured} for cell in own]
        for label in dict.fromkeys(label for rows in found for label in rows):
            seen = [rows.get(label) for rows in found]
            first = next(row for row in seen if row)
            gain = _NONE if first.gain is None else f"{first.gain:.3f}"
            name = label if first.peer else f"**{label}**"
            times_ = [_duration(row.median) if row else _NONE for row in seen]
            lines.append("| " + " | ".join([name, gain, *times_]) + " |")
        lines.append("")
    return "\n".join(lines)


def for_page(run: Run, head: tuple[str, ...] = HEAD) -> str:
    """The same table in Markdown, with the verdicts and the notes below it.

    Args:
        run: The run.
        head: The columns.
    """
    lines, head = [], columns(run, head)
    for cell in run.cells:
        lines += [f"**{heading(cell)}**", "", "| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
        for row in cell.measured:
            found = cells(cell, row)
            name = f"{row.label}" if row.peer else f"**{row.label}**"
            lines.append("| " + " | ".join([name, *(found[each] for each in head[1:])]) + " |")
        lines += ["", *(f"- {verdict(*each)}" for each in verdicts(cell)), ""]
    return "\n".join([*lines, *(f"- {note}" for note in notes(run))]) + "\n"
