"""Levels for values of few bits: exact differences whatever the values, and small ones where it counts."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from thinwire.selectors.levels import best_levels
from thinwire.selectors.rounded import rounded
from thinwire.types import Selection, ValueFormat

COUNTS = pytest.mark.parametrize("count", [2, 8])
FORMATS = {2: ValueFormat.INT2, 8: ValueFormat.INT4}


def check_difference(values: Tensor, count: int) -> None:
    """What is kept is what was owed less what was sent, to the last bit."""
    sent = rounded(Selection(None, values, values.numel()), FORMATS[count]).values
    kept = values - sent
    for value, taken, rest in zip(values.tolist(), sent.tolist(), kept.tolist(), strict=True):
        assert Fraction(value) - Fraction(taken) == Fraction(rest), (value, taken)


@COUNTS
@settings(max_examples=200)
@given(values=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=30))
@example(values=[0.001234567, 2.6, 2.7, 2.8])
@example(values=[1.2345678e-3] * 20 + [4.5678912e5, 1e6])
@example(values=[3.4028234663852886e38, 1e-45, -1.0])
def test_what_rounding_takes_away_is_exact(count: int, values: list[float]) -> None:
    check_difference(torch.tensor(values, dtype=torch.float32), count)


@COUNTS
@pytest.mark.parametrize("decades", [1, 6, 30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_what_rounding_takes_away_is_exact_of_values_too_many_to_look_at(
    count: int, decades: int, dtype: torch.dtype
) -> None:
    random = np.random.default_rng(decades)
    values = random.choice([-1.0, 1.0], 5000) * 10.0 ** random.uniform(-decades, decades / 4, 5000)
    check_difference(torch.from_numpy(values).to(torch.float32).to(dtype), count)


@COUNTS
@given(values=st.lists(st.floats(-(2.0**100), 2.0**100, width=32), max_size=50))
def test_levels_can_be_written_and_do_not_fall(count: int, values: list[float]) -> None:
    levels = best_levels(torch.tensor(values, dtype=torch.float32), count)
    assert levels.shape == (count,)
    assert torch.equal(levels.to(torch.bfloat16).float(), levels)
    assert bool((levels[1:] >= levels[:-1]).all())
    assert float(levels[0]) >= 0
    assert not torch.signbit(levels).any()


def tail(part: float) -> Tensor:
    """The largest of many normal numbers, in no order."""
    values = torch.randn(400_000, generator=torch.Generator().manual_seed(0))
    return values[values.abs() > values.abs().quantile(1 - part)] if part < 1 else values


@pytest.mark.parametrize(
    ("part", "count", "loss"),
    [(0.01, 8, 0.022), (0.01, 2, 0.062), (0.1, 8, 0.037), (0.1, 2, 0.106), (1.0, 8, 0.112), (1.0, 2, 0.45)],
)
def test_little_of_normal_numbers_is_lost(part: float, count: int, loss: float) -> None:
    """A tenth more than Lloyd's best at most; equal steps around zero lose several times as much of a tail."""
    values = tail(part)[:100_000]
    sent = rounded(Selection(None, values, values.numel()), FORMATS[count]).values
    assert float((values - sent).norm() / values.norm()) < loss


@COUNTS
def test_where_values_are_near_zero_the_lowest_level_is_zero(count: int) -> None:
    assert float(best_levels(tail(1.0), count)[0]) == 0.0
    assert float(best_levels(tail(0.01), count)[0]) > 2.0


@COUNTS
def test_no_outlier_is_missed_wherever_it_is(count: int) -> None:
    for at in (0, 77_777, 99_999):
        values = torch.ones(100_000)
        values[at] = 1000.0
        assert best_levels(values, count).tolist()[-1] == 1000.0
