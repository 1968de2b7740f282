"""Zen's closed forms against its own figures, and against bytes that exchanges really send."""

import math

import pytest
import torch

from thinwire.codecs import Cheapest, IndexValue
from thinwire.errors import PlanError
from thinwire.exchanges import AllGather, AllReduce, OwnerReduce, RecursiveDoubling, volumes
from thinwire.exchanges.chooser import Group, Link, choose, doubling_bytes, estimates, owner_bytes
from thinwire.exchanges.volumes import Profile
from thinwire.message import HEADER
from thinwire.types import Selection

NUMEL, WORLD = 200_000, 8
DENSITIES = (0.001, 0.01, 0.05, 0.1, 0.3)
OVERLAPS = (0.05, 0.1, 0.25, 0.5, 1.0)


def drawn(profile: Profile, world: int = WORLD, numel: int = NUMEL) -> list[Selection]:
    """Ranks that each draw from a common stock, so large that any two of them overlap as the profile says."""
    count = round(numel * profile.density)
    draw = torch.Generator().manual_seed(5)
    stock = torch.randperm(numel, generator=draw)[: round(count / profile.overlap)]
    found = []
    for _ in range(world):
        chosen = stock[torch.randperm(len(stock), generator=draw)[:count]].sort().values.int()
        found.append(Selection(chosen, torch.ones(count), numel))
    return found


def feasible() -> list[Profile]:
    """All but those that cannot be: ranks with density d have at least so much in common where they draw by lot."""
    return [Profile(density=d, overlap=o) for d in DENSITIES for o in OVERLAPS if o >= d]


def test_what_the_paper_says_about_two_extremes() -> None:
    same, apart = Profile(density=1e-6, overlap=1.0), Profile(density=1e-6, overlap=0.0)
    for world in (2, 4, 16, 128):
        steps = world.bit_length() - 1
        unit = 2e-6
        assert volumes.recursive_doubling(same, world) == pytest.approx(steps * unit)
        assert volumes.recursive_doubling(apart, world) == pytest.approx((world - 1) * unit)
        assert volumes.owner_reduce(same, world) == pytest.approx(2 * (world - 1) / world * unit)
        assert volumes.owner_reduce(apart, world) == pytest.approx((world - 1) * (1 + 1 / world) * unit)
        assert volumes.all_gather(apart, world) == pytest.approx((world - 1) * unit)
        assert volumes.parameter_servers(same, world, 3.0) == pytest.approx(3 * volumes.owner_reduce(same, world))


def test_where_owner_reduce_overtakes_recursive_doubling() -> None:
    assert volumes.least_overlap(2) is None
    assert volumes.least_overlap(4) == pytest.approx(0.274, abs=0.001)
    assert volumes.least_overlap(8) == pytest.approx(0.058, abs=0.001)
    assert volumes.least_overlap(16) == pytest.approx(0.0131, abs=0.0001)
    assert volumes.least_overlap(64) == pytest.approx(0.00075, abs=0.00001)
    # Where the two extra rounds are needed, owners are always ahead.
    assert [volumes.least_overlap(world) for world in (3, 5, 6, 7, 12)] == [0.0] * 5


def test_figures_of_the_paper() -> None:
    """BERT: 1.06 % become 40.8 % over 128 ranks, so a hash bitmap saves 2.4-fold when pulling, and indices 1.2-fold."""
    bert = Profile.of(0.0106, 0.408 / 0.0106, 128)
    assert bert.grown(128) * 0.0106 == pytest.approx(0.408)
    pulled = volumes.owner_reduce_with_bitmap(bert, 128) - 127 / 128 * 2 * 0.0106
    assert 127 / 128 / pulled == pytest.approx(2.3, abs=0.05)
    pushed = volumes.owner_reduce(bert, 128) - 127 / 128 * 2 * 0.0106
    assert 127 / 128 / pushed == pytest.approx(1.2, abs=0.03)


@pytest.mark.parametrize("overlap", [0.0, 1e-12, 0.01, 0.3, 1.0])
def test_densification_and_its_inverse(overlap: float) -> None:
    assert volumes.grown(overlap, 1) == pytest.approx(1.0)
    assert volumes.overlap_of(volumes.grown(overlap, 8), 8) == pytest.approx(overlap, abs=1e-9)
    assert [volumes.grown(1.0, k) for k in (1, 2, 9)] == [1.0, 1.0, 1.0]
    assert volumes.grown(0.0, 9) == 9.0
    assert Profile(density=0.5, overlap=0.0).grown(8) == 2.0


@pytest.mark.parametrize("numbers", [(0.0, 0.5), (1.1, 0.5), (0.5, -0.1), (0.5, 1.1), (float("nan"), 0.5)])
def test_impossible_profiles_are_refused(numbers: tuple[float, float]) -> None:
    with pytest.raises(PlanError, match="density is above 0"):
        Profile(density=numbers[0], overlap=numbers[1])


def counted(selections: list[Selection]) -> dict[str, float]:
    """Bytes that the busiest rank sends in the paper's formats, as fractions of the dense gradient, without headers."""
    world, codec, dense = len(selections), IndexValue(), 4.0 * selections[0].numel
    owners = OwnerReduce().forecast(selections, codec).bytes_sent - 2 * (world - 1) * HEADER.size
    doubling = RecursiveDoubling().forecast(selections, codec)
    gather = AllGather().traffic(world, 8 * selections[0].count).bytes_sent
    return {
        "owner": owners / dense,
        "doubling": (doubling.bytes_sent - doubling.rounds * HEADER.size) / dense,
        "gather": gather / dense,
        "dense": AllReduce().traffic(world, round(dense), 4).bytes_sent / dense,
    }


def spread(profile: Profile, world: int, numel: int) -> float:
    """How far the busiest owner may be from its share: units are dealt out by lot."""
    return 0.015 + 2.0 * math.sqrt(world / (profile.density * numel))


def said(profile: Profile, world: int) -> dict[str, float]:
    return {
        "owner": volumes.owner_reduce(profile, world),
        "doubling": volumes.recursive_doubling(profile, world),
        "gather": volumes.all_gather(profile, world),
        "dense": volumes.all_reduce(world),
    }


@pytest.mark.parametrize("profile", feasible(), ids=str)
def test_bytes_are_those_of_the_formulas_and_so_is_their_order(profile: Profile) -> None:
    """At 8 ranks. (What exchanges forecast is what they send: see the laws.)"""
    numel = max(NUMEL, round(2000 / profile.density))
    formula, found = said(profile, WORLD), counted(drawn(profile, WORLD, numel))
    chance = spread(profile, WORLD, numel)
    for name in formula:
        assert found[name] == pytest.approx(formula[name], rel=chance), name
    for name in formula:
        for other in formula:
            if formula[name] < (1.0 - chance) * formula[other]:
                assert found[name] < found[other], f"{name} should send less than {other}"


@pytest.mark.parametrize("world", [3, 4, 5, 7])
def test_formulas_hold_for_any_number_of_ranks(world: int) -> None:
    profile = Profile(density=0.05, overlap=0.25)
    formula, found = said(profile, world), counted(drawn(profile, world))
    for name in formula:
        assert found[name] == pytest.approx(formula[name], rel=spread(profile, world, NUMEL)), name


@pytest.mark.parametrize(("world", "width"), [(2, 1), (5, 1), (8, 1), (3, 8)])
def test_estimates_of_our_own_messages(world: int, width: int) -> None:
    for density, overlap in ((0.02, 0.1), (0.3, 0.4), (0.99, 0.99), (1.0, 1.0)):
        profile = Profile(density=density, overlap=overlap)
        group = Group(numel=20_000 * width, width=width, world=world)
        rows = drawn(profile, world, 20_000)
        selections = [Selection(row.indices, row.values.repeat_interleave(width), group.numel, width) for row in rows]
        for exchange, estimate in ((OwnerReduce(), owner_bytes), (RecursiveDoubling(), doubling_bytes)):
            wanted = estimate(profile, group, Cheapest())
            chance = spread(profile, world, 20_000)
            assert exchange.forecast(selections, Cheapest()).bytes_sent == pytest.approx(wanted, rel=chance), profile


def test_the_choice_follows_density_overlap_ranks_and_delay() -> None:
    fast, thin = Link(bandwidth=1e9), Link(bandwidth=1e7, delay=0.05)

    def chosen(density: float, overlap: float, world: int, link: Link, numel: int = 1_000_000) -> str:
        found = choose(Profile(density=density, overlap=overlap), Group(numel=numel, world=world), link)
        return "dense" if found.is_dense else type(found.exchange).__name__

    assert chosen(0.01, 0.5, 8, fast) == "OwnerReduce"
    assert chosen(1.0, 1.0, 8, fast) == "dense"
    assert chosen(0.001, 0.001, 4, fast) == "RecursiveDoubling"
    assert chosen(0.01, 0.01, 2, fast) in {"RecursiveDoubling", "AllGather"}  # a plain swap
    # Few bytes between far ranks: one round is better than two, and two are better than three.
    assert chosen(0.001, 0.5, 2, thin, 10_000) == "RecursiveDoubling"
    assert chosen(0.001, 0.001, 8, thin, 10_000) == "OwnerReduce"


def test_estimates_are_in_order_and_add_up() -> None:
    link = Link(bandwidth=2e6, delay=0.01)
    found = estimates(Profile(density=0.02, overlap=0.3), Group(numel=50_000, world=4), link)
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)
    assert len(found) == 4
    for each in found:
        assert each.seconds == pytest.approx(each.bytes_sent / 2e6 + 0.01 * each.delays)
    assert {type(each.exchange).__name__: each.delays for each in found} == {
        "AllReduce": 12, "AllGather": 6, "RecursiveDoubling": 2, "OwnerReduce": 2,
    }  # fmt: skip
