"""Laws 3 and 4 for sums that are rounded both ways: what is dropped is owed, and all hear the same bits."""

import pytest
import torch
from torch import Tensor

from thinwire.agreements import Leader
from thinwire.carry import Cargo, carry
from thinwire.codecs import Dense
from thinwire.exchanges import AllReduce, DirectReduce, RoundedReduce
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.protocols import Outgoing
from thinwire.recipes import dense
from thinwire.selectors import Everything, Rounded, TopK
from thinwire.types import Delivery, Selection, Traffic, Turn

WORLDS = (1, 2, 3, 4, 5, 8)
FORMATS = ("bf16", "f16", "int8", "int4", "int2")


def brought(to: str, rank: int, numel: int, width: int = 1) -> Selection:
    """Numbers of one rank, rounded; of float32 as they are."""
    drawn = torch.randn(numel, generator=torch.Generator().manual_seed(rank)) * 10.0 ** (rank % 3)
    chosen = TopK(density=1.0, width=width)
    return (chosen if to == "f32" else Rounded(chosen, to=to)).select(drawn)


def met(wire: ThreadWire, to: str, numel: int, width: int) -> tuple[Delivery, list[Traffic]]:
    """What one exchange delivers here, and what each call cost."""
    mine, costs, collect = brought(to, wire.rank, numel, width), [], wire.collect
    before = wire.traffic

    def counted(sources):
        nonlocal before
        letters = collect(sources)
        after = wire.traffic
        costs.append(Traffic(bytes_sent=after.bytes_sent - before.bytes_sent, rounds=after.rounds - before.rounds))
        before = after
        return letters

    wire.collect = counted  # type: ignore[method-assign]
    selector = TopK(density=1.0, width=width)
    turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
    outgoing = Outgoing(
        selection=mine, room=torch.empty(numel), shared=True, letter=torch.empty(0, dtype=torch.uint8),
        sizes=[0] * wire.world, turn=turn, codec=Dense(),
        rounded=lambda values: (selector if to == "f32" else Rounded(selector, to=to)).at(values, None),
    )  # fmt: skip
    delivery = RoundedReduce().deliver(outgoing, wire)
    assert wire.calls == RoundedReduce().calls(wire.world)
    return delivery, costs


@pytest.mark.parametrize("to", ["f32", *FORMATS])
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_told_and_what_is_owed_is_the_mean_at_the_forecast_cost(world: int, to: str) -> None:
    for numel, width in ((0, 1), (1, 1), (7, 1), (157, 1), (157, 3)):
        found = run_threads(met, world, to, numel, width, jitter=world)
        assert not [each for each in found if isinstance(each, BaseException)], found
        means = [delivery.parts[0].values for delivery, _ in found]
        assert all(torch.equal(means[0], mean) for mean in means)
        selections = [brought(to, rank, numel, width) for rank in range(world)]
        exact = sum(each.values.double() for each in selections) / world
        owed = [delivery.owed.values.double() for delivery, _ in found if delivery.owed is not None]
        assert len(owed) == (world if world > 2 else 0)
        off = (means[0].double() + sum(owed) / world - exact).abs()
        assert float(off.max() if numel else 0.0) <= 1e-6 * float(exact.abs().max() if numel else 0.0)
        counted = Traffic()
        for costs in zip(*(costs for _, costs in found), strict=True):
            counted += Traffic(
                bytes_sent=max(cost.bytes_sent for cost in costs), rounds=max(cost.rounds for cost in costs)
            )
        assert counted == RoundedReduce().forecast(selections, Dense())


def stepped(wire: ThreadWire, plan: Plan, gradients: list[Tensor], ledger: Ledger) -> Tensor:
    """One step; NaN where it does not count."""
    mine = gradients[wire.rank]
    turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
    done = carry(Cargo(gradient=mine, layout=Layout.of({"w": mine.numel()}), turn=turn), plan, ledger, wire)
    assert done.overflow == (not bool(done.mean.isfinite().all()))
    if done.page is not None and not done.overflow:
        done.page.commit()
    return done.mean.clone()


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("world", [2, 3, 5])
def test_a_sum_that_overflows_counts_nowhere(world: int, to: str) -> None:
    gradients = [torch.full((40,), 3e38 if rank >= world - 2 else 1.0) for rank in range(world)]
    if to == "f16":
        gradients[0][3] = torch.inf
    means = run_threads(lambda wire: stepped(wire, dense(to), gradients, Ledger()), world)
    assert all(bool(mean.isnan().any()) for mean in means), means


@pytest.mark.parametrize(("to", "low", "high"), [("bf16", 1.0, 1 + 2**-7), ("f16", 1.0, 1 + 2**-10), ("int8", 50, 51)])
def test_what_rounding_a_mean_drops_comes_later(to: str, low: float, high: float) -> None:
    """Every rank can write its values, and nobody their mean, which lies between two neighbours."""
    gradients = [torch.tensor([127.0, high if rank == 2 else low] * 3) for rank in range(3)]

    def run(wire: ThreadWire) -> Tensor:
        ledger = Ledger()
        return torch.stack([stepped(wire, dense(to), gradients, ledger).double() for _ in range(30)]).mean(0)

    for mean in run_threads(run, 3):
        wanted = torch.tensor([127.0, low + (high - low) / 3] * 3, dtype=torch.float64)
        torch.testing.assert_close(mean, wanted, rtol=0, atol=0.1 * (high - low))


def test_leaders_values_go_this_way_too_and_exact_ones_as_direct_reduce_sends_them() -> None:
    gradients = [torch.randn(301, generator=torch.Generator().manual_seed(rank)) for rank in range(4)]
    for selector, agreement in ((TopK(density=0.1), Leader()), (Everything(), None)):
        ways = {"agreement": agreement} if agreement else {}
        means = [
            run_threads(lambda wire, plan=plan: stepped(wire, plan, gradients, Ledger()), 4)
            for plan in (Plan(selector=selector, exchange=each, **ways) for each in (RoundedReduce(), DirectReduce()))
        ]
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(*means, strict=True))


@pytest.mark.parametrize(
    ("to", "part"), [("bf16", 0.51), ("f16", 0.51), ("int8", 0.27), ("int4", 0.14), ("int2", 0.08)]
)
def test_narrow_values_are_a_part_of_the_dense_bytes(to: str, part: float) -> None:
    numel = 100_000
    narrow = RoundedReduce().forecast([brought(to, rank, numel) for rank in range(4)], Dense())
    assert narrow.rounds == 2
    assert narrow.bytes_sent <= part * AllReduce().traffic(4, 4 * numel, 4).bytes_sent
    bound = RoundedReduce().traffic(4, numel * {"bf16": 16, "f16": 16, "int8": 8, "int4": 4, "int2": 2}[to] // 8)
    assert narrow.bytes_sent == pytest.approx(bound.bytes_sent, rel=0.01)
