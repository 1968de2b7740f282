"""Methods by name, as they stand on a command line."""

import pytest

from thinwire import recipes
from thinwire.errors import PlanError
from thinwire.tasks.methods import PEERS, methods


def test_recipes_and_peers_with_their_options() -> None:
    dense, top, power, floor = methods("dense, topk_allgather(density=0.02, rate=0.003), powersgd(rank=2),none")
    assert dense.plan == recipes.dense()
    assert not dense.rows
    assert top.plan == recipes.topk_allgather(density=0.02)
    assert (top.rate, top.arrange, top.rows) == (0.003, True, True)
    assert (power.peer, power.options, power.plan) == ("powersgd", {"rank": 2}, None)
    assert not floor.trains
    assert all(each.words for each in (dense, top, power, floor))


def test_a_name_can_be_read_again() -> None:
    text = "topk_allgather(density=0.02, arrange=False),powersgd(rank=2),ddp"
    assert methods(",".join(each.name for each in methods(text))) == methods(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no method was named"),
        ("dense,,fp16", "cannot read"),
        ("dense(", "cannot read"),
        ("7", "cannot read"),
        ("dense(1)", "cannot read"),
        ("__import__('os')", "cannot read"),
        ("topk_allgather(density=open('x'))", "cannot read"),
        ("density=0.1", "cannot read"),
        ("nobody", "known: .*dense"),
        ("dense,dense", "named twice"),
        ("topk_allgather(nothing=1)", "does not take these options"),
        ("topk_allgather(density=7)", "density"),
        ("fp16(rank=3)", "no such options"),
        ("powersgd(rank='a')", "whole number"),
        ("dense(rate=0)", "above 0"),
        ("topk_allgather(arrange=1)", "True or False"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        methods(text)


def test_every_unknown_name_is_told_every_known_one() -> None:
    with pytest.raises(PlanError) as caught:
        methods("adaptve")
    assert all(name in str(caught.value) for name in [*recipes.RECIPES, *PEERS])
