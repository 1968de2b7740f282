"""Every piece of Python on every page runs on two real ranks and prints what the page says it prints."""

import os
import random
import re
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block, blocks, pages
from tests.docs.program import run_page
from thinwire.lab.ranks import RankFailed, run_ranks

WORLD = 2
LANGUAGES = {"python", "sh", "text", ""}
PAGES = [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages()]


def free_port() -> int:
    """A port below those that the system gives away by itself, so that nobody takes it meanwhile."""
    for _ in range(100):
        port = random.randint(20000, 29999)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")


def run(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """A page's Python blocks and what each printed on rank 0."""
    python = [block for block in blocks(page) if block.language == "python"]
    if not python:
        return []
    printed = run_ranks(run_page, WORLD, python, str(folder), free_port(), timeout=100.0)
    return list(zip(python, printed[0], strict=True))


def promised(page: Path) -> dict[int, str]:
    """What pages say is printed: a ``text`` block right behind a ``python`` block, by the line of the latter."""
    return {
        first.line: second.code
        for first, second in pairwise(blocks(page))
        if first.language == "python" and second.language == "text"
    }


@pytest.mark.parametrize("page", PAGES)
def test_python_runs_and_prints_what_is_promised(page: Path, tmp_path: Path) -> None:
    said = {block.line: printed for block, printed in run(page, tmp_path)}
    for line, text in promised(page).items():
        assert said[line] == text, f"{page.name}:{line} prints something else"


@pytest.mark.parametrize("page", PAGES)
def test_shell_commands_run_or_say_why_not(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language == "sh" and not block.norun:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block.code],
                cwd=ROOT,
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, f"{page.name}:{block.line}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES)
def test_blocks_are_of_a_language_that_is_checked(page: Path) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{page.name}:{block.line}: {block.language!r}"
        if block.language == "python":
            assert not block.norun, f"{page.name}:{block.line}: Python always runs"


@pytest.mark.parametrize("page", PAGES)
def test_make_targets_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE):
        assert target in known, f"{page.name}: there is no `make {target}`"


def test_a_page_that_is_wrong_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\n```python\nraise ValueError(x)\n```\n")
    with pytest.raises(RankFailed, match=r'page.md", line 8'):
        run(page, tmp_path)


def test_what_a_page_prints_is_compared(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(6 * 7)\n```\n\n```text\n42\n```\n\n```text\nno output of anything\n```\n")
    assert promised(page) == {1: "42\n"}
    assert [printed for _, printed in run(page, tmp_path)] == ["42\n"]
