"""What every picture of a benchmark shares: colours, axes, files. Needs matplotlib."""

import io
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from thinwire.bench.errors import BenchError

_KINDS = {".png", ".svg"}

# Okabe and Ito's colours, which stay apart for all kinds of colour vision, each with a shape of its own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHAPES = ("o", "s", "^", "D", "v", "P", "X")
INK, FAINT = "#1f2328", "#8c959f"
_NIGHT = {INK: "#e6edf3", FAINT: "#6e7681"}

SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "thinwire", "text.color": INK, "axes.labelcolor": INK}


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


def plain(axes: Any) -> None:
    """Take away what distracts: the frame above and to the right, strong grids, the background.

    Args:
        axes: Of matplotlib.
    """
    axes.grid(axis="both", color=FAINT, alpha=0.3, linewidth=0.5)
    axes.tick_params(color=FAINT, labelcolor=INK)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(FAINT)
    axes.patch.set_visible(False)


def save(figure: Any, path: Path, title: str, description: str) -> None:
    """Write the file.

    Args:
        figure: Of matplotlib.
        path: Of the picture.
        title: For those who cannot see it.
        description: The same, at length.

    Raises:
        BenchError: It cannot be written there.
    """
    try:
        if path.suffix == ".png":
            figure.savefig(path, dpi=150, facecolor="white")
            return
        figure.patch.set_visible(False)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
        path.write_text(_readable(buffer.getvalue(), title, description))
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error.strerror}") from error


def _readable(svg: str, title: str, description: str) -> str:
    """Say in words what the picture shows, and let it be read on a dark page too."""
    night = "".join(
        f'[style*="{thing}: {ink}"] {{ {thing}: {light} !important }} '
        for ink, light in _NIGHT.items()
        for thing in ("fill", "stroke")
    )
    inside = (
        f"<title>{escape(title)}</title>\n"
        f"<desc>{escape(description)}</desc>\n<style>@media (prefers-color-scheme: dark) {{ {night}}}</style>\n"
    )
    svg = re.sub(r"<\?xml.*?\?>\s*|<!DOCTYPE.*?>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + "\n" + inside, svg, count=1)
