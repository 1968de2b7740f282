"""A run as a picture: how long every method takes, and how much of the mean it brings. Needs matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING

from thinwire.bench import drawing, figures
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange import table
from thinwire.bench.exchange.record import Cell, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEGEND = "time of one exchange (log); round: thinwire, square: others, stroke: the wire floor, figure: the gain"
_OURS, _THEIRS = drawing.COLOURS[0], drawing.COLOURS[4]


def draw(run: Run, path: Path) -> None:
    """Draw every cell as a panel: methods downwards, time to the right, the wire floor as a stroke, the gain beside it.

    Args:
        run: What was measured.
        path: Of the picture.

    Raises:
        BenchError: It cannot be drawn there.
    """
    drawing.check(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = [cell for cell in run.cells if cell.measured]
    if not drawn:
        raise BenchError("nothing was measured that could be drawn")
    nets = list(dict.fromkeys(cell.net for cell in drawn))
    sizes = list(dict.fromkeys(cell.size for cell in drawn))
    rows = max(len(cell.measured) for cell in drawn)
    with rc_context(drawing.SETTINGS):
        size = (2.4 + 3.6 * len(nets), 1.2 + len(sizes) * (0.8 + 0.24 * rows))
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(sizes), len(nets), squeeze=False, sharey="row")
        for axes in grid.flat:
            axes.set_visible(False)
        for cell in drawn:
            axes = grid[sizes.index(cell.size)][nets.index(cell.net)]
            names = [row.label for other in drawn if other.size == cell.size for row in other.measured]
            _panel(axes, cell, list(dict.fromkeys(names)))
        figure.supxlabel(_LEGEND, color=drawing.INK, fontsize="medium")
        words = " ".join(f"{table.heading(cell)}: {_in_words(cell)}." for cell in drawn)
        drawing.save(figure, path, "How long an exchange takes, and how much of the mean it brings", words)


def _panel(axes: "Axes", cell: Cell, names: list[str]) -> None:
    axes.set_visible(True)
    for row in cell.measured:
        at, colour = names.index(row.label), _THEIRS if row.peer else _OURS
        axes.plot([row.median], [at], marker="s" if row.peer else "o", color=colour, markersize=6, linestyle="none")
        axes.plot([min(row.seconds), max(row.seconds)], [at, at], color=colour, linewidth=1.5)
        floor = cell.floor(row)
        if floor:
            axes.plot([floor], [at], marker="|", color=drawing.FAINT, markersize=10, linestyle="none")
        gain = "" if row.gain is None else f"{row.gain:.2f}"
        axes.annotate(
            gain, (max(row.seconds), at), xytext=(6, 0), textcoords="offset points", va="center", fontsize="x-small"
        )
    axes.set_xscale("log")
    axes.margins(x=0.18)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    rate = f" ({figures.amount(cell.rate)}bit/s)" if cell.rate else ""
    title = f"{cell.net}{rate}, {figures.size(cell.size)} elements"
    axes.set_title(title, loc="left", fontsize="medium", color=drawing.INK)
    drawing.plain(axes)


def _in_words(cell: Cell) -> str:
    return "; ".join(
        f"{found['method']} {found['time']}, gain {found['gain']}"
        for found in (table.cells(cell, row) for row in cell.measured)
    )
