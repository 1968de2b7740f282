"""Importance in parts of weights, layer by layer; a few leaders drawn by lot; the sweep; and how weights get there."""

import pytest
import torch
from torch import nn

import thinwire
from thinwire.agreements import Leaders
from thinwire.carry import Cargo, carry
from thinwire.errors import PlanError
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger, Page
from thinwire.plans import Feedback
from thinwire.recipes import iwp, warm_up
from thinwire.selectors import Importance, TopK
from thinwire.types import Selection, Turn
from thinwire.units import in_memory_order, logical

SIZES = {"a": 400, "b": 100, "c": 5}


def debt_of(gradient, weights):
    page = Page(Layout.of(SIZES), torch.float32, torch.device("cpu"))
    return page.stage(gradient, Feedback(), weights=weights)


def normal(numel, seed=0):
    return torch.randn(numel, generator=torch.Generator().manual_seed(seed))


GRADIENT = normal(505)
WEIGHTS = [0.1 * normal(400), 3.0 * normal(100, 1), normal(5, 2)]


def test_each_layer_selects_what_matters_most_in_parts_of_its_weights():
    found = Importance(density=0.1, epsilon=0.5).select_from(debt_of(GRADIENT, WEIGHTS)).indices.tolist()
    wanted, start = [], 0
    for weights in WEIGHTS:
        part = GRADIENT[start : start + weights.numel()]
        ratio = part.abs() / (weights.abs() + 0.5 * weights.square().mean().sqrt())
        best = ratio.argsort(descending=True)[: -(-weights.numel() // 10)]
        wanted += sorted((best + start).tolist())
        start += weights.numel()
    assert found == wanted


def test_small_layers_are_sent_whole():
    found = Importance(density=0.1, exempt=5).select_from(debt_of(GRADIENT, WEIGHTS)).indices
    assert found[-5:].tolist() == [500, 501, 502, 503, 504]
    assert len(found) == 40 + 10 + 5


def test_without_weights_and_with_new_ones_of_zero_it_is_top_k_by_layers():
    bare = Importance(density=0.1).select_from(debt_of(GRADIENT, None))
    zeros = Importance(density=0.1).select_from(debt_of(GRADIENT, [torch.zeros(size) for size in SIZES.values()]))
    layers = [TopK(density=0.1).select(part).indices for part in GRADIENT.split(list(SIZES.values()))]
    assert bare.indices.tolist() == [*layers[0], *(layers[1] + 400), *(layers[2] + 500)]
    assert torch.equal(bare.indices, zeros.indices)


def test_lots_are_drawn_in_proportion_to_importance():
    gradient, drawn = torch.arange(505.0), torch.zeros(505)
    for seed in range(300):
        found = Importance(density=0.05, lots=0.5).select_from(debt_of(gradient, None), seed=7 * seed)
        assert found.count == 20 + 5 + 1
        drawn[found.indices.long()] += 1
    assert drawn[390:400].min() == 300, "what matters most is no matter of luck"
    lower, upper = drawn[:195].sum(), drawn[195:390].sum()
    assert 2.0 < upper / lower < 4.5, "three times as important together"


def test_leaders_are_drawn_for_every_step_and_all_ranks_know_them():
    agreement = Leaders(count=2, seed=3)
    seen = set()
    for step in range(40):
        drawn = {agreement.speakers(Turn(step=step, group=0, rank=rank, world=5)) for rank in range(5)}
        assert len(drawn) == 1
        (leaders,) = drawn
        assert len(set(leaders)) == 2
        seen |= {leaders}
    assert len(seen) == 10, "every pair of five ranks"
    turn = Turn(step=0, group=0, rank=0, world=1)
    assert (agreement.speakers(turn), agreement.calls(1)) == ((0,), 1)


def steps_of(wire: ThreadWire, plan, steps):
    """The coordinates of each step, as they follow from the mean, and what this rank alone would have sent."""
    ledger, out = Ledger(), []
    for step in range(steps):
        turn = Turn(step=step, group=0, rank=wire.rank, world=wire.world)
        fresh = normal(505, 10 * step + wire.rank) + 3.0
        own = ledger.owed().get("a", torch.zeros(400))
        cargo = Cargo(gradient=fresh, layout=Layout.of(SIZES), turn=turn, weights=WEIGHTS)
        carried = carry(cargo, plan, ledger, wire)
        carried.page.commit()
        ledger.steps += 1
        out.append((carried.mean.nonzero().squeeze(1).tolist(), own))
    return out


@pytest.mark.parametrize("count", [1, 2, 3])
def test_all_send_what_any_leader_wants(count):
    plan = iwp(0.05, leaders=count).replace(feedback=Feedback())
    sent = [result[0][0] for result in run_threads(steps_of, 3, plan, 1)]
    assert sent[0] == sent[1] == sent[2]
    wanted = set()
    for rank in plan.agreement.speakers(Turn(step=0, group=0, rank=0, world=3)):
        wanted |= set(plan.selector.select_from(debt_of(normal(505, rank) + 3.0, WEIGHTS)).indices.tolist())
    assert set(sent[0]) == wanted
    assert len(wanted) > 26 * (count > 1)


def test_the_sweep_reaches_every_element_in_time():
    results = run_threads(steps_of, 2, iwp(0.01, leaders=1, sweep=8), 8)
    reached = [set().union(*(set(step[0]) for step in result)) for result in results]
    assert reached == [set(range(505))] * 2


def test_leaders_say_everything_where_one_of_them_says_so():
    values = torch.ones(4)
    whole, part = Selection(None, values, 4), Selection(torch.tensor([1]), values[:1], 4)
    turn = Turn(step=0, group=0, rank=0, world=2)
    assert Leaders().settle([part, whole], turn).is_full
    assert Leaders().settle([part, part], turn).indices.tolist() == [1]


def test_weights_lie_as_gradients_do():
    plain = nn.Conv2d(3, 4, 2).weight
    last = nn.Conv2d(3, 4, 2).to(memory_format=torch.channels_last).weight
    for parameter in (plain, last, plain[:, ::2], plain[0, 0, 0, 0]):
        assert torch.equal(logical(in_memory_order(parameter), parameter), parameter.detach().reshape(-1))
    assert in_memory_order(last).data_ptr() == last.data_ptr()
    assert in_memory_order(last).tolist() == last.permute(0, 2, 3, 1).reshape(-1).tolist()


def test_a_warm_up_ends_at_its_density():
    stages = [warm_up(0.001, done) for done in (0.0, 0.19, 0.25, 0.5, 0.75, 0.99, 1.0, 2.0)]
    assert stages == [0.25, 0.25, 0.0625, 0.015625, 0.00390625, 0.00390625, 0.001, 0.001]
    assert warm_up(0.5, 0.0) == 0.5
    assert warm_up(0.0, 0.5) == 0.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Importance(density=0.1, epsilon=0.0), "epsilon=0.3"),
        (lambda: Importance(density=0.1, lots=2.0), "from 0 to 1"),
        (lambda: Importance(density=0.1, exempt=-1), "exempts no layer"),
        (lambda: Leaders(count=0), "count=2"),
        (lambda: Leaders(sweep=-1), "sweep=1000"),
        (lambda: thinwire.synchronize([torch.ones(3)], iwp()), "attach a model"),
    ],
)
def test_mistakes_are_told(make, said):
    with pytest.raises(PlanError, match=said):
        make()
