"""A run as a table: for terminals and for pages."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from thinwire.bench.figures import duration, size, times
from thinwire.bench.kernels import bars
from thinwire.bench.kernels.record import Heat, Role, Run, Times, Yardstick

_NONE = "-"


def torch_threads(run: Run) -> list[int]:
    """With how many threads torch was measured.

    Args:
        run: The run.
    """
    return sorted({one.threads for heat in run.heats for one in heat.times if one.role is Role.TORCH})


def head(run: Run) -> list[str]:
    """The names of the columns.

    Args:
        run: The run.
    """
    against = [f"vs torch {threads}T" for threads in torch_threads(run)]
    return ["kernel", "by", "best", "median", "IQR", "/ floor", "/ add", *against, "#wrong"]


def rows(run: Run) -> Iterator[tuple[Heat, list[list[str]]]]:
    """The cells of every heat's kernels and torch expressions.

    Args:
        run: The run.
    """
    for heat in run.heats:
        measured = [one for one in heat.times if one.role is not Role.YARDSTICK]
        yield heat, [cells(heat, one, torch_threads(run)) for one in measured]


def cells(heat: Heat, one: Times, torch: list[int]) -> list[str]:
    """One row.

    Args:
        heat: It was measured in.
        one: Whose row it is.
        torch: The threads of the torch columns.
    """
    who = f"{one.name} {one.threads}T"
    if not one.nanoseconds:
        return [heat.case, who, one.error, *[""] * (len(torch) + 4), "all" if one.error else _NONE]
    add = heat.yardstick(Yardstick.ADD, one.threads)
    against = [
        _times(rival.best / one.best if (rival := heat.torch(threads)) and one.role is Role.KERNEL else None)
        for threads in torch
    ]
    return [
        heat.case,
        who,
        duration(one.best),
        duration(one.median),
        _NONE if one.spread is None else duration(one.spread),
        _ratio(one.best, heat.floor(one.threads)),
        _ratio(one.best, add.best if add else None),
        *against,
        str(one.wrong),
    ]


def heading(heat: Heat) -> str:
    """Size and density, for people.

    Args:
        heat: Of which.
    """
    return size(heat.size) + ("" if heat.density is None else f", {100 * heat.density:g} %")


def _ratio(value: float, of: float | None) -> str:
    return f"{value / of:.2f}" if of else _NONE


def _times(value: float | None) -> str:
    return _NONE if value is None else times(value)


def speeds(run: Run) -> list[str]:
    """What the memory did, over the whole run: the best of every yardstick.

    Args:
        run: The run.
    """
    lines = []
    for threads in torch_threads(run):
        parts = []
        for which in (Yardstick.COPY, Yardstick.READ):
            found = [one for heat in run.heats if (one := heat.yardstick(which, threads))]
            if found:
                parts.append(f"{which} {max(one.moved / one.best for one in found):.1f} GB/s")
        lines.append(f"memory, {threads} thread{'s' if threads > 1 else ''}: {', '.join(parts)}")
    return lines


def notes(run: Run) -> list[str]:
    """What a reader must know to understand the table.

    Args:
        run: The run.
    """
    facts = run.facts
    caches = " ".join(f"{name} {size}" for name, size in facts["caches"].items())
    return [
        f"{facts['cpu']}, {facts['cpus']} CPUs, {caches}; torch {facts['torch']}, thinwire {facts['thinwire']}; "
        f"{run.asked['data']} data, {run.asked['rounds']} rounds",
        *speeds(run),
        f"out of cache: {facts['sweep_bytes'] / 2**20:.0f} MiB are read through before every sample",
        f"load average {run.load_before[0]} before, {run.load_after[0]} after",
        f"best, median, IQR: {run.asked['clock']} time of one call, over the rounds. All ratios are of bests.",
        "/ floor: to the time its bytes take at the speed of a copy beside it (in place: of an addition in place).",
        "/ add: to residual.add_(gradient) of all elements. Both with as many threads as the row.",
        "vs torch: how many times faster than the torch expression. #wrong: elements that differ from the reference.",
        *(f"{', '.join(names)}: {remark}" for remark, names in _remarks(run).items()),
        *(f"skipped: {line}" for line in run.skipped),
        *(f"FAILED: {line}" for line in run.failures),
    ]


def _remarks(run: Run) -> dict[str, list[str]]:
    """Who each remark is about."""
    found: dict[str, dict[str, None]] = {}
    for heat in run.heats:
        if heat.remark:
            found.setdefault(heat.remark, {})[heat.case] = None
    return {remark: list(names) for remark, names in found.items()}


def for_terminal(run: Run) -> Table:
    """The table for rich.

    Args:
        run: The run.
    """
    names = head(run)
    table = Table(box=SIMPLE_HEAD)
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < 2 else "right", no_wrap=True)
    last = ""
    for heat, lines in rows(run):
        if heading(heat) != last:
            last = heading(heat)
            table.add_section()
            table.add_row(Text(last, style="bold"))
        for line in lines:
            bad = line[-1] not in ("0", _NONE)
            style = "bold red" if bad else "dim" if line[1].startswith("torch") else ""
            table.add_row(*(Text(cell, style=style) for cell in line))
    return table


def verdicts(run: Run) -> list[str]:
    """Every bar with its outcome, as rows of a table in Markdown; empty where the run has none.

    Args:
        run: The run.
    """
    found = bars.verdicts(run)
    if not found:
        return []
    lines = [f"| {one.bar} | {one.measured} | {'passed' if one.passed else 'missed'} |" for one in found]
    return ["| bar: 25M elements, 1 thread, medians | measured | |", "|---|--:|---|", *lines]


def for_page(run: Run) -> str:
    """The same table in Markdown, the bars above it and the notes below it.

    Args:
        run: The run.
    """
    names = ["elements", *head(run)]
    lines = ["| " + " | ".join(names) + " |", "|---" * 3 + "|--:" * (len(names) - 3) + "|"]
    for heat, found in rows(run):
        lines += ["| " + " | ".join([heading(heat), *line]) + " |" for line in found]
    judged = verdicts(run)
    return "\n".join([*judged, *([""] if judged else []), *lines, "", *(f"- {note}" for note in notes(run))]) + "\n"
