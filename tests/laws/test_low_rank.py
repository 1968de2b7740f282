"""Laws 1, 3 and 4 for approximations of low rank: what they lack is owed, and all have the same bits."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from thinwire.carry import Cargo, Carried, carry
from thinwire.exchanges.low_rank_reduce import LowRankReduce, orthonormal, product
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.recipes import low_rank
from thinwire.roll_call import SIZE
from thinwire.types import Traffic, Turn

WORLDS = (1, 2, 3, 4, 5, 8)
SHAPES = ((20, 30), (7,), (8, 3, 3, 3), (2, 2), (), (1, 40), (16, 16))
LAYOUT = Layout.of({str(at): math.prod(shape) for at, shape in enumerate(SHAPES)})


def gradient(rank: int, step: int = 0) -> Tensor:
    """Normal numbers, and something that all ranks have in common."""
    common = torch.randn(LAYOUT.numel, generator=torch.Generator().manual_seed(99))
    return common + torch.randn(LAYOUT.numel, generator=torch.Generator().manual_seed(10 * step + rank))


def stepped(wire: ThreadWire, plan: Plan, fresh: Tensor, ledger: Ledger, step: int = 0) -> Carried:
    """One step of one group, committed if it counts."""
    turn = Turn(step=step, group=0, rank=wire.rank, world=wire.world)
    done = carry(Cargo(gradient=fresh, layout=LAYOUT, turn=turn, shapes=SHAPES), plan, ledger, wire)
    if done.page is not None and not done.overflow:
        done.page.commit()
    return done


@pytest.mark.parametrize(("powers", "to"), [(1, "f32"), (2, "f32"), (2, "bf16")])
@pytest.mark.parametrize("world", WORLDS)
def test_delivered_and_owed_is_given_and_bytes_are_those_declared(world: int, powers: int, to: str) -> None:
    plan = low_rank(rank=2, powers=powers, to=to)

    def run(wire: ThreadWire) -> list[tuple[Tensor, Tensor, Traffic]]:
        ledger, out, given = Ledger(), [], torch.zeros(LAYOUT.numel, dtype=torch.float64)
        for step in range(3):
            fresh = gradient(wire.rank, step)
            given += fresh
            before = wire.traffic
            mean = stepped(wire, plan, fresh, ledger, step).mean.clone()
            after = wire.traffic
            spent = Traffic(bytes_sent=after.bytes_sent - before.bytes_sent, rounds=after.rounds - before.rounds)
            owed = torch.cat([ledger.owed()[name] for name in LAYOUT.names])
            out.append((mean, given - owed.double(), spent))
        return out

    results = run_threads(run, world, jitter=world)
    delivered = torch.zeros(LAYOUT.numel, dtype=torch.float64)
    cost = LowRankReduce(rank=2, powers=powers, to=to).cost(SHAPES, world)
    for step in range(3):
        means = [result[step][0] for result in results]
        assert all(torch.equal(means[0], mean) for mean in means)
        delivered += means[0]
        sent = sum(result[step][1] for result in results) / world
        torch.testing.assert_close(delivered, sent, rtol=1e-5, atol=1e-5)
        spent = max(result[step][2].bytes_sent for result in results) - (world - 1) * SIZE
        assert spent <= cost.bytes_sent <= spent + 8 * powers * 4 * world
        assert results[0][step][2].rounds == cost.rounds + (world > 1)


def test_vectors_come_exactly_and_matrices_of_low_rank_nearly_so() -> None:
    thin = torch.randn(20, 2, dtype=torch.float64) @ torch.randn(2, 30, dtype=torch.float64)

    def run(wire: ThreadWire) -> tuple[Tensor, Tensor, float]:
        mine = gradient(wire.rank)
        mine[:600] = thin.float().reshape(-1) * (wire.rank + 1)
        done = stepped(wire, low_rank(rank=4, to="f32"), mine, Ledger())
        return done.mean.clone(), mine, done.seen.gain

    results = run_threads(run, 3)
    mean, wanted = results[0][0], sum(result[1] for result in results) / 3
    torch.testing.assert_close(mean[:600].view(20, 30), 2 * thin.float(), rtol=1e-4, atol=1e-4)
    for span, shape in zip(LAYOUT.spans, SHAPES, strict=True):
        if len(shape) < 2 or shape in ((2, 2), (1, 40)):
            torch.testing.assert_close(mean[span.start : span.stop], wanted[span.start : span.stop])
    assert all(0.0 < gain <= 1.0 for _, _, gain in results)
    assert min(gain for _, _, gain in results) < 1.0


def test_more_columns_and_more_powers_bring_more() -> None:
    lacking = {}
    for rank, powers in itertools.product((1, 4, 8), (1, 2)):
        plan = low_rank(rank=rank, powers=powers)
        means = run_threads(lambda wire, plan=plan: stepped(wire, plan, gradient(wire.rank), Ledger()).mean.clone(), 3)
        wanted = sum(gradient(each) for each in range(3)) / 3
        lacking[rank, powers] = float((means[0] - wanted).square().sum())
    assert lacking[1, 1] > lacking[4, 1] > lacking[8, 1] > lacking[8, 2]
    assert lacking[4, 1] > lacking[4, 2]


def test_without_shapes_everything_comes_exactly() -> None:
    def run(wire: ThreadWire) -> Tensor:
        turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
        cargo = Cargo(gradient=gradient(wire.rank), layout=LAYOUT, turn=turn)
        return carry(cargo, low_rank(to="f32"), Ledger(), wire).mean.clone()

    torch.testing.assert_close(run_threads(run, 3)[2], sum(gradient(rank) for rank in range(3)) / 3)


def test_a_sum_that_overflows_counts_nowhere() -> None:
    def run(wire: ThreadWire) -> bool:
        return stepped(wire, low_rank(), torch.full((LAYOUT.numel,), 3e38), Ledger()).overflow

    assert run_threads(run, 3) == [True] * 3


def test_columns_become_orthonormal_in_an_order_of_our_own() -> None:
    columns = torch.randn(101, 5, generator=torch.Generator().manual_seed(1))
    columns[:, 3] = 2.0 * columns[:, 0] - columns[:, 1]
    basis = orthonormal(columns)
    wanted = torch.eye(5)
    wanted[3, 3] = 0.0
    torch.testing.assert_close(basis.T @ basis, wanted, rtol=0, atol=1e-6)
    assert not basis[:, 3].any()
    assert not orthonormal(torch.zeros(4, 2)).any()
    right = torch.randn(7, 5, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(product(basis, right), basis @ right.T)
    one_after_the_other = torch.zeros(101, 7)
    for column in range(5):
        one_after_the_other += torch.outer(basis[:, column], right[:, column])
    assert torch.equal(product(basis, right) + 0.0, one_after_the_other)
