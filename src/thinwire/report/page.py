"""The page: sections of charts, a table and words, as one HTML file without any reference to elsewhere."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from thinwire.report import debts, quality, traffic
from thinwire.report.chart import Section
from thinwire.report.png import COLORS, possible, save
from thinwire.report.read import Method, ReportError, Story, read
from thinwire.report.svg import draw
from thinwire.version import __version__

_DARK = ("#7ba4f4", "#f0a860", "#55c79b", "#ec7063", "#b794f0", "#c8a878", "#f08cc8", "#a0a8b4", "#cdd464", "#68d4e4")


def sections(story: Story) -> list[Section]:
    """Everything there is to show, in the order of interest.

    Args:
        story: What is known.
    """
    colors = {name: number % (len(COLORS) - 1) for number, name in enumerate(story.methods)}
    return [
        Section(title="Who is there first", charts=[quality.headline(story, colors)]),
        Section(
            title="Learning",
            charts=[
                quality.over_time(story, colors),
                quality.over_bytes(story, colors),
                quality.held_out(story, colors),
                quality.front(story, colors),
            ],
        ),
        Section(
            title="Time and traffic",
            charts=[
                traffic.where_time_went(story),
                traffic.bytes_sent(story, colors),
                traffic.plan_over_wire(story, colors),
                traffic.predictions(story, colors),
            ],
        ),
        Section(
            title="What is sent and what is owed",
            charts=[
                traffic.densities(story, colors),
                debts.norms(story, colors),
                debts.waits(story, colors),
                debts.histogram(story, colors),
            ],
        ),
    ]


def write(runs: Sequence[str | Path], path: Path, *, pictures: bool = True) -> list[Path]:
    """Write the page, and the charts as pictures beside it.

    Args:
        runs: Folders of runs.
        path: Of the page.
        pictures: Draw PNG files too, where matplotlib is installed.

    Returns:
        What was written, the page first.

    Raises:
        ReportError: There is nothing to report on, or jinja2 is missing.
    """
    if find_spec("jinja2") is None:
        raise ReportError("a report needs jinja2: write pip install 'thinwire[report]'")
    story = read(runs)
    shown = sections(story)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(story, shown))
    written = [path]
    if pictures and possible():
        for chart in (chart for section in shown for chart in section.charts if not chart.missing):
            written.append(path.with_name(f"{path.stem}-{chart.key}.png"))
            save(chart, written[-1])
    return written


def render(story: Story, shown: Sequence[Section]) -> str:
    """The page as text.

    Args:
        story: What is known.
        shown: What to show of it.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("thinwire.report", "pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("report.html").render(
        began=story.began,
        when=datetime.fromtimestamp(story.began.time, UTC).strftime("%Y-%m-%d %H:%M UTC"),
        sections=shown,
        drawings={c.key: draw(c) for section in shown for c in section.charts if not c.missing},
        methods=[_row(story, method) for method in story.methods.values() if method.courses],
        stopped=story.stopped,
        ceiling=traffic.ceiling(story),
        light=COLORS,
        dark=_DARK,
        version=__version__,
    )


def _row(story: Story, method: Method) -> dict[str, str]:
    found = method.qualities
    spread = f" ({min(found):.4g}–{max(found):.4g})" if len(found) > 1 else ""
    learned = "no model" if method.is_floor else f"{method.quality:.4g}{spread}" if found else "not examined"
    sent = method.bytes_sent
    ends = [course.end for course in method.courses if course.end is not None]
    replicas = "no model" if method.is_floor else "yes" if ends and all(end.agree for end in ends) else "not known"
    if not method.is_floor and any(not end.agree for end in ends):
        replicas = "NO"
    return {
        "name": method.name,
        "words": method.words,
        "rate": f"{method.rate:g}" if method.rate else "",
        "quality": learned,
        "pace": f"{1e3 * method.pace:,.0f}" if method.pace > 0.1 else f"{1e3 * method.pace:.3g}",
        "sent": f"{sent / 1e6:.3g}" if sent is not None else "not counted",
        "replicas": replicas,
    }
