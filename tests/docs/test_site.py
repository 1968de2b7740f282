"""The site builds without a warning, and a page with a dead reference does not pass."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

pytest.importorskip("zensical", reason="the extra `docs` is not installed")


def build(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    return tmp_path


def test_the_site_builds(copy: Path) -> None:
    done = build(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in (copy / "docs").rglob("*.md"):
        name = "" if page.stem == "index" else page.relative_to(copy / "docs").with_suffix("")
        assert (copy / "site" / name / "index.html").is_file()
    api = (copy / "site" / "api" / "index.html").read_text()
    assert "Let thinwire synchronise a DDP model" in api, "docstrings are on the page"
    assert "Unreleased" in (copy / "site" / "changelog" / "index.html").read_text()


@pytest.mark.parametrize("mistake", ["[a page](nowhere.md)", "[a part](plans.md#nothing)", "::: thinwire.nothing"])
def test_a_mistake_stops_it(copy: Path, mistake: str) -> None:
    with (copy / "docs" / "index.md").open("a") as page:
        page.write(f"\n{mistake}\n")
    assert build(copy).returncode != 0
