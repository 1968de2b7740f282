"""What letters bring together: sums in one order, the same bits everywhere, at the declared cost, and no nonsense."""

import itertools

import pytest
import torch

from thinwire.agreements import Leader, NormLeader, telling
from thinwire.carry import Cargo, carry
from thinwire.codecs import Delta
from thinwire.errors import PlanError, WireError
from thinwire.exchanges import EXCHANGES, AllGather, AllReduce, DirectGather, DirectReduce, DoublingReduce, RingReduce
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.protocols import Exchange, Outgoing
from thinwire.selectors import Everything, RandomK, Threshold, TopK
from thinwire.types import Selection, Traffic, Turn

WORLDS = (1, 2, 3, 4, 5, 8)
REDUCES = (DirectReduce(), RingReduce(), DoublingReduce())


def values_of(rank: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """Numbers whose sum depends on the order."""
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(rank), dtype=torch.float64)
    return (drawn * 10.0 ** (rank % 4)).to(dtype)


def reduced(wire: ThreadWire, exchange: Exchange, count: int, dtype: torch.dtype) -> tuple[torch.Tensor, list[Traffic]]:
    """The mean of everybody's values, and what each call made this rank send."""
    turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
    mine = Selection(None, values_of(wire.rank, count, dtype), count)
    seen = [wire.traffic]
    plain = wire.collect

    def collect(*args, **options):
        letters = plain(*args, **options)
        seen.append(wire.traffic)
        return letters

    wire.collect = collect  # type: ignore[method-assign]
    nothing = torch.empty(0, dtype=torch.uint8)
    room = torch.empty(count, dtype=dtype)
    brought = Outgoing(
        selection=mine, room=room, shared=True, letter=nothing, sizes=[0] * wire.world, turn=turn, codec=Delta()
    )
    before = mine.values.clone()
    delivery = exchange.deliver(brought, wire)
    assert torch.equal(mine.values, before), "what is owed is computed from it later"
    assert wire.calls == exchange.calls(wire.world)
    (part,) = delivery.parts
    costs = [
        Traffic(bytes_sent=late.bytes_sent - early.bytes_sent, rounds=late.rounds - early.rounds)
        for early, late in itertools.pairwise(seen)
    ]
    return part.values / delivery.divisor, costs


@pytest.mark.parametrize("exchange", REDUCES, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 64, 1001])
def test_reduces_give_the_mean_in_the_same_bits_at_the_declared_cost(exchange: Exchange, count: int) -> None:
    for world, dtype in itertools.product(WORLDS, (torch.float32, torch.float64, torch.bfloat16)):
        found = run_threads(reduced, world, exchange, count, dtype, jitter=world)
        assert not [each for each in found if isinstance(each, BaseException)], found
        means = [mean for mean, _ in found]
        assert all(torch.equal(means[0], mean) for mean in means)
        assert means[0].dtype == dtype
        wanted = sum(values_of(rank, count, dtype).double() for rank in range(world)) / world
        most = max((float(values_of(rank, count, dtype).abs().max()) for rank in range(world) if count), default=0.0)
        assert float((means[0].double() - wanted).abs().max() if count else 0.0) <= 4 * torch.finfo(dtype).eps * most
        counted = Traffic()
        for costs in zip(*(costs for _, costs in found), strict=True):
            counted += Traffic(
                bytes_sent=max(cost.bytes_sent for cost in costs), rounds=max(cost.rounds for cost in costs)
            )
        assert counted == exchange.traffic(world, count * dtype.itemsize, dtype.itemsize)


def test_latency_is_what_these_exchanges_are_for() -> None:
    """Delays for four bytes of values, as declared; and nobody sends more bytes than a ring does but doubling."""
    rounds = {
        (name, world): EXCHANGES[name]().traffic(world, 4, 4).rounds for name in EXCHANGES for world in (2, 4, 5, 8)
    }
    assert [rounds["direct-gather", world] for world in (2, 4, 5, 8)] == [1, 1, 1, 1]
    assert [rounds["direct-reduce", world] for world in (2, 4, 5, 8)] == [1, 2, 2, 2]
    assert [rounds["doubling-reduce", world] for world in (2, 4, 5, 8)] == [1, 2, 4, 3]
    assert [rounds["ring-reduce", world] for world in (2, 4, 5, 8)] == [2, 6, 8, 14]
    for world in (2, 4, 5, 8):
        ring = AllReduce().traffic(world, 4_000_000, 4).bytes_sent
        assert RingReduce().traffic(world, 4_000_000, 4).bytes_sent <= 1.001 * ring
        assert DirectReduce().traffic(world, 4_000_000, 4).bytes_sent <= 1.001 * ring
        gathered = AllGather().traffic(world, 1_000_000).bytes_sent
        assert DirectGather().traffic(world, 1_000_000).bytes_sent == gathered


def mean_of(wire: ThreadWire, plan: Plan, numel: int = 301, seed: int = 0) -> torch.Tensor:
    """What one step delivers."""
    drawn = torch.randn(numel, generator=torch.Generator().manual_seed(100 * seed + wire.rank))
    turn = Turn(step=seed, group=0, rank=wire.rank, world=wire.world)
    return carry(Cargo(gradient=drawn, layout=Layout.of({"w": numel}), turn=turn), plan, Ledger(), wire).mean.clone()


PLANS = {
    "own": Plan(selector=TopK(density=0.1)),
    "all of it": Plan(selector=TopK(density=1.0)),
    "nothing": Plan(selector=TopK(density=0.0)),
    "uneven": Plan(selector=Threshold(threshold=2.5)),
    "leader": Plan(selector=TopK(density=0.1), agreement=Leader()),
    "strongest": Plan(selector=TopK(density=0.1), agreement=NormLeader()),
    "lots": Plan(selector=RandomK(density=0.2), agreement=Leader()),
    "dense": Plan(selector=Everything()),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("world", [2, 3, 5])
def test_direct_ways_give_the_bits_of_an_all_gather(name: str, world: int) -> None:
    plan = PLANS[name]
    exchanges: list[Exchange] = [DirectGather()] + ([DirectReduce()] if plan.shares_coordinates else [])
    wanted = run_threads(mean_of, world, plan.replace(exchange=AllGather()))
    for exchange in exchanges:
        found = run_threads(mean_of, world, plan.replace(exchange=exchange), jitter=world)
        assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True)), (found, exchange)


# A leader's coordinates.


def told(wire: ThreadWire, sizes: dict[int, int]) -> tuple[bool, Traffic]:
    """Whether every sender's letter came as it was, and what this rank sent."""

    def letter(sender: int) -> torch.Tensor:
        return ((torch.arange(sizes[sender]) * (sender + 3)) % 251).to(torch.uint8)

    mine = letter(wire.rank) if wire.rank in sizes else torch.empty(0, dtype=torch.uint8)
    found = telling.tell(mine, sizes, wire)
    assert wire.calls == telling.calls(wire.world)
    assert found.keys() == sizes.keys() - {wire.rank}
    return all(torch.equal(found[sender], letter(sender)) for sender in found), wire.traffic


@pytest.mark.parametrize("world", WORLDS)
def test_letters_of_any_senders_and_lengths_become_known_to_all(world: int) -> None:
    for number in range(12):
        senders = [rank for rank in range(world) if (number + 1) >> rank % 4 & 1] or [number % world]
        sizes = {sender: (60 * sender + 7 * number) % 200 for sender in senders}
        for result in run_threads(told, world, sizes):
            assert not isinstance(result, BaseException), result
            assert result[0]


@pytest.mark.parametrize("world", WORLDS)
def test_no_rank_sends_a_long_list_more_than_once(world: int) -> None:
    size = 70_001
    costs = [cost for _, cost in run_threads(told, world, {world - 1: size})]
    assert max(cost.bytes_sent for cost in costs) == size * min(world - 1, 1)
    declared = telling.traffic(world, size)
    assert max(cost.rounds for cost in costs) == declared.rounds == min(world - 1, 2)
    assert declared.bytes_sent <= 2 * size


def strongest(wire: ThreadWire, loud: int) -> list[int]:
    """Which coordinates all ranks sent, where rank ``loud`` has the largest numbers."""
    fresh = torch.zeros(40)
    fresh[wire.rank * 4 : wire.rank * 4 + 4] = 10.0 if wire.rank == loud else 1.0 + wire.rank / 100
    turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
    plan = Plan(selector=TopK(density=0.1), agreement=NormLeader(), exchange=DirectReduce())
    ledger = Ledger()
    carried = carry(Cargo(gradient=fresh, layout=Layout.of({"w": 40}), turn=turn), plan, ledger, wire)
    assert carried.page is not None
    carried.page.commit()
    sent = fresh - ledger.owed()["w"]
    assert torch.equal(sent, fresh if wire.rank == loud else torch.zeros(40))
    return carried.mean.nonzero().flatten().tolist()


@pytest.mark.parametrize("world", [2, 3, 8])
def test_the_rank_with_most_energy_in_its_selection_leads(world: int) -> None:
    for loud in range(world):
        assert run_threads(strongest, world, loud) == [list(range(4 * loud, 4 * loud + 4))] * world


def test_of_equally_strong_leaders_the_lowest_rank_leads() -> None:
    turn = Turn(step=7, group=0, rank=0, world=4)
    assert NormLeader().speakers(turn, [1.0, 3.0, 3.0, 2.0]) == (1,)
    assert NormLeader().speakers(turn) == (0, 1, 2, 3)
    assert Leader().speakers(turn, [1.0, 3.0, 3.0, 2.0]) == (3,)
    beyond = Selection(None, torch.full((4,), 1e200, dtype=torch.float64), 4)
    assert 0.0 < NormLeader().weigh(beyond) < float("inf")


# What peers may send instead.


@pytest.mark.parametrize("exchange", REDUCES, ids=repr)
def test_sums_of_another_length_are_refused(exchange: Exchange) -> None:
    """A rank that brings more or fewer values than the others: nobody may add up what is left over."""

    def work(wire: ThreadWire) -> None:
        reduced(wire, exchange, 8 if wire.rank else 6, torch.float32)

    found = run_threads(work, 2)
    assert any(isinstance(each, WireError) for each in found), found


def test_parts_of_a_leaders_letter_of_another_length_are_refused() -> None:
    def work(wire: ThreadWire) -> None:
        if wire.rank != 1:
            telling.tell(torch.zeros(100, dtype=torch.uint8), {0: 100}, wire)
            return
        wire.post({})
        wire.collect([0])
        wire.post({2: torch.zeros(49, dtype=torch.uint8)})
        wire.collect([2])

    found = run_threads(work, 3)
    assert isinstance(found[2], WireError), found


@pytest.mark.parametrize("wrong", [-1, True, 0.5, "64k"])
def test_a_number_of_bytes_is_a_whole_number(wrong: object) -> None:
    with pytest.raises(PlanError, match="share_from=65536"):
        Leader(share_from=wrong)  # type: ignore[arg-type]
