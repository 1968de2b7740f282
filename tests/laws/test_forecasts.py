"""Laws 3 and 4 for exchanges whose cost depends on the data: nothing is lost, and it costs what was forecast."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.laws.samples import samples
from thinwire.codecs import CODECS, Cheapest
from thinwire.exchanges import EXCHANGES, OwnerReduce
from thinwire.exchanges.owners import Owners
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.protocols import Codec, Exchange, Outgoing
from thinwire.selectors import Rounded, TopK
from thinwire.types import Selection, Traffic, Turn, index_dtype, unit_count

WORLDS = [2, 3, 4, 5, 8]
EXCHANGES_TO_FORECAST: list[Exchange] = [
    part for part in samples(EXCHANGES) if part.depends_on_data and not part.needs_shared
]
each_exchange = pytest.mark.parametrize("exchange", EXCHANGES_TO_FORECAST, ids=repr)


@dataclass(frozen=True)
class Shape:
    """A tensor, and how much of it every rank sends."""

    numel: int
    width: int
    density: float


SHAPES = [
    Shape(numel, width, density)
    for numel, width in ((157, 1), (160, 1), (157, 3), (3, 1), (1, 4), (0, 1))
    for density in (0.0, 0.1, 0.5, 0.98, 1.0)
]


def brought(world: int, shape: Shape, kind: str = "random") -> list[Selection]:
    """What every rank brings: whole numbers, so that every order of additions gives the same sum."""
    units = unit_count(shape.numel, shape.width)
    count = round(units * shape.density)
    found = []
    for rank in range(world):
        draw = torch.Generator().manual_seed(0 if kind == "alike" else rank)
        chosen = torch.randperm(units, generator=draw)[:count].sort().values
        if kind == "skewed":
            chosen = torch.arange(0, units, world)[:count]  # all that one stripe would own
        if kind == "one rank" and rank:
            chosen = chosen[:0]
        values = torch.randint(-99, 100, (len(chosen), shape.width), generator=draw).float()
        if len(chosen) and int(chosen[-1]) == units - 1 and shape.numel % shape.width:
            values[-1, shape.numel % shape.width :] = 0.0
        found.append(Selection(chosen.to(index_dtype(units)), values.reshape(-1), shape.numel, shape.width))
    return found


def dense(selections: list[Selection]) -> Tensor:
    """Their sum."""
    units, width = selections[0].units, selections[0].width
    total = torch.zeros(units, width)
    for selection in selections:
        total.index_add_(0, selection.indices, selection.values.view(-1, width))
    return total


def meet(
    wire: ThreadWire, exchange: Exchange, selections: list[Selection], codec: Codec, shared: bool
) -> tuple[Tensor, list[Traffic]]:
    """The sum on one rank, and what each round cost."""
    mine, costs = selections[wire.rank], []
    collect = wire.collect

    def counted(*args, **options):
        before = sum(cost.bytes_sent for cost in costs)
        letters = collect(*args, **options)
        costs.append(Traffic(bytes_sent=wire.traffic.bytes_sent - before, rounds=1))
        return letters

    wire.collect = counted  # type: ignore[method-assign]
    outgoing = Outgoing(
        selection=mine, room=torch.zeros(mine.numel), shared=shared, letter=torch.empty(0, dtype=torch.uint8),
        sizes=[], turn=Turn(step=3, group=1, rank=wire.rank, world=wire.world), codec=codec,
    )  # fmt: skip
    delivery = exchange.deliver(outgoing, wire)
    assert delivery.divisor == wire.world
    assert wire.calls == exchange.calls(wire.world)
    return dense(list(delivery.parts)), costs


def totals_of(results: list) -> list[Tensor]:
    """The sums, or the first exception."""
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [total for total, _ in results]


def check(exchange: Exchange, selections: list[Selection], codec: Codec, shared: bool = False) -> None:
    """All ranks have the exact sum, at the cost that was forecast."""
    world = len(selections)
    results = run_threads(meet, world, exchange, selections, codec, shared)
    wanted = dense(selections)
    for total in totals_of(results):
        assert torch.equal(total, wanted), f"{exchange}, {codec}: another sum"
    counted = Traffic()
    for costs in zip(*(costs for _, costs in results), strict=True):
        counted += Traffic(bytes_sent=max(cost.bytes_sent for cost in costs), rounds=1)
    assert counted == exchange.forecast(selections, codec, shared=shared)
    assert counted.rounds == exchange.traffic(world, 1000, 1).rounds


@each_exchange
@pytest.mark.parametrize("world", WORLDS)
def test_whole_numbers_add_up_exactly_at_the_forecast_cost(exchange: Exchange, world: int) -> None:
    for shape in SHAPES:
        check(exchange, brought(world, shape), Cheapest())


@each_exchange
@pytest.mark.parametrize("kind", ["alike", "skewed", "one rank"])
@pytest.mark.parametrize("world", WORLDS)
def test_whatever_ranks_have_in_common(exchange: Exchange, kind: str, world: int) -> None:
    for shape in (Shape(157, 1, 0.1), Shape(157, 3, 0.2), Shape(40, 1, 1.0)):
        check(exchange, brought(world, shape, kind), Cheapest())


@each_exchange
def test_every_codec_and_shared_coordinates(exchange: Exchange) -> None:
    for codec in (part() for part in CODECS.values() if not part.full_only):
        check(exchange, brought(5, Shape(157, 1, 0.3)), codec)
        check(exchange, brought(3, Shape(157, 3, 0.3), "alike"), codec, shared=True)


@each_exchange
def test_alone_nothing_is_sent(exchange: Exchange) -> None:
    (result,) = run_threads(meet, 1, exchange, brought(1, Shape(20, 1, 0.5)), Cheapest(), False)
    total, costs = result
    assert torch.equal(total, dense(brought(1, Shape(20, 1, 0.5))))
    assert sum(cost.bytes_sent for cost in costs) == 0


@each_exchange
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("width", [1, 3])
def test_a_sum_that_overflows_is_the_same_nan_everywhere(exchange: Exchange, world: int, width: int) -> None:
    selections = []
    for rank in range(world):
        values = torch.full((2 * width,), 3e38 if rank >= world - 2 else 1.0)
        selections.append(Selection(torch.tensor([1, 4 + rank], dtype=torch.int32), values, 20 * width, width))
    totals = totals_of(run_threads(meet, world, exchange, selections, Cheapest(), False))
    assert all(bool(total.isnan().any()) for total in totals)
    assert all(torch.equal(totals[0].view(torch.int32), total.view(torch.int32)) for total in totals)


@each_exchange
def test_more_ranks_than_units_and_a_seed_of_ones_own(exchange: Exchange) -> None:
    for numel in (1, 2, 7):
        check(exchange, brought(8, Shape(numel, 1, 1.0)), Cheapest())


@each_exchange
@pytest.mark.parametrize("to", ["bf16", "f16", "int8", "int4", "int2"])
@pytest.mark.parametrize("density", [0.3, 0.99])
def test_narrow_values_travel_narrow_and_their_sums_in_full(exchange: Exchange, to: str, density: float) -> None:
    selections = []
    for rank in range(5):
        gradient = torch.randn(301, generator=torch.Generator().manual_seed(rank))
        selections.append(Rounded(TopK(density=density), to=to).select(gradient))
    wanted = dense(selections)
    totals = totals_of(run_threads(meet, 5, exchange, selections, Cheapest(), False))
    for total in totals:
        assert torch.equal(total, totals[0])
        torch.testing.assert_close(total, wanted, rtol=0, atol=1e-6)


def test_owners_add_in_the_order_of_the_ranks() -> None:
    """In float32 these four numbers have other sums in other orders; every rank owns some of the units."""
    numbers = (1e8, 1.0, -1e8, 1.0)
    for width in (1, 2):
        selections = [Selection(None, torch.full((40,), number), 40, width) for number in numbers]
        for total in totals_of(run_threads(meet, 4, OwnerReduce(), selections, Cheapest(), False)):
            assert total.unique().tolist() == [1.0]


@settings(max_examples=60, deadline=None)
@given(numel=st.integers(0, 500), width=st.integers(1, 9), count=st.integers(1, 20), seed=st.integers(-(2**40), 2**40))
def test_what_owners_have_is_the_whole_tensor_and_nothing_twice(numel: int, width: int, count: int, seed: int) -> None:
    owners = Owners(numel=numel, width=width, count=count, seed=seed)
    assert sum(owners.numels) == numel
    whole = torch.zeros(owners.units * width)
    whole[:numel] = torch.arange(1.0, numel + 1.0)
    parts = owners.split(Selection(None, whole, numel, width))
    assert [part.numel for part in parts] == owners.numels
    assert all(part.is_full for part in parts)
    joined = [owners.join(part, owner) for owner, part in enumerate(parts)]
    assert torch.equal(dense(joined).view(-1) if numel else torch.empty(0), whole)
    for part in joined:
        assert bool((part.indices[1:] > part.indices[:-1]).all())


def test_bound_of_traffic_holds_where_nothing_is_common() -> None:
    """Letters of the declared size, in the plainest codec, and no more."""
    codec = CODECS["index-value"]()
    for exchange in EXCHANGES_TO_FORECAST:
        for world in WORLDS:
            numel = 40_000
            selections = []
            for rank in range(world):
                chosen = torch.arange(rank, numel, 8, dtype=torch.int32)
                selections.append(Selection(chosen, torch.ones(len(chosen)), numel))
            payload = 60 + 8 * selections[0].count
            bound = exchange.traffic(world, payload, 1).bytes_sent
            assert exchange.forecast(selections, codec).bytes_sent == pytest.approx(bound, rel=0.05)
