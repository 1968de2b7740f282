"""Charts as plain records, so that the page and the pictures beside it are drawn from the same figures."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve.

    Attributes:
        name: For the legend.
        x: Increasing.
        y: One for each x.
        low: The lower edge of a band, or empty.
        high: Its upper edge.
        color: Its number.
        dots: Show each point too.
        steps: Hold every value until the next one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    color: int = 0
    dots: bool = False
    steps: bool = False


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A horizontal bar, of one or several parts.

    Attributes:
        name: Beside it.
        parts: The name, the length and the color of each.
        note: Behind it.
    """

    name: str
    parts: Sequence[tuple[str, float, int]]
    note: str = ""

    @property
    def total(self) -> float:
        """The length of the whole."""
        return sum(length for _, length, _ in self.parts)


@dataclass(frozen=True, kw_only=True)
class Mark:
    """Something that happened at one x.

    Attributes:
        x: Where.
        name: What, in a word or two.
        color: Its number.
    """

    x: float
    name: str
    color: int = 0


@dataclass(frozen=True, kw_only=True)
class Chart:
    """One picture with its words; or the reason why there is none.

    Attributes:
        key: A short name, unique on the page.
        title: Above it.
        words: What it shows and how to read it: paragraphs of plain text.
        x_label: Of the horizontal axis.
        y_label: Of the vertical axis; empty for bars.
        lines: Curves.
        bars: Bars; a chart has either.
        marks: On curves.
        log_x: Powers of ten on the horizontal axis.
        log_y: The same on the vertical one.
        missing: Why there is nothing to show.
    """

    key: str
    title: str
    words: Sequence[str] = ()
    x_label: str = ""
    y_label: str = ""
    lines: Sequence[Line] = ()
    bars: Sequence[Bar] = ()
    marks: Sequence[Mark] = ()
    log_x: bool = False
    log_y: bool = False
    missing: str = ""

    @property
    def legend(self) -> dict[str, int]:
        """The names that need a color to be told apart, in order."""
        if self.lines:
            return {line.name: line.color for line in self.lines}
        named = {part: color for bar in self.bars for part, _, color in bar.parts if part}
        return named if len(named) > 1 else {}


@dataclass(frozen=True, kw_only=True)
class Section:
    """Charts that belong together.

    Attributes:
        title: Above them.
        charts: In order.
    """

    title: str
    charts: Sequence[Chart] = field(default_factory=tuple)
