"""Selectors that find about k by a threshold, how near they come, and how often they look."""

import math

import numpy as np
import pytest
import torch

from tests.laws.test_conservation import KINDS, gradient
from thinwire import kernels, message, recipes
from thinwire.analysis.looks import Counting
from thinwire.codecs import Delta
from thinwire.errors import PlanError
from thinwire.layout import Layout
from thinwire.ledger import Ledger, Page
from thinwire.plans import Feedback
from thinwire.selectors import BlockTopK, Controlled, GaussianK, SampledK, TopK
from thinwire.types import Turn

N = 200_000
RNG = np.random.default_rng(0)
MADE = {
    "gaussian": RNG.standard_normal(N),
    "laplace": RNG.laplace(size=N),
    "student-t 4": RNG.standard_t(4, N),
    "student-t 2": RNG.standard_t(2, N),
    "mixture": np.repeat([0.05, 0.3, 2.0], [N * 6 // 10, N * 3 // 10, N // 10]) * RNG.standard_normal(N),
}
VECTORS = {name: torch.from_numpy(values).float() for name, values in MADE.items()}


@pytest.mark.parametrize("density", [0.001, 0.01])
@pytest.mark.parametrize("name", VECTORS)
def test_the_corrected_threshold_is_within_a_tenth_of_k_in_five_looks(name, density):
    k = math.ceil(density * N)
    for seed in range(5):
        with Counting() as looks:
            found = GaussianK(density=density).select(VECTORS[name], seed=seed)
        assert 0.9 * k <= found.count <= 1.1 * k
        assert 1 <= looks.passes <= 5
        assert looks.selections == 0, "it fell back to an exact selection"


def test_the_published_and_the_released_threshold_are_what_they_are_known_to_be():
    """One tail lets twice too many through, and then two coarse steps miss; two tails fit normal numbers."""
    normal = VECTORS["gaussian"]
    k = N // 1000
    assert GaussianK(density=0.001, variant="published").select(normal).count == pytest.approx(20.4 * k, rel=0.1)
    with Counting() as looks:
        assert GaussianK(density=0.001, variant="released").select(normal).count == pytest.approx(k, rel=0.2)
    assert looks.passes == 1
    with Counting() as looks:
        GaussianK(density=0.001, variant="released").select(VECTORS["mixture"])
    assert looks.passes == 3
    assert not GaussianK(density=0.001, variant="released").select(torch.rand(N)).count, "as on its authors' benchmark"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("numel", [1, 7, 500])
def test_where_no_threshold_fits_the_corrected_one_selects_exactly(kind, numel):
    values = gradient(kind, numel, 1)
    k = math.ceil(0.1 * numel)
    found = GaussianK(density=0.1).select(values)
    assert k / 1.1 <= found.count <= 1.1 * k
    weakest = found.values.abs().min()
    rest = torch.ones(numel, dtype=torch.bool)
    rest[found.indices.long()] = False
    assert not rest.any() or values[rest].abs().max() <= weakest


def test_zeros_reach_no_threshold():
    zeros = torch.zeros(100)
    assert SampledK(density=0.1, share=1.0).select(zeros).count == 0
    assert GaussianK(density=0.1, variant="released").select(zeros).count == 0
    assert GaussianK(density=1.0, variant="released").select(zeros).count == 100


def test_a_sample_gives_about_k_and_never_more():
    found = SampledK(density=0.01, share=0.1).select(VECTORS["laplace"], seed=3)
    assert 0.6 * N / 100 < found.count <= N / 100
    whole = TopK(density=0.01).select(VECTORS["laplace"])
    assert set(found.indices.tolist()) <= set(whole.indices.tolist())


def fed(selector, steps, page):
    """How many each step selects, with error feedback; gradients that grow and shrink."""
    counts = []
    rng = np.random.default_rng(5)
    for step in range(steps):
        size = 1.0 + 0.3 * math.sin(step / 8)
        debt = page.stage(torch.from_numpy(rng.laplace(size=page.layout.numel) * size).float(), Feedback())
        sent = selector.select_from(debt, seed=step)
        page.keep(sent, Feedback())
        page.commit()
        counts.append(sent.count)
    return counts


def new_page(numel=20_000):
    return Page(Layout.of({"w": numel}), torch.float32, torch.device("cpu"))


def test_control_keeps_near_k_with_one_look_at_a_step():
    with Counting() as looks:
        counts = fed(Controlled(density=0.01), 60, new_page())
    assert all(0.5 * 200 <= count <= 2 * 200 for count in counts), counts
    assert sum(counts) / len(counts) == pytest.approx(200, rel=0.2)
    assert looks.passes <= 2 * 60 + 5, "one to count, one to select"


def test_control_starts_anew_where_the_debt_is_of_another_plan():
    """Nothing was ever sent: the largest debt is far above any threshold."""
    page = new_page()
    page.owed.copy_(VECTORS["gaussian"][:20_000])
    page.owed[7] = 1e6
    fresh = Controlled(density=0.01).select_from(page.stage(torch.zeros(20_000), Feedback()))
    assert 100 <= fresh.count <= 400


def test_control_goes_on_to_the_bit_without_a_state_of_its_own():
    one, other, selector = Ledger(), Ledger(), Controlled(density=0.02)
    layout = Layout.of({"w": 5_000})
    like = torch.empty(0)
    fed(selector, 10, one.page(layout, like))
    other.load(one.owed(), one.velocities(), one.scale)
    assert fed(selector, 10, other.page(layout, like)) == fed(selector, 10, one.page(layout, like))
    assert torch.equal(one.owed()["w"], other.owed()["w"])


def test_every_block_gets_its_share_and_a_kept_value_costs_at_most_ten_bits():
    values = VECTORS["mixture"]
    plan = recipes.block_topk()
    found = plan.selector.select(values)
    per_block = torch.bincount(found.indices.long() // 4096)
    assert per_block[:-1].tolist() == [64] * (N // 4096)
    assert per_block[-1] == math.ceil(64 * (N % 4096) / 4096)
    for block in range(0, N, 4096):
        part = values[block : block + 4096]
        mine = found.indices[(found.indices >= block) & (found.indices < block + 4096)] - block
        assert torch.equal(mine, kernels.top_k(part, mine.numel()))
    letter = message.encode(found, Delta(), Turn(step=0, group=0, rank=0, world=2))
    assert 8 * letter.numel() / found.count <= 10.0, "header and levels included"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: GaussianK(density=0.1, variant="relased"), "Did you mean 'released'"),
        (lambda: SampledK(density=0.1, share=0.0), "share=0.01"),
        (lambda: Controlled(density=0.1, gain=0.0), "gain=0.1"),
        (lambda: BlockTopK(keep=65, block=64), "keep=64, block=4096"),
    ],
)
def test_mistakes_are_told(make, said):
    with pytest.raises(PlanError, match=said):
        make()
