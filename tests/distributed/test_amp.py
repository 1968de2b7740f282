"""Mixed precision: loss scales, overflows and skipped steps, as in plain DDP, with every debt kept."""

import pytest
import torch

import thinwire
from tests.distributed.models import checksum, loss, make
from thinwire.plans import Plan
from thinwire.selectors import TopK

PLANS = {
    "dense": thinwire.recipes.dense(),
    "own": thinwire.recipes.topk_allgather(density=0.1),
    "leader": thinwire.recipes.ar_topk(density=0.1),
    "seeded": Plan(selector=thinwire.RandomK(density=0.2), agreement=thinwire.Seeded()),
    "gathered whole": Plan(selector=thinwire.Everything(), codec=thinwire.Dense()),
}
POISON = {3: (0, float("nan")), 7: (1, float("inf")), 8: (1, float("-inf")), 15: (0, float("nan"))}


def scaled_run(rank: int, world: int, name: str) -> tuple[list[float], list[int], list[int]]:
    """A run with a GradScaler and one bad gradient now and then: scales, checksums, steps at which debts changed."""
    ddp, sync = make(rank, plain=name == "plain", plan=PLANS.get(name))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4)
    if sync is not None:
        sync._scaler = scaler
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.001)
    scales, sums, changed = [], [], []
    for step in range(20):
        optimizer.zero_grad()
        value = loss(ddp, rank, step)
        culprit, poison = POISON.get(step, (None, 1.0))
        if culprit == rank:
            value = value * poison
        before = sync.state_dict() if sync is not None else None
        scaler.scale(value).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        sums.append(checksum(ddp))
        if sync is not None:
            after = sync.state_dict()
            assert all(bool(debt.isfinite().all()) for debt in after["owed"].values())
            if not same_debts(before, after):
                changed.append(step)
    if sync is not None and name != "dense":
        # The dense plan owes nothing and lets NaN pass as plain DDP does.
        assert sync.stats().overflows == len(POISON)
    return scales, sums, changed


def same_debts(before: dict, after: dict) -> bool:
    """Whether two states owe the same, whatever loss scale they express it in."""
    return all(
        torch.equal(debt / after["scale"], before["owed"].get(name, torch.zeros(1)) / before["scale"])
        for name, debt in after["owed"].items()
    )


@pytest.mark.parametrize("name", PLANS)
def test_the_trace_of_loss_scales_is_that_of_plain_ddp(pool, name):
    plain = pool(2).run(scaled_run, "plain")
    ours = pool(2).run(scaled_run, name)
    assert plain[0][0] == plain[1][0] == ours[0][0] == ours[1][0]
    assert len(set(plain[0][0])) > 2, "the scale must have moved"
    assert ours[0][1] == ours[1][1], "replicas must be identical"
    for step in POISON:
        assert ours[0][1][step] == ours[0][1][step - 1], "a bad step must not change a parameter"
    if name not in ("dense", "gathered whole"):
        assert all(ours[rank][2] == [s for s in range(20) if s not in POISON] for rank in range(2))
    if name == "dense":
        assert ours[0][1] == plain[0][1]


def rescaled(rank: int, world: int, follow: bool) -> float:
    """Scales change at random; does what was delivered plus what is owed still add up, in unscaled units?"""

    class Scale:
        value = 1.0

        def get_scale(self) -> float:
            return self.value

    scale = Scale()
    ddp, sync = make(rank, plan=Plan(selector=TopK(density=0.05)))
    sync._scaler = scale if follow else None
    own = {name: torch.zeros(p.numel(), dtype=torch.float64) for name, p in ddp.module.named_parameters()}
    total = {name: debt.clone() for name, debt in own.items()}
    import random

    rng = random.Random(5)
    for step in range(30):
        scale.value = 2.0 ** rng.randrange(-3, 12)
        ddp.zero_grad()
        with ddp.no_sync():
            loss(ddp, rank, step).backward()
        for name, p in ddp.module.named_parameters():
            own[name] += p.grad.double().flatten()
        ddp.zero_grad()
        (loss(ddp, rank, step) * scale.value).backward()
        for name, p in ddp.module.named_parameters():
            total[name] += p.grad.double().flatten() / scale.value
    state = sync.state_dict()
    difference = torch.cat([own[n] - state["owed"][n].double() / state["scale"] - 0 for n in own])
    sent = torch.cat(list(total.values()))
    torch.distributed.all_reduce(difference)
    return float((difference / world - sent).norm() / sent.norm())


def test_debts_follow_the_loss_scale(pool):
    assert max(pool(2).run(rescaled, True)) <= 1e-6
    assert min(pool(2).run(rescaled, False)) > 1e-3, "without following, this test must fail"


def half_precision(rank: int, world: int, name: str) -> list[int]:
    """Parameters of a narrow type."""
    dtype = getattr(torch, name)
    torch.manual_seed(0)
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(dtype))
    sync = thinwire.attach(ddp, thinwire.recipes.topk_allgather(density=0.2))
    sums = []
    for step in range(6):
        if step == 3:
            sync.switch(thinwire.recipes.dense())
        ddp.zero_grad()
        ddp(torch.randn(4, 8, generator=torch.Generator().manual_seed(step * 10 + rank)).to(dtype)).sum().backward()
        with torch.no_grad():
            for p in ddp.parameters():
                assert p.grad.dtype == dtype
                p -= 0.1 * p.grad
        sums.append(checksum(ddp))
    return sums


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_narrow_and_wide_gradients(pool, dtype):
    first, second = pool(2).run(half_precision, dtype)
    assert first == second
    assert len(set(first)) == 6


def flushed_narrow(rank: int, world: int) -> bool:
    """What the parameters' type rounds off a flushed debt stays owed, to the bit. Whether there was any."""
    torch.manual_seed(0)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 4).bfloat16())
    sync = thinwire.attach(ddp, thinwire.recipes.topk_allgather(density=0.0))
    for step in range(3):
        ddp.zero_grad()
        ddp(torch.randn(4, 8, generator=torch.Generator().manual_seed(10 * step + rank)).bfloat16()).sum().backward()
    means = sync.state_dict()["owed"]
    for mean in means.values():
        torch.distributed.all_reduce(mean.mul_(1 / world))
    flushed, rest = sync.flush(), sync.state_dict()["owed"]
    assert flushed.keys() == rest.keys() == means.keys()
    for name, mean in means.items():
        assert flushed[name].dtype == torch.bfloat16
        assert torch.equal(flushed[name].flatten().float() + rest[name], mean)
    return any(bool(debt.any()) for debt in rest.values())


def test_a_flush_owes_what_it_rounds_off(pool):
    assert pool(2).run(flushed_narrow) == [True, True]


def a_sum_that_overflows(rank: int, world: int) -> tuple[bool, int, bool]:
    """Finite on every rank, but the mean does not fit float16."""
    torch.manual_seed(0)
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    ddp = DistributedDataParallel(nn.Linear(1, 2, bias=False).half())
    sync = thinwire.attach(ddp, thinwire.recipes.topk_allgather(density=1.0))
    for value in (60000.0, 60000.0):
        ddp.zero_grad()
        (ddp(torch.ones(1, 1).half()).float() * value).sum().backward()
    ours = ddp.module.weight.grad.clone()
    return bool(ours.isfinite().all()), sync.stats().overflows, bool(sync.state_dict()["owed"]["weight"].any())


def test_means_are_summed_wide(pool):
    for finite, overflows, _ in pool(2).run(a_sum_that_overflows):
        assert finite, "60000 + 60000 does not fit float16, their mean does"
        assert overflows == 0
