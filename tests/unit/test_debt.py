"""A debt gives the same whether it is looked at before, while or after something is taken out of it."""

import pytest
import torch

from thinwire import Rounded, TopK
from thinwire.debt import Debt
from thinwire.layout import Span
from thinwire.types import Selection

BEFORE = torch.tensor([0.5, -3.0, 0.0, 0.25, 2.0, -0.125, 0.0, 1.0])
GRADIENT = torch.tensor([0.5, -1.0, 0.0, 0.25, 2.0, 0.125, -7.0, 0.0])
TOTAL = [1.0, -4.0, 0.0, 0.5, 4.0, 0.0, -7.0, 1.0]


def debt() -> Debt:
    return Debt(BEFORE, GRADIENT, torch.full((8,), torch.nan))


def test_the_total_is_the_sum() -> None:
    owed = debt()
    assert owed.total.tolist() == TOTAL
    assert owed.energy == pytest.approx(sum(value**2 for value in TOTAL))


def test_taking_leaves_zeros_and_is_part_of_the_total() -> None:
    owed = debt()
    chosen = owed.take_top_k(2)
    assert (chosen.indices.tolist(), chosen.values.tolist()) == ([1, 6], [-4.0, -7.0])
    owed.take_out(chosen)
    assert owed.total.tolist() == [1.0, 0.0, 0.0, 0.5, 4.0, 0.0, 0.0, 1.0]
    assert owed.energy == pytest.approx(sum(value**2 for value in TOTAL))


def test_who_has_looked_takes_the_same() -> None:
    first, second = debt(), debt()
    assert first.total.tolist() == TOTAL
    one, two = first.take_top_k(3), second.take_top_k(3)
    assert torch.equal(one.indices, two.indices)
    assert torch.equal(one.values, two.values)
    first.take_out(one)
    second.take_out(two)
    assert torch.equal(first.total, second.total)


def test_what_was_taken_and_not_sent_is_put_back() -> None:
    owed = debt()
    owed.take_top_k(3)
    assert owed.total.tolist() == TOTAL
    owed = debt()
    owed.take_top_k(3)
    owed.take_out(Selection(torch.tensor([0, 6]), torch.tensor([1.0, -7.0]), 8))
    assert owed.total.tolist() == [0.0, -4.0, 0.0, 0.5, 4.0, 0.0, 0.0, 1.0]
    owed = debt()
    owed.take_top_k(3)
    owed.settle()
    assert owed.total.tolist() == TOTAL


def test_of_rounded_values_the_rest_is_owed() -> None:
    before = torch.tensor([1.0 + 2.0**-20, 0.0, -3.0 - 2.0**-18])
    owed = Debt(before, torch.zeros(3), torch.empty(3))
    chosen = Rounded(selector=TopK(density=0.5), to="bf16").select_from(owed)
    assert chosen.values.tolist() == [1.0, -3.0]
    owed.take_out(chosen)
    assert owed.total.tolist() == [2.0**-20, 0.0, -(2.0**-18)]


def test_a_full_selection_is_taken_out_of_the_total() -> None:
    owed = debt()
    owed.take_top_k(2)
    owed.take_out(Selection(None, torch.tensor(TOTAL), 8))
    assert owed.total.tolist() == [0.0] * 8


def test_hushed_parameters_owe_nothing() -> None:
    owed = debt()
    owed.hush([Span("a", 1, 3), Span("b", 6, 8)])
    assert owed.total.tolist() == [1.0, 0.0, 0.0, 0.5, 4.0, 0.0, 0.0, 0.0]
    assert owed.energy == pytest.approx(17.25)
    assert owed.take_top_k(1).indices.tolist() == [4]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_nothing_is_selected_where_not_all_is_finite(bad: float) -> None:
    gradient = GRADIENT.clone()
    gradient[3] = bad
    for selector in (TopK(density=0.5), TopK(density=0.5, width=2), Rounded(selector=TopK(density=0.5), to="int8")):
        owed = Debt(BEFORE, gradient, torch.empty(8))
        assert selector.select_from(owed).count == 0
        assert not owed.is_finite
