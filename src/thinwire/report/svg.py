"""Charts as SVG that takes its colors from the page, so that one drawing serves light and dark."""

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise

from thinwire.report.chart import Bar, Chart, Line

WIDTH, HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 14, 48
_ROW = 34
_NAMES = 230  # width of the names beside bars
_LETTER = 6.4  # width of a letter, about
_LONG = 60
Scale = Callable[[float], float]


def draw(chart: Chart) -> str:
    """One SVG element.

    Args:
        chart: With lines or bars.
    """
    return _bars(chart) if chart.bars else _lines(chart)


def ticks(low: float, high: float, count: int = 6) -> list[float]:
    """Round numbers between two others.

    Args:
        low: The least.
        high: The most.
        count: About how many.
    """
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def powers(low: float, high: float) -> list[float]:
    """Powers of ten between two numbers; their twos and fives, or any round numbers, where those are few.

    Args:
        low: The least, above 0.
        high: The most.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1,) if high / low > 1e3 else (1, 2, 5)
    found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    inside = [tick for tick in found if low * 0.999 <= tick <= high * 1.001]
    return inside if len(inside) > 2 else ticks(low, high)


def short(value: float) -> str:
    """A number as people say it: 1500 is 1.5k.

    Args:
        value: Any.
    """
    for limit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{sign}"
    return f"{value:.3g}"


def _limits(values: Sequence[float], *, log: bool) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value) and (value > 0 or not log)] or [0.1, 1.0]
    low, high = min(finite), max(finite)
    if log:
        return low / 1.1, high * 1.1
    if low == high:
        low, high = low - 0.5 * abs(low or 1.0), high + 0.5 * abs(high or 1.0)
    margin = 0.04 * (high - low)
    return (0.0 if 0 <= low < 0.3 * high else low - margin), high + margin


def _scale(limits: tuple[float, float], ends: tuple[float, float], *, log: bool) -> Scale:
    low, high = (math.log10(limit) for limit in limits) if log else limits

    def place(value: float) -> float:
        at = math.log10(max(value, 1e-300)) if log else value
        return ends[0] + (ends[1] - ends[0]) * min(1.0, max(0.0, (at - low) / (high - low)))

    return place


def _lines(chart: Chart) -> str:
    xs = [x for line in chart.lines for x in line.x] + [mark.x for mark in chart.marks]
    ys = [y for line in chart.lines for y in (*line.y, *line.low, *line.high)]
    across, up = _limits(xs, log=chart.log_x), _limits(ys, log=chart.log_y)
    x = _scale(across, (_LEFT, WIDTH - _RIGHT), log=chart.log_x)
    y = _scale(up, (HEIGHT - _BOTTOM, _TOP), log=chart.log_y)
    parts = []
    for tick in powers(*up) if chart.log_y else ticks(*up):
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(_text(_LEFT - 8, y(tick) + 4, short(tick), "end"))
    for tick in powers(*across) if chart.log_x else ticks(*across):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        parts.append(_text(x(tick), HEIGHT - _BOTTOM + 18, short(tick), "middle"))
    parts.append(_text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 8, chart.x_label, "middle"))
    middle = (HEIGHT - _BOTTOM + _TOP) / 2
    parts.append(_text(14, middle, chart.y_label, "middle", f' transform="rotate(-90 14 {middle:.0f})"'))
    parts += [_curve(line, x, y) for line in chart.lines]
    for number, mark in enumerate(chart.marks):
        at, top = x(mark.x), _TOP + 12 + 14 * (number % 8)
        anchor = "end" if at > WIDTH / 2 else "start"
        parts.append(
            f'<line class="mark s{mark.color}" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
        )
        parts.append(_text(at + (-4 if anchor == "end" else 4), top, mark.name, anchor))
    return _frame(chart, HEIGHT, parts)


def _curve(line: Line, x: Scale, y: Scale) -> str:
    points = [(x(a), y(b)) for a, b in zip(line.x, line.y, strict=True) if math.isfinite(b)]
    if line.steps:
        points = [corner for a, b in pairwise(points) for corner in (a, (b[0], a[1]))] + points[-1:]
    drawn = []
    if line.low and max(h - low for low, h in zip(line.low, line.high, strict=True)) > 0:
        edge = [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(line.x, line.high, strict=True)]
        edge += [f"{x(a):.1f},{y(b):.1f}" for a, b in reversed(list(zip(line.x, line.low, strict=True)))]
        drawn.append(f'<polygon class="band f{line.color}" points="{" ".join(edge)}"/>')
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    drawn.append(f'<polyline class="curve s{line.color}" points="{path}"><title>{escape(line.name)}</title></polyline>')
    if line.dots:
        drawn += [f'<circle class="f{line.color}" cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in points]
    return "".join(drawn)


def _bars(chart: Chart) -> str:
    height = _TOP + _ROW * len(chart.bars) + _BOTTOM
    end = _room(chart.bars)
    x = _scale((0.0, end), (_NAMES, WIDTH - _RIGHT), log=False)
    parts = []
    for tick in ticks(0.0, end):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        parts.append(_text(x(tick), height - _BOTTOM + 18, short(tick), "middle"))
    parts.append(_text((_NAMES + WIDTH - _RIGHT) / 2, height - 8, chart.x_label, "middle"))
    for row, bar in enumerate(chart.bars):
        top, done = _TOP + row * _ROW, 0.0
        parts.append(_text(_NAMES - 8, top + _ROW / 2 + 4, _cut(bar.name), "end"))
        for name, length, color in bar.parts:
            left, right = x(done), x(done + length)
            done += length
            parts.append(
                f'<rect class="f{color}" x="{left:.1f}" y="{top + 5}" width="{max(0.0, right - left):.1f}" '
                f'height="{_ROW - 10}"><title>{escape(name or bar.name)}: {short(length)}</title></rect>'
            )
        parts.append(_text(x(done) + 6, top + _ROW / 2 + 4, bar.note, "start"))
    return _frame(chart, height, parts)


def _room(bars: Sequence[Bar]) -> float:
    """How far the axis goes, so that the note behind each bar has room."""
    wide = WIDTH - _RIGHT - _NAMES
    room = [bar.total / (1 - (10 + _LETTER * min(len(bar.note), _LONG)) / wide) for bar in bars]
    return max(room, default=1.0) or 1.0


def _frame(chart: Chart, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" id="chart-{chart.key}" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(chart.title, quote=True)}">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>' if text else ""


def _cut(text: str, most: int = 32) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
