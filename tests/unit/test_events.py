"""Events: written in whole lines, read while they are written, and never in the way of the training."""

import dataclasses
import json
import logging
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import torch

from thinwire.observe.recorder import Recorder
from thinwire.observe.records import (
    FIRST_EXPONENT,
    Began,
    Ended,
    Event,
    Examined,
    Owing,
    Planned,
    Predicted,
    Stepped,
    Tail,
    Wired,
    events_in,
    from_line,
    to_line,
)
from thinwire.observe.sinks import Jsonl, Several
from thinwire.observe.stats import Stats, Total
from thinwire.types import Observation

STEP = Stepped(method="dense", step=3, seconds=0.5, elapsed=2.0, loss=1.5, bytes_sent=10, stages={"select": 0.1})
EVENTS: list[Event] = [
    Began(
        time=1.0,
        task="bytes",
        about="a model",
        unit="bits",
        counted="tokens",
        methods=("dense",),
        plans={"dense": "everything"},
        world=2,
        steps=4,
    ),
    STEP,
    Planned(method="dense", step=0, elapsed=0.0, plan="everything"),
    Owing(method="dense", step=3, norm=2.0, layers={"w": 0.5}, histogram=(1, 2)),
    Examined(method="dense", step=4, elapsed=2.0, quality=3.0),
    Wired(time=2.0, bandwidth=1e8, latency=0.02),
    Predicted(method="dense", step=3, predicted=0.1, measured=0.2),
    Ended(method="dense", steps=4, elapsed=2.0),
]


class Kept:
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


class Broken(Kept):
    """A sink that fails."""

    def write(self, event: Event) -> None:
        raise RuntimeError("no more room")


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_line_says_all_of_an_event(event: Event) -> None:
    assert from_line(to_line(event)) == event
    assert "\n" not in to_line(event)


def test_what_is_no_number_is_null() -> None:
    line = to_line(dataclasses.replace(STEP, loss=float("nan"), stages={"select": float("inf")}))
    assert json.loads(line, parse_constant=pytest.fail)["loss"] is None
    again = from_line(line)
    assert isinstance(again, Stepped)
    assert again.loss is None


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "7", '"step"', '{"event":"nobody"}', '{"event":"stepped"}', '{"event":["a"]}', "\x00" * 9]
)
def test_other_lines_are_passed_over(line: str) -> None:
    assert from_line(line) is None
    assert list(events_in([line, to_line(STEP), line])) == [STEP]


def test_fields_of_later_versions_are_passed_over() -> None:
    plain = {**json.loads(to_line(STEP)), "invented_later": [1, 2]}
    assert from_line(json.dumps(plain)) == STEP


def test_a_file_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "run" / "events.jsonl"
    tail = Tail(path)
    assert tail.new() == []
    sink = Jsonl(path)
    sink.write(STEP)
    assert tail.new() == [STEP]
    with path.open("a") as file:
        file.write(to_line(STEP)[:20])
    assert tail.new() == []
    assert tail.new() == []
    sink.close()
    again = Jsonl(path)  # whoever wrote the half line was killed
    again.write(STEP)
    assert tail.new() == [STEP]
    again.close()


def test_a_full_disk_loses_events_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    if not os.path.exists("/dev/full"):
        pytest.skip("no device here that is always full")
    with caplog.at_level(logging.WARNING, logger="thinwire"):
        sink = Jsonl("/dev/full")
        for _ in range(3):
            sink.write(STEP)
        sink.close()
    assert sink.lost == 3
    assert len(caplog.records) == 1
    assert "training goes on" in caplog.text


def test_a_line_that_did_not_fit_does_not_spoil_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, write = tmp_path / "events.jsonl", os.write
    sink = Jsonl(path)
    monkeypatch.setattr(os, "write", lambda file, text: write(file, text[:15]))
    sink.write(STEP)
    monkeypatch.undo()
    sink.write(STEP)
    sink.close()
    assert sink.lost == 1
    assert list(events_in(path.read_text().splitlines())) == [STEP]


def test_a_sink_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    kept, broken = Kept(), Broken()
    sinks = Several([broken, kept])
    with caplog.at_level(logging.WARNING, logger="thinwire"):
        for _ in range(3):
            sinks.write(STEP)
    assert kept.events == [STEP] * 3
    assert caplog.text.count("Broken failed") == 1


class Counted:
    """A synchroniser that has sent so many bytes more with each step."""

    def __init__(self) -> None:
        self.steps = 0

    def stats(self) -> Stats:
        group = Observation(step=self.steps, group=0, numel=100, sent=5, gain=0.5)
        total = Total(bytes_sent=1000 * self.steps, seconds={"select": 0.25 * self.steps})
        return Stats(plan="a plan", steps=self.steps, overflows=0, failures=0, total=total, groups=(group,))

    def state_dict(self) -> dict[str, Any]:
        return {"owed": {"w": torch.tensor([0.0, 3.0, 0.0, -4.0])}}


def test_a_recorder_tells_what_each_step_added() -> None:
    sync, kept = Counted(), Kept()
    record = Recorder(sync, kept, method="mine", seed=7, look_every=2)
    for _ in range(2):
        sync.steps += 1
        record.step(loss=float("nan") if sync.steps == 1 else 2.0, samples=8, seconds=0.5)
    record.examined(1.25)
    planned, first, second, look, exam = kept.events
    assert isinstance(planned, Planned)
    assert planned.plan == "a plan"
    assert isinstance(first, Stepped)
    assert (first.loss, first.bytes_sent, first.density, first.gain) == (None, 1000, 0.05, 0.5)
    assert isinstance(second, Stepped)
    assert (second.step, second.elapsed, second.bytes_total, second.stages) == (1, 1.0, 2000, {"select": 0.25})
    assert (second.method, second.seed) == ("mine", 7)
    assert isinstance(look, Owing)
    assert look.norm == 5.0
    assert look.layers == {"w": 0.5}
    bars = {FIRST_EXPONENT + place: count for place, count in enumerate(look.histogram) if count}
    assert bars == {1: 1, 2: 1}  # 2 <= 3 < 4 <= 4 < 8
    assert isinstance(exam, Examined)
    assert (exam.step, exam.quality, exam.bytes_total) == (2, 1.25, 2000)


def test_a_recorder_tells_what_a_controller_decided() -> None:
    kept = Kept()
    record = Recorder(Counted(), kept, method="adaptive", look_every=0)
    wire = {"latency": 0.04, "per_byte": 8e-8}
    record.decided({"wire": wire, "predicted": 0.1, "measured": 0.2, "switched": False})
    record.decided({"wire": None, "predicted": 0.0, "measured": 0.2, "switched": True, "plan": "p", "choice": "c"})
    sensed, predicted, planned = kept.events
    assert isinstance(sensed, Wired)
    assert (sensed.bandwidth, sensed.latency, sensed.source) == (pytest.approx(1e8), 0.02, "sensed")
    assert predicted == Predicted(method="adaptive", step=0, predicted=0.1, measured=0.2)
    assert isinstance(planned, Planned)
    assert (planned.plan, planned.short) == ("p", "c")


def test_a_recorder_goes_on_counting() -> None:
    sync, kept = Counted(), Kept()
    record = Recorder(sync, kept, look_every=0)
    sync.steps = 1
    record.step(loss=1.0, seconds=2.0)
    again = Recorder(Counted(), kept, look_every=0)
    again.load_state_dict(record.state_dict())
    again.step(loss=1.0, seconds=1.0)
    last = kept.events[-1]
    assert isinstance(last, Stepped)
    assert (last.step, last.elapsed, last.bytes_total) == (1, 3.0, 1000)


def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from thinwire.observe.tensorboard import TensorBoard

    sink = TensorBoard(tmp_path)
    for event in EVENTS:
        sink.write(event)
    sink.close()
    read = EventAccumulator(str(tmp_path / "dense-seed0")).Reload()
    assert [(point.step, point.value) for point in read.Scalars("train/loss")] == [(3, 1.5)]
    assert {"comm/bytes_sent", "exam/quality", "debt/norm"} <= set(read.Tags()["scalars"])


def test_prometheus_serves_this_machine_only() -> None:
    pytest.importorskip("prometheus_client", reason="the extra prometheus is not installed")
    from thinwire.observe.prometheus import Prometheus

    sink = Prometheus(0)
    try:
        for event in EVENTS:
            sink.write(event)
        assert sink._server.server_address[0] == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{sink.port}/metrics", timeout=5) as page:
            text = page.read().decode()
    finally:
        sink.close()
    assert 'thinwire_loss{method="dense"} 1.5' in text
    assert 'thinwire_quality{method="dense"} 3.0' in text


@pytest.mark.parametrize(
    ("missing", "module"), [("torch.utils.tensorboard", "tensorboard"), ("prometheus_client", "prometheus")]
)
def test_a_missing_extra_is_named(missing: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from thinwire.observe.prometheus import Prometheus
    from thinwire.observe.tensorboard import TensorBoard

    monkeypatch.setitem(__import__("sys").modules, missing, None)
    with pytest.raises(ModuleNotFoundError, match=rf"thinwire\[{module}\]"):
        TensorBoard(tmp_path) if module == "tensorboard" else Prometheus(0)
