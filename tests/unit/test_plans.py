"""Plans, recipes and the tables of parts: what fits, what does not, and what the messages say."""

import json

import pytest

import thinwire
from tests.laws.samples import plans
from thinwire import recipes
from thinwire.agreements import AGREEMENTS
from thinwire.codecs import BY_NUMBER, CODECS
from thinwire.errors import PlanError
from thinwire.exchanges import EXCHANGES
from thinwire.plans import Feedback, Plan
from thinwire.registry import Table, add
from thinwire.selectors import SELECTORS, Everything, RandomK, Rounded, Threshold, TopK

TOP = TopK(density=0.01)


def test_every_plan_survives_being_written_down():
    texts = {plan.text for plan in plans()}
    assert len(texts) == len(set(plans())) == len({plan.fingerprint for plan in plans()})
    for plan in plans():
        again = Plan.build(json.loads(plan.text))
        assert again == plan
        assert again.fingerprint == plan.fingerprint


def test_every_option_is_in_the_fingerprint():
    base = Plan(selector=TOP)
    others = [
        base.replace(selector=TopK(density=0.02)),
        base.replace(selector=TopK(density=0.01, width=2)),
        base.replace(selector=Threshold(threshold=0.01)),
        base.replace(selector=Rounded(TOP, to="bf16")),
        base.replace(selector=Rounded(TOP, to="f16")),
        base.replace(agreement=thinwire.Own(seed=1)),
        base.replace(agreement=thinwire.Leader()),
        base.replace(agreement=thinwire.Leader(share_from=0)),
        base.replace(agreement=thinwire.NormLeader()),
        base.replace(agreement=thinwire.Leader(), exchange=thinwire.AllReduce()),
        base.replace(codec=thinwire.Bitmap()),
        base.replace(feedback=Feedback(momentum=0.9)),
        base.replace(feedback=Feedback(momentum=0.9, masking=False)),
    ]
    assert len({plan.fingerprint for plan in [base, *others]}) == len(others) + 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TopK(density=1.5), "density=0.01"),
        (lambda: TopK(density=float("nan")), "between 0 and 1"),
        (lambda: TopK(density=True), "between 0 and 1"),
        (lambda: TopK(density="1%"), "between 0 and 1"),
        (lambda: TopK(density=0.1, width=0), "width=1"),
        (lambda: RandomK(density=-0.1), "between 0 and 1"),
        (lambda: Threshold(threshold=-1.0), "magnitude"),
        (lambda: Threshold(threshold=float("inf")), "magnitude"),
        (lambda: Rounded(TOP, to="fp16"), "Did you mean 'f16'"),
        (lambda: Rounded(Rounded(TOP, to="f16"), to="bf16"), "does not round"),
        (lambda: Threshold(threshold=10**400), "magnitude"),
        (lambda: Feedback(momentum=1.0), "below 1"),
        (lambda: Feedback(masking="yes"), "True or False"),
        (lambda: thinwire.Seeded(seed="7"), "whole number"),
        (lambda: Plan(selector=thinwire.Own()), "no selector"),
        (lambda: Plan(selector=TOP, codec="delta"), "no codec"),
        (lambda: Plan(selector=TOP, feedback=0.9), "thinwire.Feedback"),
        (lambda: Plan(selector=TOP, agreement=thinwire.Seeded()), "RandomK"),
        (lambda: Plan(selector=TOP, exchange=thinwire.AllReduce()), "Leader()"),
        (lambda: Plan(selector=TOP, codec=thinwire.Dense()), "Delta()"),
        (
            lambda: Plan(selector=Rounded(Everything(), to="bf16"), exchange=thinwire.AllReduce()),
            "use RoundedReduce()",
        ),
        (
            lambda: Plan(selector=TOP, agreement=thinwire.Leader(), exchange=thinwire.LowRankReduce()),
            "use Everything()",
        ),
        (lambda: recipes.dense("int8").replace(exchange=thinwire.LowRankReduce()), "use Everything()"),
        (lambda: recipes.low_rank(rank=0), "such as 4"),
        (lambda: recipes.low_rank(to="int8"), "write 'bf16' or 'f32'"),
        (lambda: thinwire.LowRankReduce(seed=-1), "below 2**63"),
        (lambda: Plan.build({"selector": {"name": "topk", "density": 0.1}}), "Did you mean 'top-k'"),
        (lambda: Plan.build({"selector": {"name": "top-k", "densty": 0.1}}), "Did you mean 'density'"),
        (lambda: Plan.build({"selecter": {}}), "Did you mean 'selector'"),
        (lambda: recipes.named("zenn"), "Known: adaptive, ar_topk, block_topk, dense, gaussian_k, iwp, low_rank"),
        (lambda: recipes.named("ar_topk", densty=0.1), "does not take"),
        (lambda: recipes.ar_topk(leader="norms"), "Did you mean 'norm'? Known: norm, rotating"),
        (lambda: recipes.ar_topk(exchange="tree"), "Known: auto, backend, direct, doubling, gather, ring"),
    ],
)
def test_mistakes_are_told_with_what_to_write_instead(make, said):
    with pytest.raises(PlanError) as caught:
        make()
    assert said in str(caught.value)


def test_an_unknown_recipe_lists_the_known_ones():
    with pytest.raises(AttributeError, match="Did you mean 'topk_allgather'"):
        recipes.topk_allgathr  # noqa: B018
    for name, recipe in recipes.RECIPES.items():
        assert recipes.named(name) == recipe()
        assert getattr(recipes, name) is recipe
    assert isinstance(recipes.default(), Plan)


@pytest.mark.parametrize("table", [SELECTORS, AGREEMENTS, CODECS, EXCHANGES], ids=lambda t: t.kind)
def test_tables_know_their_parts(table):
    for name, part in table.items():
        assert name in table
        assert part.__doc__
        assert getattr(thinwire, part.__name__) is part, "every registered part is a public name"


def test_every_codec_number_has_one_codec():
    assert len(BY_NUMBER) == len(CODECS)
    assert all(BY_NUMBER[number].number == number for number in BY_NUMBER)


def test_a_part_can_be_added_once():
    table: Table[object] = Table("selector", {"top-k": TopK})
    add(table, "mine", Threshold)
    assert table["mine"] is Threshold
    with pytest.raises(PlanError, match="choose another name"):
        add(table, "mine", RandomK)
    with pytest.raises(PlanError, match="one more line"):
        Table("selector", {}).name_of(TOP)


def test_a_density_is_rounded_up_and_zero_stays_zero():
    assert [TopK(density=0.01).budget(n) for n in (0, 1, 99, 100, 101)] == [0, 1, 1, 1, 2]
    assert TopK(density=0.0).budget(10) == 0
    assert TopK(density=1.0).budget(10) == 10
