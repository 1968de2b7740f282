"""The examples run as their first lines say, wherever their packages are installed."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Block
from tests.docs.program import run_page
from tests.docs.test_pages import free_port
from thinwire.lab.ranks import RankFailed, run_ranks

EXAMPLES = ROOT / "examples"
NEEDS = {
    "ddp": (),
    "resume": (),
    "lightning_callback": ("lightning",),
    "accelerate_prepare": ("accelerate",),
    "transformers_callback": ("transformers", "accelerate"),
    "ray_train": ("ray",),
}


def need(name: str) -> None:
    missing = [package for package in NEEDS[name] if find_spec(package) is None]
    if missing:
        pytest.skip(f"{' and '.join(missing)} is not installed")


def run(name: str, folder: Path, words: tuple[str, ...] = ()) -> str:
    """What rank 0 of two prints."""
    text = (EXAMPLES / f"{name}.py").read_text().replace("sys.argv[1]", repr(words[0]) if words else "None")
    block = Block(path=str(EXAMPLES / f"{name}.py"), line=0, language="python", code=text)
    return run_ranks(run_page, 2, [block], str(folder), free_port(), timeout=90)[0][0]


def test_every_example_is_listed() -> None:
    files = {path.stem for path in EXAMPLES.glob("*.py")}
    assert files == set(NEEDS)
    page = (EXAMPLES / "README.md").read_text()
    assert set(re.findall(r"\| `(\w+)\.py`", page)) == files


def test_the_smallest_program(tmp_path: Path) -> None:
    said = run("ddp", tmp_path)
    assert re.fullmatch(r"loss \d\.\d+, \d+ bytes sent, density 0\.05\d\n", said)


def test_a_resumed_program(tmp_path: Path) -> None:
    folder = str(tmp_path / "checkpoints")
    first, second = (run("resume", tmp_path, (folder,)) for _ in range(2))
    assert first.startswith("step 20,")
    assert second.startswith("step 40,")
    (tmp_path / "checkpoints" / "rank-1.pt").write_bytes(b"broken")
    with pytest.raises(RankFailed, match="rank 1"):
        run("resume", tmp_path, (folder,))


@pytest.mark.parametrize("name", ["accelerate_prepare", "transformers_callback"])
def test_behind_a_framework(name: str, tmp_path: Path) -> None:
    need(name)
    assert re.search(r"^\d+ steps, \d+ bytes sent, density 0\.05\d$", run(name, tmp_path), re.MULTILINE)


def test_as_a_callback_of_lightning(tmp_path: Path) -> None:
    need("lightning_callback")
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "lightning_callback.py")],
        cwd=tmp_path,
        env={**os.environ, "MASTER_PORT": str(free_port()), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^8 steps, \d+ bytes sent, density 0\.05\d$", done.stdout, re.MULTILINE)
