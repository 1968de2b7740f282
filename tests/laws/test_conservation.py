"""Law 1: the gradient is what was sent plus what was kept, element by element, and over a whole run."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.samples import plans, selectors
from thinwire.carry import Cargo, carry
from thinwire.codecs import Delta
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger, Page
from thinwire.message import Expected, decode, encode
from thinwire.plans import Feedback, Plan
from thinwire.selectors import Rounded, TopK
from thinwire.types import Turn, ValueFormat

KINDS = ("normal", "zeros", "one-hot", "ties", "denormals", "huge", "tiny", "heavy tail", "signed zeros")


def gradient(kind: str, numel: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A gradient of a named kind."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(numel)
    one_hot = np.zeros(numel)
    one_hot[: numel > 0] = 1.0
    made = {
        "normal": normal,
        "zeros": np.zeros(numel),
        "one-hot": one_hot,
        "ties": np.round(normal),
        "denormals": normal * 1e-40,
        "huge": normal * 1e37,
        "tiny": normal * 1e-30,
        "heavy tail": rng.standard_cauchy(numel),
        "signed zeros": np.where(normal > 0, 0.0, -0.0),
    }[kind]
    return torch.from_numpy(made.clip(-3e38, 3e38)).to(dtype)


@pytest.mark.parametrize("selector", selectors(), ids=repr)
@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    numel=st.integers(0, 200),
    seed=st.integers(0, 99),
    wide=st.booleans(),
    looks=st.booleans(),
)
def test_sent_plus_kept_is_what_was_owed(selector, kind, numel, seed, wide, looks):
    owed = gradient(kind, numel, seed, torch.float64 if wide else torch.float32)
    page = Page(Layout.of({"w": numel}), owed.dtype, owed.device)
    debt = page.stage(owed, Feedback())
    if looks:
        assert torch.equal(debt.total, owed)
    sent = selector.select_from(debt, seed=seed)
    if looks:
        other = selector.select(owed, seed=seed)
        assert torch.equal(sent.indices, other.indices)
        assert torch.equal(sent.values, other.values)
    indices = sent.indices
    assert indices.dtype == torch.int32
    assert bool((indices[1:] > indices[:-1]).all())
    whole = torch.zeros(sent.units * sent.width, dtype=owed.dtype)
    whole.view(-1, sent.width)[indices.long()] = sent.values.view(-1, sent.width)
    assert not whole[numel:].any()
    page.keep(sent, Feedback())
    page.commit()
    total = whole[:numel] + page.owed
    if sent.format is ValueFormat.INT8:
        # Multiples of a step: the difference is rounded once, relative to the larger of the two.
        unit = torch.maximum(owed.abs(), whole[:numel].abs()) * torch.finfo(owed.dtype).eps
        assert bool(((total - owed).abs() <= unit).all())
    else:
        assert torch.equal(total, owed)


@pytest.mark.parametrize("to", ["bf16", "f16", "int8", "int4", "int2"])
def test_rounding_keeps_the_rest_and_sends_only_what_the_format_can_write(to):
    owed = gradient("normal", 1000, 0)
    sent = Rounded(TopK(density=0.5), to=to).select(owed)
    assert sent.values.ne(owed[sent.indices.long()]).any(), "nothing was rounded"
    if sent.levels is not None:
        assert set(sent.values.abs().tolist()) <= set(sent.levels.tolist())
        assert torch.equal(sent.levels.to(torch.bfloat16).to(owed.dtype), sent.levels)
    elif to != "int8":
        assert torch.equal(sent.values.to(sent.format.dtype).to(owed.dtype), sent.values)
    else:
        steps = sent.values / sent.scale
        assert torch.equal(torch.round(steps) * sent.scale, sent.values)
        assert steps.abs().max() <= 127.5


def test_f16_saturates_and_keeps_what_is_beyond_its_range():
    owed = torch.tensor([1e6, -1e6, 1.0])
    sent = Rounded(TopK(density=1.0), to="f16").select(owed)
    assert sent.values.tolist() == [65504.0, -65504.0, 1.0]


@pytest.mark.parametrize("to", ["bf16", "f16", "int8", "int4", "int2"])
@pytest.mark.parametrize("width", [torch.float32, torch.float64], ids=str)
def test_rounding_holds_at_both_ends_of_the_range(to, width):
    """The largest numbers there are, and so small ones that a 127th of them is hardly a number at all."""
    turn = Turn(step=0, group=0, rank=0, world=1)
    top = torch.finfo(width).max
    for owed in ([top, -top, 1.0], [-top / 2, 3.4028234e38, 0.0], [3e-43, -4e-43, 1e-45], [1e-45], [1.0, -1e-5]):
        exact = torch.tensor(owed, dtype=width)
        sent = Rounded(TopK(density=1.0), to=to).select(exact)
        assert bool(sent.values.isfinite().all())
        assert bool((sent.values * exact >= 0).all())
        expected = Expected(numel=len(owed), width=1, dtype=width, turn=turn)
        again = decode(encode(sent, Delta(), turn), expected)
        same = torch.equal(again.values.view(torch.uint8), sent.values.view(torch.uint8))  # zeros have signs
        assert same, f"{owed} as {to}: what was sent is not what was taken out"


def test_int8_goes_as_far_as_its_step_and_not_only_as_far_as_float32():
    """The step travels as float32, 127 of them may be more than it can hold, and sums in float64 can take them."""
    top = torch.finfo(torch.float32).max
    for owed, reach in (([1e39, -5e38, 1e38], 1e39), ([1e300, -1e300, 1.0], 127 * top), ([1e-300, -1e-50], 0.0)):
        exact = torch.tensor(owed, dtype=torch.float64)
        sent = Rounded(TopK(density=1.0), to="int8").select(exact)
        # Where the step is as float32 can write it, the largest value is off by no more than its last bit.
        assert sent.values.abs().max().item() == pytest.approx(reach, rel=1e-6)
        within = exact.clamp(-reach, reach)
        assert bool(((sent.values - within).abs() <= 0.51 * sent.scale * bool(reach) + 1e-50).all())


NUMEL = 240
SIZES = {"a": 100, "b": 7, "c": 1, "d": 132}


def conserving_run(wire: ThreadWire, seed: int, steps: int, sequence: list[Plan]) -> float:
    """A run with everything in it: random plans, rebuilt groups, skips, overflows, save and load.

    Returns the largest relative error of *sum of mean gradients = sum delivered + mean owed*, per parameter.
    """
    common = random.Random(seed)  # the same on every rank
    own = np.random.default_rng([seed, wire.rank])
    ledger = Ledger()
    drift = {name: np.random.default_rng([seed, 7]).standard_normal(size) for name, size in SIZES.items()}
    given = {name: np.zeros(size) for name, size in SIZES.items()}
    delivered = {name: np.zeros(size) for name, size in SIZES.items()}
    for step in range(steps):
        plan = sequence[common.randrange(len(sequence))]
        names = list(SIZES)
        common.shuffle(names)
        cut = common.randrange(1, len(names))
        gradients = {n: (drift[n] + own.standard_normal(SIZES[n])).astype(np.float32) for n in SIZES}
        skipped, overflow = common.random() < 0.05, common.random() < 0.05
        if overflow and wire.rank == step % wire.world:
            gradients["a"][3] = np.nan
        pages, arrived = [], {}
        for number, group in enumerate((names[:cut], names[cut:])):
            layout = Layout.of({name: SIZES[name] for name in group})
            flat = torch.cat([torch.from_numpy(gradients[name]) for name in group])
            turn = Turn(step=ledger.steps, group=number, rank=wire.rank, world=wire.world)
            weights = [torch.linspace(-1.0, 2.0, SIZES[name]) for name in group]
            carried = carry(Cargo(gradient=flat, layout=layout, turn=turn, weights=weights), plan, ledger, wire)
            overflow |= carried.overflow
            pages += [carried.page] if carried.page is not None else []
            arrived |= {s.name: carried.mean[s.start : s.stop].double().numpy() for s in layout.spans}
        ledger.steps += 1
        if not (skipped or overflow):
            for page in pages:
                page.commit()
            for name in SIZES:
                given[name] += gradients[name]
                delivered[name] += arrived[name]
        if common.random() < 0.1:
            fresh = Ledger()
            fresh.load(ledger.owed(), ledger.velocities(), ledger.scale)
            fresh.steps, ledger = ledger.steps, fresh
    owed = ledger.owed()
    mine = np.concatenate([given[n] - (owed[n].double().numpy() if n in owed else 0) for n in SIZES])
    everybody = wire.all_gather(torch.from_numpy(mine).view(torch.uint8), [mine.nbytes] * wire.world)
    mean = sum(part.view(torch.float64).numpy() for part in everybody) / wire.world
    there = np.concatenate([delivered[n] for n in SIZES])
    return float(np.linalg.norm(mean - there) / np.linalg.norm(there))


@pytest.mark.parametrize("world", [2, 3])
def test_nothing_is_lost_over_300_steps_of_everything(world):
    sequence = [plan for plan in plans() if not plan.feedback.momentum]
    errors = run_threads(conserving_run, world, 1, 300, sequence)
    assert all(isinstance(error, float) and error <= 1e-6 for error in errors), errors


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**20), which=st.integers(0, 2**20))
def test_nothing_is_lost_under_any_single_plan(seed, which):
    sequence = [plan for plan in plans() if not plan.feedback.momentum]
    errors = run_threads(conserving_run, 2, seed, 12, [sequence[which % len(sequence)]], jitter=seed)
    assert all(isinstance(error, float) and error <= 1e-6 for error in errors), errors


def test_a_narrow_gradient_type_loses_nothing_either():
    """What rounding the mean to bfloat16 drops goes back to the ledger."""

    def run(wire: ThreadWire) -> float:
        ledger, plan = Ledger(), Plan(selector=TopK(density=0.5))
        rng = np.random.default_rng(wire.rank)
        given, delivered = np.zeros(NUMEL), np.zeros(NUMEL)
        for step in range(50):
            fresh = torch.from_numpy(rng.standard_normal(NUMEL) + 1.0).bfloat16()
            turn = Turn(step=step, group=0, rank=wire.rank, world=wire.world)
            cargo = Cargo(gradient=fresh, layout=Layout.of({"w": NUMEL}), turn=turn)
            carried = carry(cargo, plan, ledger, wire)
            assert carried.mean.dtype == torch.bfloat16
            assert carried.page is not None
            carried.page.commit()
            given += fresh.double().numpy()
            delivered += carried.mean.double().numpy()
        mine = torch.from_numpy(given - ledger.owed()["w"].double().numpy())
        everybody = wire.all_gather(mine.view(torch.uint8), [mine.numel() * 8] * wire.world)
        mean = sum(part.view(torch.float64).numpy() for part in everybody) / wire.world
        return float(np.linalg.norm(mean - delivered) / np.linalg.norm(delivered))

    assert max(run_threads(run, 3)) <= 1e-6
