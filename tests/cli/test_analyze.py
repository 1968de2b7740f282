"""`thinwire analyze`: on a trace, on a live training, and what it says about mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest

from thinwire.cli import main


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two steps of four ranks: a table of 50 rows of 4, of which few are touched, and 100 dense elements."""
    folder = tmp_path / "trace"
    folder.mkdir()
    said = {
        "format": 1, "task": "by_hand", "world": 4, "density": 0.1, "steps": [0, 7],
        "parameters": [{"name": "table", "shape": [50, 4]}, {"name": "rest", "shape": [100]}],
    }  # fmt: skip
    (folder / "trace.json").write_text(json.dumps(said))
    for step in (0, 7):
        for rank in range(4):
            table = np.zeros((50, 4), dtype=np.float32)
            table[[0, 1, 2, 10 + rank]] = 1 + rank
            values = np.random.default_rng(rank).standard_normal(100).astype(np.float32)
            np.save(folder / f"step{step:06d}.rank{rank}.npy", np.concatenate([table.reshape(-1), values]))
    return folder


def test_rows_of_a_table(trace: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out, picture = tmp_path / "out.json", tmp_path / "out.svg"
    arguments = ["analyze", str(trace), "--parameter=table", "--nonzero", f"--json={out}", f"--picture={picture}"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "by_hand: all that is not zero of 200 elements in units of 4, 4 ranks" in said
    assert "OwnerReduce" in said
    assert picture.stat().st_size > 1000
    first, second = json.loads(out.read_text())
    assert (first["step"], second["step"]) == (0, 7)
    assert first["units"] == 50
    assert first["density"] == pytest.approx(4 / 50)
    assert first["overlap"] == pytest.approx(3 / 4)
    assert first["densification"] == pytest.approx([1, 5 / 4, 6 / 4, 7 / 4])


def test_elements_of_everything(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analyze", str(trace), "--density=0.1", "--owners=16", "--delay=50", "--bandwidth=10"]) == 0
    said = capsys.readouterr().out
    assert "the largest 10 % of 300 elements in units of 1" in said
    assert "10 Mbit/s and 50 ms" in said


def test_nothing_was_sent(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in trace.glob("*.npy"):
        np.save(path, np.zeros(300, dtype=np.float32))
    assert main(["analyze", str(trace), "--nonzero"]) == 0
    assert "Nothing was sent in the last step." in capsys.readouterr().out


def test_live(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    assert main(["analyze", "--ranks=2", "--steps=0,1", "--elements=20000", f"--keep={kept}"]) == 0
    assert "2 ranks" in capsys.readouterr().out
    assert len(list(kept.glob("*.npy"))) == 4


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ranks=1"], "write 2 or more"),
        (["--steps=a"], "write numbers with commas"),
        (["nowhere"], "holds no trace"),
        (["--picture=x.jpg"], "ends with .png"),
        (["TRACE", "--parameter=tabel"], "Did you mean 'table'?"),
        (["TRACE", "--width=-1"], "write numbers from 0"),
        (["TRACE", "--density=2"], "density"),
    ],
)
def test_mistakes(trace: Path, arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(trace) if argument == "TRACE" else argument for argument in arguments]
    assert main(["analyze", *given]) == 2
    assert says in capsys.readouterr().err
