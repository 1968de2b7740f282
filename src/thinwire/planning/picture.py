"""Forecasts as a picture: step times over hosts and over bandwidths. Needs matplotlib, imported when it is drawn."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thinwire.control.probing import Link, matrix
from thinwire.errors import PlanError
from thinwire.planning.forecast import HOSTS, Answer, Question, over_bandwidths, over_hosts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which stay apart for all kinds of colour vision, each with a shape of its own.
_MARKS = {
    "dense": ("#0072B2", "o"),
    "fp16": ("#56B4E9", "s"),
    "PowerSGD-4": ("#E69F00", "^"),
    "thinwire": ("#D55E00", "D"),
}
_BANDWIDTHS = tuple(float(each) for each in np.geomspace(1, 1e5, 21))


def check(path: Path) -> None:
    """Nothing, if a picture can be drawn there.

    Raises:
        PlanError: It is of no known kind, there is no such folder, or matplotlib is missing.
    """
    if path.suffix not in {".png", ".svg"} or not path.resolve().parent.is_dir():
        raise PlanError(f"{path} cannot be drawn; write a name in a folder that is there, that ends with .png or .svg")
    if find_spec("matplotlib") is None:
        raise PlanError("pictures need matplotlib: write pip install 'thinwire[plot]'")


def draw(question: Question, hosts: int, path: Path) -> None:
    """Draw step times over hosts at the question's network, and over bandwidths on so many hosts.

    Raises:
        PlanError: It cannot be drawn there.
    """
    check(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    _lines(left, HOSTS, over_hosts(question))
    left.set_xlabel("hosts")
    left.set_ylabel("seconds of a step (predicted)")
    left.set_title(str(question.network), fontsize="medium")
    _lines(right, _BANDWIDTHS, over_bandwidths(question, hosts, _BANDWIDTHS))
    right.set_xlabel("Mbit/s of a link")
    right.set_title(f"{hosts} hosts, {1e3 * question.network.latency:.3g} ms a round", fontsize="medium")
    right.axvline(8e-6 / question.network.per_byte, color="#8c959f", linewidth=0.8, linestyle=":")
    left.axvline(hosts, color="#8c959f", linewidth=0.8, linestyle=":")
    left.legend(frameon=False)
    figure.savefig(path)


def _lines(axes: "Axes", across: Sequence[float], answers: Sequence[Answer]) -> None:
    for name, (colour, shape) in _MARKS.items():
        seconds = [each.seconds if name == "thinwire" else each.peers[name] for each in answers]
        axes.plot(across, seconds, color=colour, marker=shape, markersize=4, linewidth=1.3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, which="major", linewidth=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def draw_links(links: Sequence[Link], world: int, path: Path) -> None:
    """Draw what was probed: latency and bandwidth from each rank to each other one.

    Raises:
        PlanError: It cannot be drawn there.
    """
    check(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 + 1.1 * world, 1.6 + 0.5 * world), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    whats = (
        ("milliseconds of a round", lambda link: 1e3 * link.latency),
        ("Mbit/s", lambda link: 8e-6 / link.per_byte),
    )
    for axes, (title, what) in zip(panels, whats, strict=True):
        rows = [[math.nan if cell is None else cell for cell in row] for row in matrix(list(links), world, what)]
        axes.imshow(rows, cmap="viridis")
        for source, row in enumerate(rows):
            for target, value in enumerate(row):
                if not math.isnan(value):
                    axes.text(target, source, f"{value:.3g}", ha="center", va="center", color="white", fontsize=8)
        axes.set_title(title, fontsize="medium")
        axes.set_xlabel("to rank")
        axes.set_ylabel("from rank")
        axes.set_xticks(range(world))
        axes.set_yticks(range(world))
    figure.savefig(path)
