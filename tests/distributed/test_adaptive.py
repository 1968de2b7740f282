"""A controller on real ranks: bitwise the same replicas, plans that change while it trains, and states that go on."""

import json
import math
from pathlib import Path

import pytest
import torch

import thinwire
from tests.distributed.models import checksum, loss, make, train
from thinwire.control.controller import Controller
from thinwire.control.notes import Note
from thinwire.control.pilot import Pilot
from thinwire.observe import events


def fed(network: list[tuple[float, float]], pilot: Pilot):
    """A pilot that tells of another network than the one there is: (seconds of a round, seconds of a byte)."""
    packed = Pilot.note

    def note(self, stats):
        state = self._state
        assert state is not None
        trip, per_byte = network[min(state.step, len(network) - 1)]
        true = Note.unpack(packed(self, stats))
        sent, rounds = max(self._wire[0], 1.0), self._wire[1]
        fields = {name: getattr(true, name) for name in ("fresh", "owed", "loss", "gains", "mind")}
        return Note(
            round_trip=trip, exchange=trip * rounds + per_byte * sent, rounds=rounds, bytes_sent=sent, kernels=1e-4,
            compute=0.01, window=0.0, exposed=0.01, plain=1e-9, stage=1e-9, write=1e-9, read=1e-9, group=1e-5, **fields,
        ).pack()  # fmt: skip

    pilot.note = note.__get__(pilot)


FAST, THIN = (1e-6, 1e-12), (1e-5, 1e-3)
SCHEDULE = [FAST] * 8 + [THIN] * 12


def adapting(rank: int, world: int, folder: str) -> dict:
    """Train while the network, as it is told, changes."""
    ddp, sync = make(rank)
    fed(SCHEDULE, sync._pilot)
    file = events.JsonLines(Path(folder) / f"{rank}.jsonl")
    stop = events.listen(file)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    sums, plans, states = [], [], []
    for step in range(20):
        sums += train(ddp, optimizer, rank, range(step, step + 1))
        sync.state_dict()  # settles the step
        plans.append(str(sync.plan))
        states.append(sync._pilot.save()[1])
    stop()
    file.close()
    return {"sums": sums, "plans": plans, "states": states, "explained": sync.explain()}


@pytest.mark.parametrize("world", [2, 3])
def test_every_rank_comes_to_the_same_plan_and_the_same_model(ranks, tmp_path, world):
    results = ranks(adapting, world, str(tmp_path))
    for result in results[1:]:
        assert result == results[0], "sums, plans, states and explanations"
    plans = results[0]["plans"]
    assert any("Everything" in plan for plan in plans[:10]), plans
    if world == 2:  # of more ranks, the headers of messages weigh as much as so small a model's gradients
        assert "TopK" in plans[-1], plans
    assert "The wire:" in results[0]["explained"]
    written = [json.loads(line) for line in (tmp_path / "0.jsonl").read_text().splitlines()]
    assert len(written) == 20
    assert any(event["switched"] for event in written)
    late = [event for event in written[15:] if event["measured"] and event["predicted"]]
    assert all(math.isclose(event["measured"], event["predicted"], rel_tol=0.5) for event in late)


def measured(rank: int, world: int) -> tuple[list[int], list[str], bytes, str]:
    """Nothing told: the real wire, real clocks."""
    ddp, sync = make(rank, plan=thinwire.recipes.adaptive(momentum=0.5, warm_up=3))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    sums = train(ddp, optimizer, rank, range(12))
    sync.told_loss(3.0)
    sums += train(ddp, optimizer, rank, range(12, 16))
    state = sync.state_dict()
    return sums, [sync.explain(), str(sync.plan)], bytes(state["mind"].tolist()), str(sync.stats().plan)


def test_what_is_really_measured_leads_all_ranks_to_the_same_plan(ranks):
    results = ranks(measured, 4)
    assert all(result == results[0] for result in results[1:])
    state = json.loads(results[0][2])
    assert state["step"] == 16
    assert state["latency"], "a round was measured"
    assert state["per_byte"], "and a byte"
    assert state["looks"] >= 2


def interrupted(rank: int, world: int, folder: str, first: bool) -> tuple[list[int], str, str]:
    """Half of a run whose network is told; the second half in new processes, from the saved state."""
    ddp, sync = make(rank, plan=None if first else thinwire.recipes.dense())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    path = Path(folder) / f"rank{rank}.pt"
    if not first:
        saved = torch.load(path, weights_only=True)
        ddp.module.load_state_dict(saved["model"])
        sync.load_state_dict(saved["sync"])
    fed([FAST, THIN, FAST, THIN], sync._pilot)
    sums = train(ddp, optimizer, rank, range(10) if first else range(10, 20))
    state = sync.state_dict()
    if first:
        torch.save({"model": ddp.module.state_dict(), "sync": state}, path)
    return sums, sync._pilot.save()[1], str(sync.plan)


def whole(rank: int, world: int) -> tuple[list[int], str, str]:
    """The same without a stop."""
    ddp, sync = make(rank)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    fed([FAST, THIN, FAST, THIN], sync._pilot)
    sums = train(ddp, optimizer, rank, range(20))
    sync.state_dict()
    return sums, sync._pilot.save()[1], str(sync.plan)


def test_a_resumed_controller_goes_on_to_the_bit(ranks, tmp_path):
    unbroken = ranks(whole, 2)
    start = ranks(interrupted, 2, str(tmp_path), True)
    end = ranks(interrupted, 2, str(tmp_path), False)
    for rank in range(2):
        assert unbroken[rank][0] == start[rank][0] + end[rank][0]
        assert unbroken[rank][1:] == end[rank][1:]


def of_two_minds(rank: int, world: int) -> str:
    """Rank 1's controller has another option; the first plan is the same."""
    ddp, _ = make(rank, plan=Controller(margin=0.05 if rank else 0.5))
    before = checksum(ddp)
    with pytest.raises(thinwire.DisagreementError) as caught:
        loss(ddp, rank, 0).backward()
    assert checksum(ddp) == before
    assert caught.value.fields == ("controller",)
    return str(caught.value)


def test_ranks_of_different_minds_find_out_in_the_first_vote(pool):
    results = pool(3).run(of_two_minds)
    assert len(set(results)) == 1
    assert "the controller of rank 0 has other options" in results[0]


def coming_and_going(rank: int, world: int) -> list[str]:
    """From a plan to a controller, through a rejoin, and back."""
    ddp, sync = make(rank, plan=thinwire.recipes.dense())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    train(ddp, optimizer, rank, range(2))
    said = [sync.explain()]
    sync.switch(thinwire.recipes.adaptive())
    train(ddp, optimizer, rank, range(2, 6))
    said.append(sync.explain())
    sync.rejoin()
    said.append(sync.explain())
    train(ddp, optimizer, rank, range(6, 9))
    sync.flush()
    sync.switch(thinwire.recipes.dense())
    sums = train(ddp, optimizer, rank, range(9, 11))
    return [*said, str(sync.plan), str(sums)]


def test_a_controller_comes_and_goes(pool):
    results = pool(2).run(coming_and_going)
    assert results[0] == results[1]
    given, chosen, anew, plan, _ = results[0]
    assert "given, not chosen" in given
    assert "The wire:" in chosen
    assert "nothing was measured yet" in anew
    assert plan == str(thinwire.recipes.dense())


def skipping(rank: int, world: int) -> list[str]:
    """A step that is not finite, and one that the optimizer skips, count for the controller on every rank alike."""
    ddp, sync = make(rank)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    train(ddp, optimizer, rank, range(3))
    (loss(ddp, rank, 3) * (math.inf if rank else 1.0)).backward()
    optimizer.zero_grad()
    loss(ddp, rank, 4).backward()
    sync.skip_step()
    optimizer.zero_grad()
    sums = train(ddp, optimizer, rank, range(5, 9))
    sync.state_dict()
    return [str(sums), sync._pilot.save()[1]]


def test_steps_that_do_not_count_part_nobody(pool):
    results = pool(2).run(skipping)
    assert results[0] == results[1]
