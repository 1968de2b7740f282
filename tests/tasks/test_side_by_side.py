"""Runs side by side, stopped and gone on with, on real ranks."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.conftest import PoolFactory
from thinwire.errors import StateError
from thinwire.lab.ranks import RankFailed
from thinwire.observe.records import Began, Ended, Event, Examined, Stepped, events_in
from thinwire.tasks.byte_lm import Shape
from thinwire.tasks.checkpoints import Checkpoints
from thinwire.tasks.methods import methods
from thinwire.tasks.runner import Finish
from thinwire.tasks.side_by_side import EVENTS, STOP, Race, race

TINY = {"shape": Shape(width=16, layers=1, heads=2, context=32), "size": 2, "questions": 16}
METHODS = "dense,topk_allgather(density=0.05),ar_topk(density=0.1)"


def job(**changes: Any) -> Race:
    return Race(**{"methods": methods(METHODS), "steps": 8, "options": TINY, "exams": 2, **changes})


def events(folder: Path) -> list[Event]:
    return list(events_in((folder / EVENTS).read_text().splitlines()))


def race_until(rank: int, world: int, job: Race, steps: int) -> list[Finish]:
    """As `race`, but asked to stop when so many steps of the first method are in the events."""
    from thinwire.tasks import side_by_side

    runner = side_by_side.Runner

    class Stopping(runner):  # type: ignore[misc, valid-type]
        def step(self, step: int, rank: int, steps_: int) -> None:
            super().step(step, rank, steps_)
            if rank == 0 and step + 1 == steps:
                Path(job.folder, STOP).touch()

    side_by_side.Runner = Stopping  # type: ignore[misc]
    try:
        return race(rank, world, job)
    finally:
        side_by_side.Runner = runner  # type: ignore[misc]


def race_and_fail(rank: int, world: int, job: Race, step: int) -> None:
    """As `race`, but every rank fails in the middle of a step, as if it were killed there."""
    from thinwire.tasks import side_by_side

    class Failing(side_by_side.Runner):
        def step(self, number: int, rank: int, steps: int) -> None:
            if number == step and not self.method.plan == job.methods[0].plan:
                raise KeyboardInterrupt
            super().step(number, rank, steps)

    kept, side_by_side.Runner = side_by_side.Runner, Failing  # type: ignore[misc]
    try:
        race(rank, world, job)
    finally:
        side_by_side.Runner = kept  # type: ignore[misc]


def bits(finishes: list[Finish]) -> dict[tuple[str, int], str]:
    return {(finish.method, finish.seed): finish.checksum for finish in finishes}


def test_stopped_and_resumed_it_ends_with_the_same_bits(pool: PoolFactory, tmp_path: Path) -> None:
    seeds = (3, 4)
    whole = pool(2).run(race, job(seeds=seeds))[0]
    folder = str(tmp_path)
    part = pool(2).run(race_until, job(folder=folder, seeds=seeds), 4)[0]
    assert {finish.steps for finish in part} == {5}, "the step that was under way, and no more"
    stopped = [event for event in events(tmp_path) if isinstance(event, Ended)]
    assert all(event.stopped for event in stopped)
    (tmp_path / STOP).unlink()
    rest = pool(2).run(race, job(folder=folder, seeds=seeds, resume=True))[0]
    assert bits(rest) == bits(whole)
    assert all(finish.agree for finish in rest)
    heads = [event for event in events(tmp_path) if isinstance(event, Began)]
    assert [head.resumed for head in heads] == [0, 5]
    steps = Counter((e.method, e.seed, e.step) for e in events(tmp_path) if isinstance(e, Stepped))
    assert set(steps.values()) == {1}
    assert len(steps) == 3 * 2 * 8
    assert not Checkpoints(folder, 0).places(), "a run that is done needs none"


def test_after_a_crash_it_goes_on_from_the_last_checkpoint(pool: PoolFactory, tmp_path: Path) -> None:
    whole = pool(2).run(race, job())[0]
    folder = str(tmp_path)
    with pytest.raises(RankFailed, match="KeyboardInterrupt"):
        pool(2).run(race_and_fail, job(folder=folder, save_every=3), 7)
    places = Checkpoints(folder, 0).places()
    assert places == [(0, 3), (0, 6)]
    Path(folder, "checkpoints", "seed-0-step-6", "rank-1.pt").unlink()  # it was not written any more
    rest = pool(2).run(race, job(folder=folder, save_every=3, resume=True))[0]
    assert bits(rest) == bits(whole)
    assert [event.resumed for event in events(tmp_path) if isinstance(event, Began)] == [0, 3]


def test_a_checkpoint_of_other_options_is_refused(pool: PoolFactory, tmp_path: Path) -> None:
    pool(2).run(race_until, job(folder=str(tmp_path)), 2)
    (tmp_path / STOP).unlink()
    with pytest.raises(RankFailed, match="resume with the same options"):
        pool(2).run(race, job(folder=str(tmp_path), resume=True, steps=9))


def test_events_tell_of_every_step_and_examination(pool: PoolFactory, tmp_path: Path) -> None:
    finishes = pool(2).run(race, job(folder=str(tmp_path)))[0]
    seen = events(tmp_path)
    for finish in finishes:
        own = [event for event in seen if not isinstance(event, Began) and event.method == finish.method]
        steps = [event for event in own if isinstance(event, Stepped)]
        assert [step.step for step in steps] == list(range(8))
        assert steps[-1].bytes_total == sum(step.bytes_sent or 0 for step in steps) == finish.bytes_sent
        assert steps[-1].elapsed == pytest.approx(sum(step.seconds for step in steps))
        assert [event.step for event in own if isinstance(event, Examined)] == [4, 8]


def test_a_job_can_be_read_by_other_processes(tmp_path: Path) -> None:
    asked = job(folder=str(tmp_path), seeds=(1, 2), options={"size": 3}, save_every=5, network="lan-1g")
    asked.save()
    assert Race.load(tmp_path) == asked
    (tmp_path / "job.json").write_text(json.dumps({"task": "bytes"}))
    with pytest.raises(StateError, match="name the folder"):
        Race.load(tmp_path)


@pytest.mark.parametrize("peer", ["ddp", "fp16", "powersgd(rank=1)"])
def test_a_peer_trains_too(peer: str, pool: PoolFactory) -> None:
    (finish,) = pool(2).run(race, job(methods=methods(peer), steps=4))[0]
    assert finish.agree
    assert finish.bytes_sent is None


def test_plain_ddp_and_the_dense_plan_end_with_the_same_bits(pool: PoolFactory) -> None:
    plain, dense = pool(2).run(race, job(methods=methods("ddp,dense"), steps=4))[0]
    assert plain.checksum == dense.checksum


def test_a_checkpoint_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Checkpoints(tmp_path, 0)
    kept.save((0, 1), {"a": torch.ones(2)})

    def fail(state: object, file: Any) -> None:
        file.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(torch, "save", fail)
    with pytest.raises(OSError, match="no space"):
        kept.save((0, 2), {})
    monkeypatch.undo()
    assert kept.places() == [(0, 1)]
    assert torch.equal(kept.load((0, 1))["a"], torch.ones(2))
    for step in (2, 3):
        kept.save((0, step), {})
    assert kept.places() == [(0, 2), (0, 3)]
