"""Figures of an analysis as pictures. Needs matplotlib, the extra ``plot``."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from thinwire.errors import ThinwireError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which stay apart for all kinds of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


class PictureError(ThinwireError, RuntimeError):
    """A picture cannot be drawn here."""


class Sheet:
    """Panels side by side, one picture."""

    def __init__(self, panels: int, height: float = 3.4) -> None:
        """Begin an empty picture.

        Args:
            panels: How many.
            height: In inches.

        Raises:
            PictureError: matplotlib is missing.
        """
        if find_spec("matplotlib") is None:
            raise PictureError("pictures need matplotlib: write pip install 'thinwire[plot]'")
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._figure = Figure(figsize=(4.2 * panels, height), layout="constrained", facecolor="white")
        FigureCanvasAgg(self._figure)
        self.axes: list[Axes] = [self._figure.add_subplot(1, panels, place + 1) for place in range(panels)]

    def save(self, path: Path) -> None:
        """Write the picture; the same figures give the same bytes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._figure.savefig(path, dpi=110, metadata={"Software": None} if path.suffix == ".png" else None)


def curves(axes: "Axes", steps: Sequence[float], lines: Mapping[str, Sequence[float]], **labels: Any) -> None:
    """Draw some quantities over the steps, on a logarithmic scale.

    Args:
        axes: Where.
        steps: The abscissas of all lines.
        lines: By name; values of zero are left out.
        **labels: Of matplotlib's ``Axes.set``.
    """
    for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
        axes.plot(steps, [value if value > 0.0 else float("nan") for value in values], label=name, color=colour, lw=1.2)
    axes.set_yscale("log")
    axes.set(xlabel="step", **labels)
    axes.legend(fontsize=7)


def histogram(axes: "Axes", edges: Sequence[float], counts: Sequence[int], **labels: Any) -> None:
    """Draw one histogram beside the normal distribution, on a logarithmic scale.

    Args:
        axes: Where.
        edges: Of the bins, in standard deviations.
        counts: In each bin.
        **labels: Of matplotlib's ``Axes.set``.
    """
    normal, total = NormalDist(), sum(counts)
    expected = [total * (normal.cdf(b) - normal.cdf(a)) for a, b in pairwise(edges)]
    axes.stairs(counts, edges, color=COLOURS[0], fill=True, alpha=0.6, label="measured")
    axes.stairs(expected, edges, color=COLOURS[1], label="normal")
    axes.set_yscale("log")
    axes.set(ylim=(0.5, None), xlabel="standard deviations", **labels)
    axes.legend(fontsize=7)
