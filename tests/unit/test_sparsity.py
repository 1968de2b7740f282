"""The measures of sparsity, by hand and on gradients that are known to be skewed."""

import numpy as np
import pytest
import torch
from torch import Tensor

from thinwire.analysis import sparsity
from thinwire.analysis.sparsity import characterise, cut, hashed, imbalance, striped

A, B, C = (torch.tensor(units, dtype=torch.int32) for units in ([0, 1, 2, 9], [1, 2], [2, 3, 4, 5, 6, 7]))
NONE = A[:0]


def zipf(rank: int, draws: int, units: int, exponent: float = 1.1) -> Tensor:
    """Words that a rank meets, the most frequent ones first: which rows of a sorted vocabulary it touches."""
    weights = np.arange(1, units + 1, dtype=float) ** -exponent
    drawn = np.random.default_rng(rank).choice(units, draws, p=weights / weights.sum())
    return torch.from_numpy(np.unique(drawn))


def test_overlap() -> None:
    assert sparsity.overlap(A, B) == 1.0
    assert sparsity.overlap(A, C) == 0.25
    assert sparsity.overlap(A, NONE) == 0.0


def test_densification() -> None:
    assert sparsity.densification([A, B, C]) == pytest.approx([4 / 4, 4 / 4, 9 / 4])
    assert sparsity.densification([NONE, NONE]) == [1.0, 1.0]


def test_skewness() -> None:
    assert sparsity.skewness(torch.arange(10), 100, 10) == pytest.approx(10.0)
    assert sparsity.skewness(torch.arange(0, 100, 10), 100, 10) == pytest.approx(1.0)
    assert sparsity.skewness(NONE, 100, 10) == 1.0
    assert sparsity.skewness(torch.arange(3), 3, 8) == pytest.approx(1.0)  # more ranges than units


def test_imbalance() -> None:
    assert imbalance([A, B], striped(2), 2) == sparsity.Imbalance(push=1.0, pull=1.0)
    found = imbalance([A, C, NONE], cut(10, 2), 2)
    assert (found.push, found.pull) == pytest.approx((2 * 3 / 4, 2 * 5 / 9))
    assert cut(10, 3)(torch.arange(10)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_sixteen_owners_of_skewed_rows_and_elements_are_balanced() -> None:
    """The bar of Zen: below 1.1, where an even cut gives one owner most of the work."""
    owners, units = 16, 400_000
    rows = [zipf(rank, 60_000, units) for rank in range(4)]
    elements = [torch.arange(0, 64) + 64 * zipf(rank, 4_000, 100_000)[:, None] for rank in range(4)]
    for lists, size in ((rows, units), ([each.reshape(-1) for each in elements], 6_400_000)):
        found = characterise(lists, size, owners)
        assert found.hashed.push < 1.1
        assert found.hashed.pull < 1.1
        assert found.cut.push > 3.0
        assert found.skewness > 3.0


@pytest.mark.parametrize("shape", ["one stripe", "one block", "everything"])
def test_no_pattern_unbalances_hashed_owners(shape: str) -> None:
    units = {
        "one stripe": torch.arange(0, 1_600_000, 16),
        "one block": torch.arange(7777, 27_777),
        "everything": torch.arange(100_001),
    }[shape]
    found = imbalance([units], hashed(16), 16)
    assert found.push < 1.1
    if shape == "one stripe":
        assert imbalance([units], striped(16), 16).push == 16.0


def test_a_profile_explains_the_densification() -> None:
    found = characterise([zipf(rank, 5_000, 50_000) for rank in range(8)], 50_000)
    assert 0.0 < found.profile.overlap < 1.0
    assert found.profile.grown(8) == pytest.approx(found.densification[-1])
    assert len(found.overlaps) == 28
    alone = characterise([A], 10)
    assert (alone.density, alone.overlap, alone.densification) == (0.4, 1.0, (1.0,))
