"""The same charts as pictures, for slides and papers. Needs matplotlib."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from thinwire.report.chart import Chart

COLORS = ("#3b6fd4", "#d9822b", "#2a9d6f", "#c0392b", "#8e5bd0", "#8a6d3b", "#d05ba3", "#6b7280", "#9aa23a", "#2ba3b5")


def possible() -> bool:
    """Whether there is something to draw with."""
    return find_spec("matplotlib") is not None


def save(chart: Chart, path: Path) -> None:
    """Draw a chart into a file.

    Args:
        chart: With lines or bars.
        path: Of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    (_bars if chart.bars else _lines)(axes, chart)
    axes.set_title(chart.title, fontsize=11)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(alpha=0.25)
    figure.savefig(path)


def _lines(axes: Any, chart: Chart) -> None:
    for line in chart.lines:
        color = COLORS[line.color % len(COLORS)]
        style = {"drawstyle": "steps-post"} if line.steps else {}
        axes.plot(line.x, line.y, color=color, label=line.name, marker="o" if line.dots else None, ms=3, **style)
        if line.low:
            axes.fill_between(line.x, line.low, line.high, color=color, alpha=0.2, lw=0)
    for mark in chart.marks:
        axes.axvline(mark.x, color=COLORS[mark.color % len(COLORS)], ls=":", lw=1)
    axes.set_xscale("log" if chart.log_x else "linear")
    axes.set_yscale("log" if chart.log_y else "linear")
    axes.legend(fontsize=8)


def _bars(axes: Any, chart: Chart) -> None:
    names = [bar.name for bar in chart.bars]
    for row, bar in enumerate(chart.bars):
        done = 0.0
        for _, length, color in bar.parts:
            axes.barh(row, length, left=done, color=COLORS[color % len(COLORS)])
            done += length
        axes.text(done, row, f" {bar.note}", va="center", fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    if chart.legend:
        handles = [axes.barh(0, 0, color=COLORS[color % len(COLORS)]) for color in chart.legend.values()]
        axes.legend(handles, chart.legend.keys(), fontsize=8)
