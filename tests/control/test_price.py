"""Prices: from what parts declare, and near what was measured; the papers' formulas beside them."""

import math

import numpy as np
import pytest

from tests.control.simulate import Link, exchange_cost
from thinwire import recipes
from thinwire.control.budget import allocate
from thinwire.control.front import front
from thinwire.control.gains import Curve, look, of_laplace
from thinwire.control.guard import Guard
from thinwire.control.machine import Machine, calibrated
from thinwire.control.manners import delays
from thinwire.control.menu import FAMILIES, Choice, menu_of
from thinwire.control.network import Network
from thinwire.control.notes import KNOTS
from thinwire.control.price import Conditions, Table, price
from thinwire.control.warm_up import least_density
from thinwire.control.work import overhead_of, traffic_of, work_of
from thinwire.exchanges import AllReduce, DirectReduce
from thinwire.lab.threads import run_threads
from thinwire.mail import LARGEST
from thinwire.plans import Feedback
from thinwire.types import Traffic


@pytest.mark.parametrize("world", [2, 4, 8])
@pytest.mark.parametrize("name", FAMILIES)
def test_prices_are_near_what_collectives_cost(name: str, world: int) -> None:
    """The simulator has the laws of letters and rings; prices, what parts declare. Within 10 %, median within 3 %."""
    wrong = []
    for place in range(0, len(FAMILIES[name].densities), 4):
        choice = Choice(name, place)
        work = work_of(choice.plan(Feedback()), (1_000_000, 50_000), world)
        for link in (Link.of(0.1, 1000), Link.of(1, 100), Link.of(20, 100), Link.of(50, 10)):
            true = exchange_cost(choice, (1_000_000, 50_000), world).seconds(link)
            mine = Network(latency=link.delay, per_byte=1 / link.rate).seconds(work.rounds, work.bytes_sent)
            wrong.append(abs(mine / true - 1))
    assert max(wrong) < 0.1
    assert sorted(wrong)[len(wrong) // 2] < 0.03


def test_declared_traffic_is_what_the_wire_counts() -> None:
    """For a plan whose letters have a length that is known beforehand."""
    import torch

    from thinwire.carry import Cargo, carry
    from thinwire.layout import Layout
    from thinwire.ledger import Ledger
    from thinwire.roll_call import SIZE
    from thinwire.types import Turn

    def run(wire):
        turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
        carry(
            Cargo(gradient=torch.ones(1000), layout=Layout.of({"a": 1000}), turn=turn), recipes.dense(), Ledger(), wire
        )
        return wire.traffic

    counted = run_threads(run, 4)[0]
    told, exchanged = traffic_of(recipes.dense(), 1000, 4)
    assert told.bytes_sent == 0
    assert counted.bytes_sent == exchanged.bytes_sent + 3 * SIZE
    assert counted.rounds == exchanged.rounds + 1
    assert overhead_of(0, 4).rounds == 2


def test_what_hides_behind_backward_costs_nothing() -> None:
    work = work_of(recipes.topk_allgather(0.01), (1_000_000,), 4)
    slow, talk = Network.of(1, 10), overhead_of(1, 4)
    machine = Machine(plain=0, stage=0, write=0, read=0, group=0)
    open_ = price(work, Conditions(network=slow, machine=machine, compute=1.0, window=0.0), talk)
    half = price(work, Conditions(network=slow, machine=machine, compute=1.0, window=0.05), talk)
    all_ = price(work, Conditions(network=slow, machine=machine, compute=1.0, window=10.0), talk)
    none = price(work, Conditions(network=slow, machine=machine, compute=1.0, window=10.0, overlap=0.0), talk)
    assert open_ - half == pytest.approx(0.05)
    assert all_ == pytest.approx(1.0)
    assert none == pytest.approx(open_)


def test_a_collective_of_gloo_is_answered_and_a_long_letter_comes_in_two_parts() -> None:
    declared = Traffic(bytes_sent=6 * 1000, rounds=6)
    assert delays(AllReduce(), declared, 4) == 12
    assert delays(DirectReduce(), declared, 4) == 6
    assert delays(DirectReduce(), Traffic(bytes_sent=2 * 3 * LARGEST, rounds=2), 4) == 2
    assert delays(DirectReduce(), Traffic(bytes_sent=2 * 3 * LARGEST + 6, rounds=2), 4) == 6


def test_calibration_is_a_machine() -> None:
    machine = calibrated()
    assert machine is calibrated()
    assert all(
        0.0 < value < 1e-2 for value in (machine.plain, machine.stage, machine.write, machine.read, machine.group)
    )


def test_the_front_is_exact() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        times, gains = random.integers(1, 9, 30).astype(float), random.integers(1, 9, 30).astype(float)
        kept = set(front(times, gains).tolist())
        beaten = {
            i
            for i in range(30)
            if any(
                (times[j] <= times[i] and gains[j] >= gains[i]) and (times[j] < times[i] or gains[j] > gains[i])
                for j in range(30)
            )
        }
        assert not kept & beaten
        assert {(times[i], gains[i]) for i in kept} == {(times[i], gains[i]) for i in range(30) if i not in beaten}


def test_gains_of_all_densities_come_from_one_look() -> None:
    import torch

    torch.manual_seed(0)
    values = torch.distributions.Laplace(0.0, 1.0).sample((200_000,))
    shares = look(values, 0)
    ordered = values.abs().sort(descending=True).values.double().square()
    true = [float(ordered[: round(d * 200_000)].sum() / ordered.sum()) for d in KNOTS]
    assert shares[3:] == pytest.approx(true[3:], rel=0.1)
    assert of_laplace() == pytest.approx(true, rel=0.15)
    assert look(torch.tensor([1.0, math.nan]), 0) == ()
    assert look(torch.empty(0), 0) == ()


def test_a_curve_rises_and_ends_at_all() -> None:
    curve = Curve().looked(tuple(0.9 - 0.01 * i for i in range(13))).looked((math.nan,) * 13).looked((0.5,))
    at = curve.at(np.array([1e-6, 1e-3, 0.01, 0.5, 1.0]))
    assert all(np.diff(at) >= 0)
    assert at[-1] == 1.0
    assert curve.looks == 1


def test_a_leaders_coordinates_are_worth_less_than_ones_own() -> None:
    menu = menu_of(("own-f32", "leader"), (1000,), 4, Feedback())
    gains = menu.gains(Curve())
    assert all(gains[:32] > gains[32:])


def test_rounding_costs_gain() -> None:
    menu = menu_of(("own-f32", "own-int8"), (1000,), 4, Feedback())
    gains = menu.gains(Curve())
    assert all(gains[:32] > gains[32:])


def test_a_budget_is_shared_out_with_no_more_error_and_fewer_bytes() -> None:
    from thinwire.codecs import Delta
    from thinwire.options import units_of_density

    peaked = Curve(shares=tuple(min(1.0, 0.5 + 0.03 * i) for i in range(13)))
    flat = Curve(shares=tuple(2.0**-p for p in range(13, 0, -1)))
    curves, sizes, energies = [peaked, flat, Curve()], [100_000, 100_000, 500_000], [5.0, 0.1, 1.0]
    densities = allocate(curves, sizes, energies, 0.01)

    def error(each):
        return sum(e * (1 - float(c.at(np.array([d]))[0])) for c, e, d in zip(curves, energies, each, strict=True))

    def cost(each):
        counts = [units_of_density(d, n) for d, n in zip(each, sizes, strict=True)]
        return sum(4 * k + Delta().size(k, n) for k, n in zip(counts, sizes, strict=True))

    assert error(densities) <= error([0.01] * 3) * (1 + 1e-9)
    assert cost(densities) < 0.9 * cost([0.01] * 3)
    assert allocate([Curve()], [1000], [1.0], 0.01) == [0.01]


def test_warm_up_falls_in_equal_ratios() -> None:
    least = [least_density(step, 5) for step in range(6)]
    assert least[0] == 0.25
    assert least[4] == pytest.approx(1e-3)
    assert least[5] == 0.0
    assert least[1] / least[0] == pytest.approx(least[3] / least[2])


def test_the_guard_sees_jumps_and_old_debts() -> None:
    guard = Guard()
    for _ in range(10):
        guard = guard.after(1.0, 5.0, 2.0)
    assert guard.floor == 0.0
    assert guard.after(100.0, 5.0, 2.0).floor == 0.0, "one odd step is chance"
    assert guard.after(100.0, 5.0, 2.0).after(100.0, 5.0, 2.0).critical
    assert guard.after(1.0, 5.0, 9.0).after(1.0, 5.0, 9.0).critical
    assert not guard.after(0.01, 5.0, 0.1).after(0.01, 5.0, 0.1).critical, "falling is no jump"
    stale = guard.after(1.0, 5000.0, 2.0)
    assert stale.stale
    assert stale.after(1.0, 2000.0, 2.0).stale, "it is paid until half of the age is reached"
    assert stale.after(math.nan, math.nan, math.nan).stale
    assert not stale.after(1.0, 900.0, 2.0).stale


def test_the_table_prices_many_plans_as_one_by_one() -> None:
    menu = menu_of(tuple(FAMILIES), (1000, 2000), 4, Feedback())
    conditions = Conditions(network=Network.of(1, 100), compute=0.1, window=0.01, overlap=0.5, slowness=2.0)
    whole = menu.table.steps(conditions, overhead_of(2, 4))
    for place in range(0, len(menu.choices), 17):
        assert whole[place] == price(menu.table.works[place], conditions, overhead_of(2, 4))
    assert isinstance(menu.table, Table)
