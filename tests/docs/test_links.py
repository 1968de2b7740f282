"""No link of any page leads nowhere, and every page can be reached."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import ROOT, anchors, links, pages

DOCS = ROOT / "docs"
PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()]


def dead(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in links(page):
        if re.match(r"https://[\w.-]+(/|$)", link):
            continue  # elsewhere: tests need no network
        name, _, fragment = link.partition("#")
        target = page if not name else (page.parent / name).resolve()
        outside = page.is_relative_to(DOCS) and not target.is_relative_to(DOCS)
        if outside or not target.exists() or (fragment and fragment not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: Path) -> None:
    assert dead(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One `part`, and more\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#one-part-and-more) [c](#here) [d](https://example.org/x)\n"
        "[e](none.md) [f](other.md#two) [g](#there) [h](http://example.org) ![i](none.svg)\n"
        '<img src="none.png">\n```text\n[in a block](none.md)\n```\n`[in a span](none.md)`\n'
    )
    assert dead(page) == ["none.md", "other.md#two", "#there", "http://example.org", "none.svg", "none.png"]


def strangers(text: str) -> list[str]:
    """Files of the project that a page names in code font, and that do not exist."""
    found = []
    for name in re.findall(r"`([\w./-]+(?:\.py|\.yml|\.toml|\.md|/))`", text):
        places = (ROOT / name, ROOT / "src" / "thinwire" / name, ROOT / "native" / name)
        if not any(place.exists() for place in places):
            found.append(name)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: Path) -> None:
    # The three examples of new parts name files that are still to be written.
    written = {"every_other.py", "bytes_apart.py", "exact_sum.py"} if page.name == "CONTRIBUTING.md" else set()
    assert [name for name in strangers(page.read_text()) if Path(name).name not in written] == []
    assert strangers("see `carry.py`, `nowhere.py`, `tests/laws`, `selectors/` and `nothing/`") == [
        "nowhere.py",
        "nothing/",
    ]


def test_every_page_of_the_site_is_in_its_table_of_contents() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    listed = re.findall(r": ([\w/-]+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("figure", [pytest.param(path, id=path.name) for path in DOCS.rglob("*.svg")])
def test_figures_are_readable_by_all(figure: Path) -> None:
    tree = ElementTree.parse(figure).getroot()
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert {"title", "desc"} <= tags, "a figure says in words what it shows"
    assert "prefers-color-scheme: dark" in figure.read_text()
    assert not re.search(r"https?://(?!www\.w3\.org)", figure.read_text()), "a figure loads nothing"
