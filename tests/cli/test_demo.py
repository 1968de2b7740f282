"""The demonstration, for real but short."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conftest import Ranks
from thinwire.cli._results import Result
from thinwire.cli.demo import closing_words, demo
from thinwire.errors import PlanError
from thinwire.tasks.byte_lm import ByteLM, Corpus, CorpusError, Shape, bits_per_byte
from thinwire.tasks.methods import methods
from thinwire.tasks.side_by_side import Race, race

TINY = Shape(width=16, layers=1, heads=2, context=32)
RUN = "import sys; from thinwire.cli.demo import demo; sys.exit(demo(steps=int(sys.argv[1]), ranks=2, net='loopback'))"


def test_it_trains_and_reports_both_methods(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo(ranks=2, steps=3, density=0.02, seed=1, net="loopback") == 0
    text = capsys.readouterr().out
    lines = text.splitlines()
    rows = {line.split("  ")[0]: line for line in lines if "of sending" in line}
    assert set(rows) == {"dense", "topk_allgather(density=0.02, to='int8')"}
    assert all("bits/byte" in row for row in rows.values())
    assert "step 3/3" in text
    assert "arithmetic" in text
    assert "The wire here is not thin" in text
    assert "bitwise the same weights" in text
    assert list(tmp_path.glob("runs/demo-*/report.html"))


def test_the_figures_are_those_of_the_training(ranks: Ranks) -> None:
    asked = methods("dense,ar_topk(density=0.05)")
    job = Race(methods=asked, steps=30, options={"shape": TINY, "size": 4, "questions": 64})
    for dense, top in ranks(race, 2, job):
        assert dense.agree
        assert top.agree
        assert dense.steps == top.steps == 30
        assert dense.seconds > 0
        assert dense.quality < 8.0, "better than guessing"
        assert dense.checksum != top.checksum
        # A ring all-reduce of two ranks sends every element once from each of them.
        numel = sum(parameter.numel() for parameter in ByteLM(TINY).parameters())
        assert dense.bytes_sent == pytest.approx(30 * 4 * numel, rel=0.05)
        assert top.bytes_sent < 0.2 * dense.bytes_sent


def test_the_same_seed_trains_the_same_dense_model(ranks: Ranks) -> None:
    options = {"shape": TINY, "size": 2, "questions": 16}
    job = Race(methods=methods("dense"), steps=3, options=options, seeds=(0, 0, 1))
    once, again, other = ranks(race, 2, job)[0]
    assert once.checksum == again.checksum != other.checksum


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"steps": 0}, "1 or more"),
        ({"ranks": 1}, "2 or more"),
        ({"density": 0.0}, "more than 0"),
        ({"density": 1.5}, "at most 1"),
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        demo(**options)


def test_the_closing_words_follow_the_figures() -> None:
    dense = Result(
        name="dense", quality=3.0, unit="b", seconds=4.0, steps=100, bytes_sent=250_000_000, replicas_agree=True
    )
    worse = replace(dense, name="top-k", quality=3.4, seconds=5.0, bytes_sent=2_500_000)
    text = "\n".join(closing_words(dense, worse))
    assert "40 ms a step against 50 ms" in text
    assert "20.0 s dense and 0.2 s" in text
    assert "+0.40 bits/byte" in text
    assert "100 Mbit/s" not in "\n".join(closing_words(dense, worse, thin=True))
    equal = "\n".join(closing_words(dense, replace(worse, quality=2.99)))
    assert "pays in quality" not in equal
    assert "-0.01 bits/byte" in equal
    assert "WARNING" in "\n".join(closing_words(dense, replace(worse, replicas_agree=False)))


@pytest.mark.parametrize("moment", ["Training twice", "step 1/"], ids=["while ranks start", "while they train"])
def test_ctrl_c_ends_cleanly(moment: str, tmp_path: Path) -> None:
    # A session of its own, so that the signal reaches the whole process group as from a terminal; and listening to the
    # signal, which a shell that runs this suite in the background has told its children to ignore.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    demonstration = subprocess.Popen(
        [sys.executable, "-c", listening + RUN, "100000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=tmp_path,
    )
    assert demonstration.stdout is not None
    while moment not in (line := demonstration.stdout.readline()):
        assert line or demonstration.poll() is None
    time.sleep(0.5)
    os.killpg(demonstration.pid, signal.SIGINT)
    output, errors = demonstration.communicate(timeout=60)
    assert demonstration.returncode == 130
    assert "all ranks are gone" in output
    assert errors == ""


def test_a_terminal_gets_a_live_table(tmp_path: Path) -> None:
    pytest.importorskip("rich")
    ours, theirs = pty.openpty()
    demonstration = subprocess.Popen(
        [sys.executable, "-c", RUN, "3"],
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"},
        cwd=tmp_path,
    )
    os.close(theirs)
    screen = _read_all(ours)
    _, errors = demonstration.communicate(timeout=60)
    assert demonstration.returncode == 0, errors.decode()
    assert "training loss" in screen
    assert "step 3/3" in screen
    assert "held-out loss" in screen
    assert "\x1b[" in screen


def _read_all(terminal: int, seconds: float = 90.0) -> str:
    chunks: list[bytes] = []
    deadline = time.monotonic() + seconds
    while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
        try:
            chunks.append(os.read(terminal, 65536))
        except OSError:  # the other end is closed
            break
    os.close(terminal)
    return b"".join(chunks).decode(errors="replace")


def test_the_corpus_is_real_text_in_two_parts() -> None:
    corpus = Corpus.standard_library()
    assert bytes(corpus.training.tolist()).count(b"import ") > 1000
    assert 0.03 < len(corpus.held_out) / len(corpus.training) < 0.3
    again = Corpus.standard_library()
    assert torch.equal(corpus.training, again.training)
    assert torch.equal(corpus.held_out, again.held_out)
    window = bytes(corpus.held_out[5000:5200].tolist())
    assert window not in bytes(corpus.training.tolist())


def test_batches_depend_on_seed_step_and_rank() -> None:
    corpus = Corpus.standard_library(limit=1_000_000)
    batch = corpus.batch((0, 1, 2), 4, 16)
    assert batch.shape == (4, 17)
    assert torch.equal(batch, corpus.batch((0, 1, 2), 4, 16))
    for turn in ((1, 1, 2), (0, 2, 2), (0, 1, 3)):
        assert not torch.equal(batch, corpus.batch(turn, 4, 16))


def test_the_model_does_not_look_ahead() -> None:
    torch.manual_seed(0)
    model = ByteLM(TINY)
    seen: list[torch.Tensor] = []
    model.head.register_forward_hook(lambda _, __, logits: seen.append(logits))
    text = torch.randint(0, 256, (1, 33))
    model(text)
    changed = text.clone()
    changed[0, 20] = (changed[0, 20] + 1) % 256
    model(changed)
    assert torch.equal(seen[0][0, :20], seen[1][0, :20])
    assert not torch.equal(seen[0][0, 20:], seen[1][0, 20:])


def test_an_untrained_model_guesses() -> None:
    torch.manual_seed(0)
    windows = Corpus.standard_library(limit=1_000_000).examination(64, TINY.context)
    assert bits_per_byte(ByteLM(TINY), windows) == pytest.approx(8.0, abs=0.7)


def test_a_missing_library_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("pass\n")
    with pytest.raises(CorpusError, match="5 bytes"):
        Corpus.standard_library(folder=tmp_path)
