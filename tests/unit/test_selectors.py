"""What each selector selects, from any tensor that users have."""

import pytest
import torch

import thinwire
from tests.laws.samples import selectors
from thinwire.agreements.lots import seed_of
from thinwire.codecs import CODECS
from thinwire.message import Expected, decode, encode
from thinwire.selectors import Everything, NonZero, RandomK, Threshold, TopK
from thinwire.types import MAX_NUMEL, Selection, Turn, index_dtype


def test_the_contract_of_the_readme():
    gradient = torch.tensor([0.1, -5.0, 0.0, 3.0])
    selection = thinwire.TopK(density=0.5).select(gradient, 2)
    assert selection.indices.tolist() == [1, 3]
    assert selection.values.tolist() == [-5.0, 3.0]
    assert (selection.numel, selection.width) == (4, 1)


def test_each_selects_what_it_says():
    gradient = torch.tensor([0.0, -2.0, 1.0, -1.0, 0.0, 4.0])
    assert Everything().select(gradient).indices.tolist() == [0, 1, 2, 3, 4, 5]
    assert NonZero().select(gradient).indices.tolist() == [1, 2, 3, 5]
    assert Threshold(threshold=1.0).select(gradient).indices.tolist() == [1, 2, 3, 5]
    assert Threshold(threshold=1.5).select(gradient).indices.tolist() == [1, 5]
    assert TopK(density=0.5).select(gradient).indices.tolist() == [1, 2, 5], "of equals the lowest index"
    assert TopK(density=0.3, width=2).select(gradient).indices.tolist() == [2]
    assert TopK(density=0.5, width=2).select(gradient).indices.tolist() == [0, 2]
    assert NonZero(width=4).select(gradient).indices.tolist() == [0, 1]


@pytest.mark.parametrize("selector", selectors(), ids=repr)
def test_k_caps_every_selector(selector):
    gradient = torch.randn(50, generator=torch.Generator().manual_seed(0))
    units = Selection(None, gradient, 50, selector.width).units
    for k in (0, 1, 5, units, units + 10, -3):
        chosen = selector.select(gradient, k)
        assert chosen.count <= max(0, k)
        if selector.budget(units) == units and k <= units // 3:
            strongest = TopK(density=1.0, width=selector.width).select(gradient, k)
            assert chosen.indices.tolist() == strongest.indices.tolist() or selector.ignores_data


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("selector", selectors(), ids=repr)
def test_any_shape_layout_and_type(selector, dtype):
    torch.manual_seed(0)
    base = torch.randn(6, 8, 2).to(dtype)
    for gradient in (base, base.transpose(0, 1), base[::2, 1:], base[0, 0, 0], base[:0], base[:1].expand(3, 8, 2)):
        flat = gradient.reshape(-1).contiguous().clone()
        one, other = selector.select(gradient, seed=3), selector.select(flat, seed=3)
        assert torch.equal(one.indices, other.indices)
        assert torch.equal(one.values, other.values)
        assert one.numel == gradient.numel()
        assert one.values.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_lots_are_fair_and_follow_from_the_seed():
    gradient = torch.ones(40)
    counts = torch.zeros(40)
    for seed in range(2000):
        chosen = RandomK(density=0.25).select(gradient, seed=seed)
        assert chosen.count == 10
        counts[chosen.indices.long()] += 1
    # A binomial of 2000 lots at 1/4 has a standard deviation of 19.4.
    assert (counts - 500).abs().max() < 5 * 19.4
    assert torch.equal(
        RandomK(density=0.25).select(gradient, seed=7).indices, RandomK(density=0.25).select(-gradient, seed=7).indices
    )


def test_seeds_differ_by_step_group_rank_and_seed_and_not_by_generation():
    turn = Turn(step=3, group=1, rank=0, world=4)
    seeds = {
        seed_of(turn, 0),
        seed_of(turn, 1),
        seed_of(turn, 0, 0),
        seed_of(turn, 0, 1),
        seed_of(Turn(step=4, group=1, rank=0, world=4), 0),
        seed_of(Turn(step=3, group=2, rank=0, world=4), 0),
    }
    assert len(seeds) == 6
    assert seed_of(Turn(step=3, group=1, rank=2, world=4, generation=5), 0) == seed_of(turn, 0)


def test_indices_get_the_width_they_need():
    assert index_dtype(2**31 - 1) == torch.int32
    assert index_dtype(2**31) == torch.int64
    with pytest.raises(thinwire.PlanError, match="split it"):
        index_dtype(MAX_NUMEL + 1)


@pytest.mark.parametrize("numel", [2**31 - 1, 2**31, 2**31 + 1, 2**40])
@pytest.mark.parametrize("name", ["delta", "index-value"])
def test_more_than_two_to_the_31_elements(name, numel):
    """On the level of codecs and messages, where no tensor of that size is needed."""
    dtype = index_dtype(numel)
    indices = torch.tensor([0, 5, 2**31 - 3, numel - 1], dtype=dtype)
    selection = Selection(indices, torch.tensor([1.0, -2.0, 3.0, 4.0]), numel)
    turn = Turn(step=1, group=0, rank=0, world=2)
    letter = encode(selection, CODECS[name](), turn)
    expected = Expected(numel=numel, width=1, dtype=torch.float32, turn=turn)
    again = decode(letter, expected)
    assert torch.equal(again.indices, indices)
    assert again.indices.dtype == dtype
    assert torch.equal(again.values, selection.values)
