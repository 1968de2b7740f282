"""Measures of sparsity as pictures. Needs matplotlib, which is imported when a picture is drawn."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from thinwire.analysis.sparsity import Sparsity
from thinwire.errors import ThinwireError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = {".png", ".svg", ".pdf"}
# Okabe and Ito's colours, which stay apart for all kinds of colour vision.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


class PictureError(ThinwireError, ValueError):
    """A picture cannot be drawn there."""


def check(path: Path) -> None:
    """Nothing, if a picture can be drawn there.

    Raises:
        PictureError: It is of no known kind, there is no such folder, or matplotlib is missing.
    """
    if path.suffix not in _KINDS or not path.resolve().parent.is_dir():
        raise PictureError(
            f"a picture cannot be drawn as {path}; write a name in an existing folder that ends with .png, .svg or .pdf"
        )
    if find_spec("matplotlib") is None:
        raise PictureError(
            "pictures need matplotlib: write pip install 'thinwire[plot]' "
            "(in a checkout: pip install -c constraints.txt -e '.[plot]')"
        )


def draw(steps: Sequence[tuple[str, Sparsity]], path: Path) -> None:
    """Draw four panels: overlaps, densification, skewness with density, and how even three maps are.

    Args:
        steps: Measures with a name each.
        path: Of the picture.

    Raises:
        PictureError: It cannot be drawn there.
    """
    check(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    _overlaps(panels[0, 0], steps)
    _densification(panels[0, 1], steps)
    _skewness(panels[1, 0], steps)
    _imbalance(panels[1, 1], steps)
    figure.savefig(path, dpi=120)


def _overlaps(axes: "Axes", steps: Sequence[tuple[str, Sparsity]]) -> None:
    values = [list(each.overlaps) or [1.0] for _, each in steps]
    axes.boxplot(values, tick_labels=[name for name, _ in steps], whis=(0, 100))
    axes.set(title="Overlap of pairs of ranks", ylim=(0, 1.02))
    axes.tick_params(axis="x", rotation=30)


def _densification(axes: "Axes", steps: Sequence[tuple[str, Sparsity]]) -> None:
    for number, (name, each) in enumerate(steps):
        colour = _COLOURS[number % len(_COLOURS)]
        ranks = range(1, len(each.densification) + 1)
        axes.plot(ranks, each.densification, "o", color=colour, label=name)
        axes.plot(ranks, [each.profile.grown(k) for k in ranks], "-", color=colour, linewidth=0.8)
    axes.plot(ranks, ranks, ":", color="#8c959f", label="nothing in common")
    axes.set(title="Densification (lines: one overlap for all)", xlabel="ranks added up")
    axes.legend(fontsize="small")


def _skewness(axes: "Axes", steps: Sequence[tuple[str, Sparsity]]) -> None:
    names = [f"{name}\ndensity {100 * each.density:.3g} %" for name, each in steps]
    axes.bar(names, [each.skewness for _, each in steps], color=_COLOURS[0])
    axes.axhline(1.0, color="#8c959f", linewidth=0.8)
    axes.set(title="Skewness: the densest range over the mean")
    axes.tick_params(axis="x", rotation=30)


def _imbalance(axes: "Axes", steps: Sequence[tuple[str, Sparsity]]) -> None:
    maps = ("hashed", "striped", "cut")
    width = 0.8 / len(maps)
    for place, kind in enumerate(maps):
        at = [number + (place - 1) * width for number in range(len(steps))]
        worst = [max(getattr(each, kind).push, getattr(each, kind).pull) for _, each in steps]
        axes.bar(at, worst, width, color=_COLOURS[place], label=kind)
    axes.set_xticks(range(len(steps)), [name for name, _ in steps], rotation=30)
    axes.axhline(1.1, color="#8c959f", linewidth=0.8)
    axes.set(title="Imbalance: the busiest owner over the mean")
    axes.legend(fontsize="small")
