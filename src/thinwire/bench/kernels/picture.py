"""A run as a picture: how many times each kernel's floor everybody takes. Needs matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from thinwire.bench import drawing, figures
from thinwire.bench.errors import BenchError
from thinwire.bench.kernels import table
from thinwire.bench.kernels.record import Heat, Role, Run, Yardstick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Key = tuple[str, int]
"""Who, and with how many threads."""


def draw(run: Run, path: Path) -> None:
    """Draw every size and density as a panel: kernels downwards, times their floors to the right.

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

    panels = _panels(run)
    if not panels:
        raise BenchError("nothing was measured that could be drawn")
    kernels = list(dict.fromkeys(heat.case for heat in run.heats))
    across = max(1, len({heat.density for heat in run.heats} - {None}))
    down = -(-len(panels) // across)
    marks = _marks(run)
    with rc_context(drawing.SETTINGS):
        figure = Figure(figsize=(2.6 + 3.4 * across, 1.4 + down * (0.7 + 0.28 * len(kernels))), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for axes, (title, heats) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, title, heats, kernels, marks)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=max(1, across * 2), frameon=False)
        figure.supxlabel("times the floor (log)", color=drawing.INK, fontsize="medium")
        drawing.save(figure, path, "How many times its floor each kernel takes", _in_words(run))


def _panels(run: Run) -> dict[str, list[Heat]]:
    """The heats of each size and density; what has no density is in all panels of its size."""
    titles: dict[str, list[Heat]] = {}
    for size in dict.fromkeys(heat.size for heat in run.heats):
        own = [heat for heat in run.heats if heat.size == size]
        densities: list[float | None] = list(dict.fromkeys(heat.density for heat in own if heat.density is not None))
        for density in densities or [None]:
            label = figures.size(size) + " elements" + ("" if density is None else f", {100 * density:g} %")
            titles[label] = [heat for heat in own if heat.density in (density, None)]
    return titles


def _marks(run: Run) -> dict[Key, dict[str, Any]]:
    """A colour and a shape for everybody."""
    keys = dict.fromkeys(
        (one.name, one.threads) for heat in run.heats for one in heat.times if one.role is not Role.YARDSTICK
    )
    return {
        key: {
            "color": drawing.COLOURS[number % len(drawing.COLOURS)],
            "marker": drawing.SHAPES[number % len(drawing.SHAPES)],
            "label": f"{key[0]}, {key[1]} thread{'s' if key[1] > 1 else ''}",
        }
        for number, key in enumerate(keys)
    }


def _panel(axes: "Axes", title: str, heats: list[Heat], kernels: list[str], marks: dict[Key, dict[str, Any]]) -> None:
    seen: dict[Key, list[tuple[float, float]]] = {key: [] for key in marks}
    added: list[tuple[float, float]] = []
    for heat in heats:
        row = kernels.index(heat.case)
        for one in heat.times:
            floor = heat.floor(one.threads)
            if not floor or not one.nanoseconds:
                continue
            if one.role is not Role.YARDSTICK:
                key = (one.name, one.threads)
                seen[key].append((one.best / floor, row + _apart(list(marks).index(key), len(marks))))
            elif one.name == Yardstick.ADD and one.threads == 1:
                added.append((one.best / floor, row))
    axes.axvline(1.0, color=drawing.INK, linewidth=1.0)
    for key, places in seen.items():
        axes.plot(*_columns(places), linestyle="none", markersize=6, **marks[key])
    axes.plot(
        *_columns(added),
        linestyle="none",
        marker="|",
        markersize=12,
        color=drawing.FAINT,
        label="residual.add_(gradient), 1 thread",
    )
    axes.set_xscale("log")
    axes.set_yticks(range(len(kernels)), kernels)
    axes.set_ylim(len(kernels) - 0.5, -0.5)
    axes.set_title(title, loc="left", fontsize="medium", color=drawing.INK)
    drawing.plain(axes)


def _apart(number: int, of: int) -> float:
    """A little above or below the middle of the row, so that equal times do not hide each other."""
    return 0.36 * (number - (of - 1) / 2) / max(1, of - 1)


def _columns(places: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [place[0] for place in places], [place[1] for place in places]


def _in_words(run: Run) -> str:
    """What the picture shows, for those who cannot see it."""
    words = "; ".join(
        f"{cells[0]} by {cells[1]}, {table.heading(heat)}: {cells[5]}"
        for heat, lines in table.rows(run)
        for cells in lines
    )
    return f"Time divided by the time that moving the kernel's bytes takes at the speed of a copy. {words}."
