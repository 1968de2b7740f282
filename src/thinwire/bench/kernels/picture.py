"""A run as a picture: how many times each kernel's floor everybody takes. Needs matplotlib."""

import io
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from thinwire.bench.errors import BenchError
from thinwire.bench.kernels import table
from thinwire.bench.kernels.record import Heat, Role, Run, Yardstick

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = {".png", ".svg"}

# Okabe and Ito's colours, which stay apart for all kinds of colour vision, each with a shape of its own.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_SHAPES = ("o", "s", "^", "D", "v", "P", "X")
_INK, _FAINT = "#1f2328", "#8c959f"
_NIGHT = {_INK: "#e6edf3", _FAINT: "#6e7681"}

Key = tuple[str, int]
"""Who, and with how many threads."""


def check(path: Path) -> None:
    """Nothing, if a picture can be drawn there.

    Args:
        path: The file.

    Raises:
        BenchError: It is of no known kind, or matplotlib is missing.
    """
    if path.suffix not in _KINDS:
        raise BenchError(f"a picture cannot be drawn as {path.name}; write a name that ends with .png or .svg")
    if find_spec("matplotlib") is None:
        raise BenchError(
            "pictures need matplotlib: write pip install 'thinwire[plot]' "
            "(in a checkout: pip install -c constraints.txt -e '.[plot]')"
        )


def draw(run: Run, path: Path) -> None:
    """Draw every size and density as a panel: kernels downwards, times their floors to the right.

    Args:
        run: What was measured.
        path: Of the picture.

    Raises:
        BenchError: It cannot be drawn there.
    """
    check(path)
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
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "thinwire", "text.color": _INK, "axes.labelcolor": _INK}
    with rc_context(settings):
        figure = Figure(figsize=(2.6 + 3.4 * across, 1.4 + down * (0.7 + 0.28 * len(kernels))), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
        for axes, (title, heats) in zip(grid.flat, panels.items(), strict=False):
            _panel(axes, title, heats, kernels, marks)
        for axes in list(grid.flat)[len(panels) :]:
            axes.set_visible(False)
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=max(1, across * 2), frameon=False)
        figure.supxlabel("times the floor (log)", color=_INK, fontsize="medium")
        _save(figure, run, path)


def _panels(run: Run) -> dict[str, list[Heat]]:
    """The heats of each size and density; what has no density is in all panels of its size."""
    titles: dict[str, list[Heat]] = {}
    for size in dict.fromkeys(heat.size for heat in run.heats):
        own = [heat for heat in run.heats if heat.size == size]
        densities: list[float | None] = list(dict.fromkeys(heat.density for heat in own if heat.density is not None))
        for density in densities or [None]:
            label = table.size(size) + " elements" + ("" if density is None else f", {100 * density:g} %")
            titles[label] = [heat for heat in own if heat.density in (density, None)]
    return titles


def _marks(run: Run) -> dict[Key, dict[str, Any]]:
    """A colour and a shape for everybody."""
    keys = dict.fromkeys(
        (one.name, one.threads) for heat in run.heats for one in heat.times if one.role is not Role.YARDSTICK
    )
    return {
        key: {
            "color": _COLOURS[number % len(_COLOURS)],
            "marker": _SHAPES[number % len(_SHAPES)],
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
    axes.axvline(1.0, color=_INK, linewidth=1.0)
    for key, places in seen.items():
        axes.plot(*_columns(places), linestyle="none", markersize=6, **marks[key])
    axes.plot(
        *_columns(added),
        linestyle="none",
        marker="|",
        markersize=12,
        color=_FAINT,
        label="residual.add_(gradient), 1 thread",
    )
    axes.set_xscale("log")
    axes.set_yticks(range(len(kernels)), kernels)
    axes.set_ylim(len(kernels) - 0.5, -0.5)
    axes.set_title(title, loc="left", fontsize="medium", color=_INK)
    axes.grid(axis="both", color=_FAINT, alpha=0.3, linewidth=0.5)
    axes.tick_params(color=_FAINT, labelcolor=_INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(_FAINT)
    axes.patch.set_visible(False)


def _apart(number: int, of: int) -> float:
    """A little above or below the middle of the row, so that equal times do not hide each other."""
    return 0.36 * (number - (of - 1) / 2) / max(1, of - 1)


def _columns(places: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [place[0] for place in places], [place[1] for place in places]


def _save(figure: Any, run: Run, path: Path) -> None:
    try:
        if path.suffix == ".png":
            figure.savefig(path, dpi=150, facecolor="white")
            return
        figure.patch.set_visible(False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        path.write_text(_readable(buffer.getvalue(), run))
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error.strerror}") from error


def _readable(svg: str, run: Run) -> str:
    """Say in words what the picture shows, and let it be read on a dark page too."""
    words = "; ".join(
        f"{cells[0]} by {cells[1]}, {table.heading(heat)}: {cells[5]}"
        for heat, lines in table.rows(run)
        for cells in lines
    )
    night = "".join(
        f'[style*="{thing}: {ink}"] {{ {thing}: {light} !important }} '
        for ink, light in _NIGHT.items()
        for thing in ("fill", "stroke")
    )
    inside = (
        "<title>How many times its floor each kernel takes</title>\n"
        f"<desc>Time divided by the time that moving the kernel's bytes takes at the speed of a copy. {escape(words)}."
        f"</desc>\n<style>@media (prefers-color-scheme: dark) {{ {night}}}</style>\n"
    )
    svg = re.sub(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + "\n" + inside, svg, count=1)
