"""The page of a run: everything is there, or the reason why it is not; nothing comes from elsewhere."""

import re
import shutil
import xml.etree.ElementTree as xml
from dataclasses import replace
from pathlib import Path

import pytest

from tests.report.story import STEPS, TOP, course, whole, written
from thinwire.observe.records import Began, Ended, Event, Examined, Owing, Predicted, Stepped, Wired
from thinwire.report import page, quality, traffic
from thinwire.report.chart import Chart
from thinwire.report.read import ReportError, read
from thinwire.report.svg import powers, short, ticks

pytest.importorskip("jinja2", reason="the extra report is not installed")


def charts(folder: Path) -> dict[str, Chart]:
    return {chart.key: chart for section in page.sections(read([folder])) for chart in section.charts}


def test_everything_is_shown_of_a_run_that_has_everything(tmp_path: Path) -> None:
    run = written(tmp_path, whole())
    found = charts(run)
    assert not [key for key, chart in found.items() if chart.missing]
    files = page.write([run], tmp_path / "report.html")
    text = files[0].read_text()
    assert len(text) < 2_000_000
    for key in found:
        assert f'<figure id="{key}">' in text
        assert f'id="chart-{key}"' in text
    assert "a model &lt;b&gt;on&lt;/b&gt; text &amp; more" in text.replace("A model", "a model")
    pictures = {file.name for file in files[1:]}
    if page.possible():
        assert pictures == {f"report-{key}.png" for key, chart in found.items() if not chart.missing}
        assert all(file.stat().st_size > 5000 for file in files[1:])


def test_nothing_comes_from_elsewhere(tmp_path: Path) -> None:
    text = page.write([written(tmp_path, whole())], tmp_path / "report.html", pictures=False)[0].read_text()
    assert not re.findall(r"https?:|//[a-z]|@import|url\(|<script|src=", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]


def test_drawings_are_whole(tmp_path: Path) -> None:
    for chart in charts(written(tmp_path, whole())).values():
        if not chart.missing:
            root = xml.fromstring(page.draw(chart))
            curves = root.findall("polyline") + root.findall("rect")
            assert len(curves) >= len(chart.lines or chart.bars)
            assert "nan" not in page.draw(chart)


def test_time_to_quality_is_measured_against_dense(tmp_path: Path) -> None:
    story = read([written(tmp_path, whole())])
    assert quality.target(story) == pytest.approx(3.01 * 1.01)
    (dense, top, half) = charts(tmp_path)["headline"].bars
    assert dense.total == pytest.approx(59.5, abs=0.6)
    assert top.total == pytest.approx(dense.total / 5)
    assert "5.0x as fast" in top.note
    assert half.name == "fp16"
    assert traffic.ceiling(story) == pytest.approx(10.0)


def test_a_method_that_does_not_get_there_says_so(tmp_path: Path) -> None:
    def worse(event: Event) -> Event:
        if isinstance(event, Examined) and event.method == TOP:
            return replace(event, quality=(event.quality or 0.0) + 1.0)
        return event

    bars = charts(written(tmp_path, map(worse, whole())))["headline"].bars
    assert "not reached (ends at 4.01)" in {bar.name: bar.note for bar in bars}[TOP]


@pytest.mark.parametrize(
    ("key", "kinds", "why"),
    [
        ("headline", Examined, "No model was examined"),
        ("held-out", Examined, "No model was examined"),
        ("front", Examined, "No model was examined"),
        ("plan", Wired, "The wire's bandwidth is not known"),
        ("residual", Owing, "owes anything"),
        ("layers", Owing, "owes anything"),
        ("histogram", Owing, "owes anything"),
        ("predicted", Predicted, "No method in this run predicted"),
    ],
)
def test_what_is_missing_is_explained(key: str, kinds: type, why: str, tmp_path: Path) -> None:
    run = written(tmp_path, (event for event in whole() if not isinstance(event, kinds)))
    assert why in charts(run)[key].missing
    assert why in page.write([run], tmp_path / "r.html", pictures=False)[0].read_text().replace("&#39;", "'")


def test_a_stopped_run_has_no_headline(tmp_path: Path) -> None:
    early = (e for e in whole() if not isinstance(e, Stepped | Examined | Owing) or e.step < 20)
    run = written(tmp_path, (replace(e, stopped=True) if isinstance(e, Ended) else e for e in early))
    assert "stopped before its last step" in charts(run)["headline"].missing
    assert 'id="stopped"' in page.write([run], tmp_path / "r.html", pictures=False)[0].read_text()


def test_loopback_is_not_called_thin(tmp_path: Path) -> None:
    run = written(tmp_path, whole(thin=False, network="loopback", seeds=(0,)))
    text = page.write([run], tmp_path / "r.html", pictures=False)[0].read_text()
    assert 'id="not-thin"' in text
    assert 'id="one-seed"' in text


def test_a_step_that_was_done_again_counts_once(tmp_path: Path) -> None:
    again = (replace(event, seconds=7.0) for event in course(TOP, 0) if isinstance(event, Stepped) and event.step > 50)
    run = written(tmp_path, iter([*whole(), *again]))
    steps = read([run]).methods[TOP].seeds[0].steps
    assert len(steps) == STEPS
    assert steps[STEPS - 1].seconds == 7.0


def test_runs_are_laid_side_by_side(tmp_path: Path) -> None:
    one = written(tmp_path / "a", whole())
    two = written(tmp_path / "b", whole())
    assert len(read([one, two]).methods[TOP].seeds) == 6
    other = written(tmp_path / "c", whole(task="fashion"))
    with pytest.raises(ReportError, match="report on them apart"):
        read([one, other])


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="cannot be read"):
        read([tmp_path])
    (tmp_path / "events.jsonl").write_text("nonsense\n")
    with pytest.raises(ReportError, match="tells of no run"):
        read([tmp_path])
    only = written(tmp_path / "only", (event for event in whole() if isinstance(event, Began)))
    with pytest.raises(ReportError, match="before its first step"):
        read([only])


def test_axes_have_round_numbers() -> None:
    assert ticks(0.0, 10.0) == [0, 2, 4, 6, 8, 10]
    assert ticks(0.13, 0.41) == pytest.approx([0.15, 0.2, 0.25, 0.3, 0.35, 0.4])
    assert ticks(5.0, 5.0) == [5.0]
    assert powers(0.9, 120.0) == [1, 2, 5, 10, 20, 50, 100]
    assert powers(1.0, 1e6) == [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]
    assert [short(number) for number in (1500, 2.5e6, 0.25, 0)] == ["1.5k", "2.5M", "0.25", "0"]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 360)])
def test_a_browser_shows_it_without_complaint(scheme: str, width: int, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium here")
    run = written(tmp_path, whole())
    path = page.write([run], tmp_path / "report.html", pictures=False)[0]
    complaints, requests = [], []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        tab.goto(path.as_uri())
        boxes = [(figure.id, tab.locator(f"#{figure.id} svg").count()) for figure in figures(run)]
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        overflow = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        colors = {tab.locator("polyline.s0").first.evaluate("e => getComputedStyle(e).stroke")}
        browser.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    assert dict(boxes) == {figure.id: int(not figure.missing) for figure in figures(run)}
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 24, 31)")
    assert overflow <= 0, "the page itself does not scroll sideways on a phone"
    assert "none" not in colors


class Figure:
    """A figure as the page should have it."""

    def __init__(self, chart: Chart) -> None:
        self.id = chart.key
        self.missing = chart.missing


def figures(run: Path) -> list[Figure]:
    return [Figure(chart) for chart in charts(run).values()]
