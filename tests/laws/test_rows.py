"""Row-sparse gradients under plans that add them up on their way: nothing is lost, on any number of ranks."""

import pytest
import torch
from torch import Tensor

from thinwire import recipes
from thinwire.carry import Cargo
from thinwire.exchanges import OwnerReduce, RecursiveDoubling
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout, Span
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.rows import depart_rows, exchange_for_rows
from thinwire.types import Turn

ROWS, WIDTH = 211, 5
PLANS = {
    "gather": recipes.topk_allgather(),
    "owner-reduce": recipes.zen(),
    "recursive doubling": recipes.zen(hierarchical=True),
}


def touched(rank: int, kind: str) -> Tensor:
    """A gradient of whole numbers: some rows twice, and none at all on some ranks."""
    draw = torch.Generator().manual_seed(rank if kind != "alike" else 0)
    rows = torch.randint(0, ROWS, (60,), generator=draw)
    if kind == "one rank only" and rank != 1:
        rows = rows[:0]
    if kind == "first and last":
        rows = torch.tensor([0, ROWS - 1, 0])
    if kind == "every row":
        rows = torch.arange(ROWS)
    values = torch.randint(-50, 51, (len(rows), WIDTH), generator=draw).float()
    return torch.sparse_coo_tensor(rows.unsqueeze(0), values, (ROWS, WIDTH), check_invariants=True)


def carried(wire: ThreadWire, plan: Plan, gradient_of, *arguments) -> tuple[Tensor, bool, int]:
    """The mean, whether it overflowed, and the bytes that were sent."""
    turn = Turn(step=1, group=0, rank=wire.rank, world=wire.world)
    gradient = gradient_of(wire.rank, *arguments)
    cargo = Cargo(gradient=gradient, layout=Layout((Span("w", 0, gradient.numel()),)), turn=turn)
    done = depart_rows(cargo, plan, Ledger(), wire)()
    assert done.mean.is_coalesced()
    return done.mean, done.overflow, done.seen.bytes_sent


@pytest.mark.parametrize("world", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("name", PLANS)
def test_rows_add_up_exactly(name: str, world: int) -> None:
    for kind in ("random", "alike", "one rank only", "first and last", "every row"):
        results = run_threads(carried, world, PLANS[name], touched, kind)
        wanted = torch.stack([touched(rank, kind).to_dense() for rank in range(world)]).sum(0) / world
        for mean, overflow, _ in results:
            assert not overflow
            assert torch.equal(mean.to_dense(), wanted), kind
            assert torch.equal(mean.indices(), results[0][0].indices())


@pytest.mark.parametrize("name", PLANS)
def test_rows_that_are_not_finite_or_whose_sum_is_not_do_not_count(name: str) -> None:
    def broken(rank: int, value: float) -> Tensor:
        rows = torch.tensor([[3, 7]])
        values = torch.full((2, WIDTH), value if value > 0 or rank == 2 else 1.0)
        return torch.sparse_coo_tensor(rows, values, (ROWS, WIDTH), check_invariants=True)

    for value in (3e38, -torch.inf):
        results = run_threads(carried, 4, PLANS[name], broken, value)
        assert [overflow for _, overflow, _ in results] == [True] * 4


def test_which_exchange_rows_take() -> None:
    assert exchange_for_rows(PLANS["gather"], 8) is None
    assert exchange_for_rows(PLANS["owner-reduce"], 3) == OwnerReduce()
    assert exchange_for_rows(PLANS["recursive doubling"], 3) == RecursiveDoubling()
    assert exchange_for_rows(PLANS["owner-reduce"], 2) is None
    assert exchange_for_rows(recipes.dense(), 8) is None


def test_owners_send_less_where_ranks_touch_the_same_rows() -> None:
    sent = {
        name: max(result[2] for result in run_threads(carried, 8, plan, touched, "every row"))
        for name, plan in PLANS.items()
    }
    assert sent["owner-reduce"] < 0.45 * sent["gather"]
    assert sent["owner-reduce"] < sent["recursive doubling"] < sent["gather"]
