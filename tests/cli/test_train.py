"""`thinwire train` and `thinwire report` as a user calls them: for real but short."""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from thinwire.cli import main
from thinwire.cli._launch import _changes
from thinwire.cli._shown import Standings, duration, size, wire_words
from thinwire.lab import Change, Schedule, network
from thinwire.lab.entrance import missing
from thinwire.observe.records import Began, Ended, Stepped, Wired, events_in

RUN = "import signal, sys; from thinwire.cli import main; signal.signal(signal.SIGINT, signal.default_int_handler); "
RUN += "sys.exit(main(sys.argv[1:]))"
SHORT = ["--hosts", "2", "--sync", "dense,topk_allgather(density=0.05)", "--exams", "2"]


def events(folder: Path) -> list[object]:
    return list(events_in((folder / "events.jsonl").read_text().splitlines()))


def test_it_trains_shows_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    assert main(["train", "bytes", "--steps", "3", "--out", str(folder), *SHORT]) == 0
    said = capsys.readouterr().out
    assert "step 3/3" in said
    assert "bits/byte" in said
    assert "loopback" in said
    assert "arithmetic" in said
    assert {"report.html", "events.jsonl", "job.json"} <= {path.name for path in folder.iterdir()}
    assert main(["report", str(folder), "--out", str(tmp_path / "again.html"), "--no-png"]) == 0
    assert (tmp_path / "again.html").read_text() == (folder / "report.html").read_text()
    assert main(["train", "bytes", "--out", str(folder), *SHORT]) == 2
    assert "--resume" in capsys.readouterr().err


def test_ctrl_c_finishes_the_step_and_the_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["train", "bytes", "--steps", "2000", "--out", str(folder), "--no-report", *SHORT]
    training = subprocess.Popen(
        [sys.executable, "-c", RUN, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert training.stdout is not None
    while "step 1/" not in (line := training.stdout.readline()):
        assert line or training.poll() is None
    os.killpg(training.pid, signal.SIGINT)
    said, complaints = training.communicate(timeout=60)
    assert training.returncode == 130
    assert complaints == ""
    assert "finishing the step" in said
    assert f"--out {folder} --resume" in said
    ends = [event for event in events(folder) if isinstance(event, Ended)]
    assert len({end.steps for end in ends}) == 1
    assert all(end.stopped and end.agree for end in ends)
    done = ends[0].steps
    assert {path.name for path in (folder / "checkpoints").iterdir()} == {f"seed-0-step-{done}"}


def test_torchrun_starts_it_with_the_same_words(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path / "run"
    words = ["train", "bytes", "--steps", "2", "--out", str(folder), *SHORT]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_WORLD_SIZE": "2"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, *words],
            env={**os.environ, **place, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    said = [rank.communicate(timeout=100)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], said
    assert "step 2/2" in said[0]
    assert "step" not in said[1]
    (head,) = [event for event in events(folder) if isinstance(event, Began)]
    assert head.world == 2
    assert (folder / "report.html").exists()


def test_standings_are_those_of_the_events() -> None:
    head = Began(
        time=0.0,
        task="bytes",
        about="",
        unit="bits",
        counted="tokens",
        methods=("dense",),
        plans={},
        world=2,
        steps=10,
        seeds=(5, 6),
        parameters=1000,
    )
    standings = Standings()
    step = Stepped(method="dense", seed=5, step=3, seconds=0.1, elapsed=0.4, loss=2.0, samples=50, bytes_total=800)
    standings.take([head, step, Wired(time=1.0, bandwidth=1e8, latency=0.02)])
    assert (standings.done, standings.total) == (4, 20)
    # Dense would have sent 4 steps x 4 bytes x 1000 elements, x 2 (n - 1) / n = 1.
    assert standings.row("dense") == ("dense", "2.000", "100", "1,000", "0.8 kB", "95.0 %")
    assert standings.wire == "100 Mbit/s, 20 ms one way"
    later = Stepped(method="dense", seed=6, step=0, seconds=0.1, elapsed=0.1, loss=7.0)
    standings.take([later])
    assert standings.done == 11
    assert standings.row("dense")[1] == "7.000", "another seed begins anew"


def test_figures_as_people_say_them() -> None:
    assert [size(count) for count in (None, 800, 2_500_000)] == ["?", "0.8 kB", "2.5 MB"]
    assert [duration(seconds) for seconds in (5, 150, 7200)] == ["5 s", "2 min", "2.0 h"]
    assert wire_words(Wired(time=0.0)) == "not known"


def test_on_emulated_hosts_the_bytes_of_others_are_counted_too(tmp_path: Path) -> None:
    if why := missing():
        pytest.skip(why)
    folder = tmp_path / "run"
    words = ["--net", "unlimited", "--hosts", "2", "--steps", "2", "--exams", "0", "--sync", "dense,ddp"]
    assert main(["train", "bytes", "--out", str(folder), "--no-report", *words]) == 0
    seen = events(folder)
    assert [event.thin for event in seen if isinstance(event, Began)] == [True]
    assert [event for event in seen if isinstance(event, Wired)]
    sent = {event.method: event.bytes_total for event in seen if isinstance(event, Stepped)}
    # The interface counts the headers of all layers too.
    assert 1.0 < (sent["ddp"] or 0) / (sent["dense"] or 1) < 1.5
    assert all(event.agree for event in seen if isinstance(event, Ended))


def test_a_schedule_is_told_as_it_was_played() -> None:
    net = replace(network("rate=100mbit delay=10ms"), schedule=None)
    assert list(_changes(net, 0.0, 100.0)) == []
    changes = (
        Change(at=1.0, options={"rate": 5e6}),
        Change(at=2.0, who=0, options={"rate": 1.0}),
        Change(at=3.0, options={"delay": 0.05}),
    )
    net = replace(net, schedule=Schedule(changes=changes, repeat=10.0))
    told = [(event.time, event.bandwidth, event.latency) for event in _changes(net, 100.0, 112.0)]
    assert told == [(101.0, 5e6, 0.01), (103.0, 5e6, 0.05), (111.0, 5e6, 0.05)]
