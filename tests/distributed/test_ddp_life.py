"""Everything that DDP users do: accumulation, unused parameters, uneven inputs, odd tensors, odd worlds."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from tests.distributed.models import Zoo, batch, checksum, loss, make, train
from thinwire.plans import Plan
from thinwire.selectors import NonZero, TopK

LOSSY = [
    thinwire.recipes.topk_allgather(density=0.1),
    thinwire.recipes.ar_topk(density=0.1),
    thinwire.recipes.topk_allgather(density=0.1, momentum=0.9),
]


def owed_and_delivered(sync, ddp, own: dict, given: dict, world: int) -> float:
    """Relative error of *mean of own gradients = delivered + mean owed*, all ranks taken together."""
    state = sync.state_dict()["owed"]
    left = torch.cat([own[n] - state[n].double() if n in state else own[n] for n in own])
    torch.distributed.all_reduce(left)
    there = torch.cat(list(given.values()))
    return float((left / world - there).norm() / there.norm())


def zeros(ddp) -> dict:
    """A double for each parameter."""
    return {name: torch.zeros(p.numel(), dtype=torch.float64) for name, p in ddp.module.named_parameters()}


def add_grads(into: dict, ddp) -> None:
    """Add what lies in ``grad``."""
    for name, p in ddp.module.named_parameters():
        if p.grad is not None:
            into[name] += p.grad.double().flatten()


def accumulation(rank: int, world: int, plan: Plan, parts: int) -> list[int]:
    """Gradients of several backward passes, synchronised with the last one."""
    ddp, _ = make(rank, plan=plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.002)
    sums = []
    for step in range(6):
        optimizer.zero_grad()
        with ddp.no_sync():
            for part in range(parts - 1):
                (loss(ddp, rank, step) / parts).backward()
                del part
        (loss(ddp, rank, step) / parts).backward()
        optimizer.step()
        sums.append(checksum(ddp))
    return sums


@pytest.mark.parametrize("plan", LOSSY, ids=str)
def test_gradient_accumulation(pool, plan):
    """Two or four equal parts of a loss are the loss, exactly."""
    results = {parts: pool(2).run(accumulation, plan, parts) for parts in (1, 2, 4)}
    for first, second in results.values():
        assert first == second
    assert results[1][0] == results[2][0] == results[4][0]


def clipping(rank: int, world: int, plan: Plan) -> list[float]:
    """Norms of what the optimizer saw, clipped after synchronisation as DDP users do."""
    ddp, _ = make(rank, plan=plan)
    norms = []
    for step in range(6):
        ddp.zero_grad()
        (loss(ddp, rank, step) * 1000).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 0.5)
        norms.append(float(torch.cat([p.grad.flatten() for p in ddp.parameters()]).norm()))
    return norms


def test_clipping(pool):
    first, second = pool(2).run(clipping, LOSSY[0])
    assert first == second
    assert max(first) <= 0.5001


class Router(nn.Module):
    """Uses one of its three experts, sometimes another one on each rank, sometimes none on any."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.out = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor, expert: int) -> torch.Tensor:
        """Through one expert."""
        return self.out(torch.tanh(self.experts[expert](x)))


def routed(rank: int, world: int, plan: Plan, set_to_none: bool) -> tuple[float, list[int]]:
    """Conservation with parameters that nobody used: what would be delivered for them, DDP throws away."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Router(), find_unused_parameters=True, bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, plan)
    local = Router()
    own, given, sums = zeros(ddp), zeros(ddp), []
    rng = np.random.default_rng(9)
    for step in range(40):
        choices = rng.integers(0, 3, size=world)
        if step % 5 == 4:
            choices[:] = choices[0]
        x = torch.randn(3, 6, generator=torch.Generator().manual_seed(step * 10 + rank))
        local.load_state_dict(ddp.module.state_dict())
        local.zero_grad()
        local(x, int(choices[rank])).square().sum().backward()
        for (name, _), p in zip(ddp.module.named_parameters(), local.parameters(), strict=True):
            own[name] += p.grad.double().flatten() if p.grad is not None else 0
        ddp.zero_grad(set_to_none=set_to_none)
        ddp(x, int(choices[rank])).square().sum().backward()
        add_grads(given, ddp)
        with torch.no_grad():
            for p in ddp.parameters():
                if p.grad is not None:
                    p -= 0.02 * p.grad
        sums.append(checksum(ddp))
    return owed_and_delivered(sync, ddp, own, given, world), sums


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("plan", LOSSY[:2], ids=str)
def test_unused_parameters_lose_nothing(pool, plan, set_to_none):
    results = pool(3).run(routed, plan, set_to_none)
    assert max(error for error, _ in results) <= 1e-6
    assert all(sums == results[0][1] for _, sums in results)


def a_real_run(rank: int, world: int) -> float:
    """300 steps of DDP with plan switches, a skipped step, overflows, flush, save and load; rebuilt buckets."""
    import random

    from tests.laws.samples import plans

    rng = random.Random(11)
    choices = [plan for plan in plans() if not plan.feedback.momentum]
    ddp, sync = make(rank, plan=choices[0])
    local = Zoo()
    own, given = zeros(ddp), zeros(ddp)
    for step in range(300):
        if rng.random() < 0.2:
            sync.switch(rng.choice(choices))
        if rng.random() < 0.05:
            sync.load_state_dict(sync.state_dict())
        if rng.random() < 0.03:
            for name, mean in sync.flush().items():
                given[name] += mean.double().flatten()
        poisoned, skipped = rng.random() < 0.05, rng.random() < 0.05
        local.load_state_dict(ddp.module.state_dict())
        local.zero_grad()
        loss(local, rank, step).backward()
        ddp.zero_grad()
        value = loss(ddp, rank, step)
        (value * float("nan") if poisoned and rank == step % world else value).backward()
        if skipped:
            sync.skip_step()
        elif not poisoned:
            add_grads(given, ddp)
            for (name, _), p in zip(ddp.module.named_parameters(), local.parameters(), strict=True):
                own[name] += p.grad.double().flatten()
        if poisoned and any(not torch.isnan(p.grad).any() for p in ddp.parameters()):
            # Only the plans that keep nothing let single values of a bad step through.
            assert sync.plan.keeps_nothing
    return owed_and_delivered(sync, ddp, own, given, world)


@pytest.mark.parametrize("world", [2, 3])
def test_nothing_is_lost_in_300_steps_of_a_real_run(ranks, world):
    assert max(ranks(a_real_run, world, timeout=110.0)) <= 1e-6


def uneven(rank: int, world: int, plan: Plan) -> tuple[list[int], float, int]:
    """Ranks that run out of data early, under DDP's join."""
    ddp, sync = make(rank, plan=plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.002)
    local = Zoo()
    own, given = zeros(ddp), zeros(ddp)
    with ddp.join():
        for step in range(3 + 2 * rank):
            local.load_state_dict(ddp.module.state_dict())
            local.zero_grad()
            loss(local, rank, step).backward()
            for (name, _), p in zip(ddp.module.named_parameters(), local.parameters(), strict=True):
                own[name] += p.grad.double().flatten()
            optimizer.zero_grad()
            loss(ddp, rank, step).backward()
            add_grads(given, ddp)
            optimizer.step()
    steps = sync.stats().steps
    # The last rank saw every delivery.
    torch.distributed.broadcast(seen := torch.cat(list(given.values())), world - 1)
    state = sync.state_dict()["owed"]
    left = torch.cat([own[n] - state[n].double() if n in state else own[n] for n in own])
    torch.distributed.all_reduce(left)
    return [checksum(ddp)], float((left / world - seen).norm() / seen.norm()), steps


@pytest.mark.parametrize("plan", [thinwire.recipes.dense(), *LOSSY[:2]], ids=str)
def test_join_with_uneven_inputs(pool, plan):
    results = pool(3).run(uneven, plan)
    assert all(result[0] == results[0][0] for result in results)
    assert all(result[2] == 7 for result in results)
    assert max(result[1] for result in results) <= 1e-6


def sparse_embedding(rank: int, world: int, plan: Plan, mode: str) -> tuple[list[int], list[bool], int, int]:
    """Parameters of an embedding with sparse gradients, beside the same model with dense ones."""
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(sparse=True), bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, plan)
    torch.manual_seed(3)
    plain = DistributedDataParallel(Zoo(sparse=False), bucket_cap_mb=0.0001)
    thinwire.attach(plain, thinwire.recipes.dense())
    sums, stayed_sparse = [], []
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.002) for m in (ddp, plain)]
    for step in range(8):
        for model, optimizer in zip((ddp, plain), optimizers, strict=True):
            optimizer.zero_grad()
            model(batch(rank, step) if mode == "busy" else batch(rank, step) * 0).square().sum().backward()
        stayed_sparse.append(ddp.module.embedding.weight.grad.is_sparse)
        if plan.keeps_nothing:
            torch.testing.assert_close(
                ddp.module.embedding.weight.grad.to_dense(), plain.module.embedding.weight.grad, rtol=1e-5, atol=1e-7
            )
        for optimizer in optimizers:
            optimizer.step()
        sums.append(checksum(ddp))
    row_bytes = [g.bytes_sent for g in sync.stats().groups if g.numel == 66]
    return sums, stayed_sparse, len(row_bytes), row_bytes[0]


@pytest.mark.parametrize("mode", ["busy", "one row"])
@pytest.mark.parametrize("plan", [thinwire.recipes.dense(), LOSSY[0]], ids=str)
def test_sparse_embeddings_stay_sparse(pool, plan, mode):
    results = pool(3).run(sparse_embedding, plan, mode)
    assert all(result[0] == results[0][0] for result in results)
    assert all(all(result[1]) for result in results)
    assert results[0][2] == 1
    if mode == "one row":
        from thinwire.roll_call import SIZE

        # One row of six floats, one gap, one header and one roll call, to two other ranks.
        assert results[0][3] <= 2 * (SIZE + 60 + 6 * 4 + 3)


def sparse_overflow(rank: int, world: int) -> bool:
    """A sparse gradient that is not finite on one rank reaches all."""
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(sparse=True), bucket_cap_mb=0.0001)
    thinwire.attach(ddp, LOSSY[0])
    value = ddp(batch(rank, 0)).square().sum()
    (value * float("inf") if rank == 1 else value).backward()
    return bool(ddp.module.embedding.weight.grad.coalesce().values().isfinite().all())


def test_a_sparse_overflow_is_known_to_all(pool):
    assert pool(3).run(sparse_overflow) == [False] * 3


def two_part_form(rank: int, world: int) -> list[int]:
    """The state first, the hook second, as with torch's own hooks."""
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(), bucket_cap_mb=0.0001)
    state = thinwire.SyncState(ddp, LOSSY[1])
    ddp.register_comm_hook(state, thinwire.hook)
    sums = train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.002), rank, range(4))
    other, _ = make(rank, plan=LOSSY[1])
    assert sums == train(other, torch.optim.SGD(other.parameters(), lr=0.002), rank, range(4))
    return sums


def test_the_two_part_form_is_the_same(pool):
    first, second = pool(2).run(two_part_form)
    assert first == second


def zero_gradients(rank: int, world: int, plan: Plan) -> bool:
    """A loss that does not depend on the parameters' values."""
    ddp, sync = make(rank, plan=plan)
    for _ in range(3):
        ddp.zero_grad()
        (ddp(batch(rank, 0)) * 0).sum().backward()
    flushed = sync.flush()
    return all(not p.grad.any() for p in ddp.parameters()) and all(not mean.any() for mean in flushed.values())


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
def test_zero_gradients_and_extreme_densities(pool, density):
    for plan in (Plan(selector=TopK(density=density)), Plan(selector=NonZero())):
        assert all(pool(2).run(zero_gradients, plan))


def nothing_and_everything(rank: int, world: int) -> tuple[bool, float]:
    """k = 0 sends nothing and owes everything; flush delivers it; k = n is dense."""
    ddp, sync = make(rank, plan=Plan(selector=TopK(density=0.0)))
    plain, _ = make(rank, plain=True)
    loss(ddp, rank, 0).backward()
    silent = all(not p.grad.any() for p in ddp.parameters())
    flushed = sync.flush()
    loss(plain, rank, 0).backward()
    apart = []
    for (name, p), q in zip(ddp.module.named_parameters(), plain.parameters(), strict=True):
        apart.append(float((p.grad - q.grad).abs().max()))
        assert flushed[name] is p.grad
    assert sync.flush() == {} or all(not mean.any() for mean in sync.flush().values())
    sync.switch(Plan(selector=TopK(density=1.0)))
    ddp.zero_grad()
    plain.zero_grad()
    loss(ddp, rank, 1).backward()
    loss(plain, rank, 1).backward()
    apart += [float((p.grad - q.grad).abs().max()) for p, q in zip(ddp.parameters(), plain.parameters(), strict=True)]
    return silent, max(apart)


def test_k_0_and_k_n(pool):
    for silent, apart in pool(3).run(nothing_and_everything):
        assert silent
        assert apart <= 1e-5


def strided(rank: int, world: int) -> tuple[list[int], float]:
    """Parameters that are not contiguous: channels last, and flush into them."""
    torch.manual_seed(0)
    model = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    assert not model.weight.is_contiguous()
    ddp = DistributedDataParallel(model)
    sync = thinwire.attach(ddp, Plan(selector=TopK(density=0.0)))
    twin = DistributedDataParallel(nn.Conv2d(3, 4, 3))
    twin.module.load_state_dict(model.state_dict())
    x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(rank))
    ddp(x).square().sum().backward()
    twin(x).square().sum().backward()
    sync.flush()
    apart = float((model.weight.grad - twin.module.weight.grad).abs().max())
    sync.switch(thinwire.recipes.ar_topk(density=0.2))
    return train_images(ddp, rank), apart


def train_images(ddp, rank: int) -> list[int]:
    """A few steps on random pictures."""
    sums = []
    for step in range(4):
        ddp.zero_grad()
        x = torch.randn(2, 3, 5, 5, generator=torch.Generator().manual_seed(10 * step + rank))
        ddp(x).square().mean().backward()
        with torch.no_grad():
            for p in ddp.parameters():
                p -= 0.1 * p.grad
        sums.append(checksum(ddp))
    return sums


def test_tensors_that_are_not_contiguous(pool):
    (first, apart), (second, _) = pool(2).run(strided)
    assert first == second
    assert apart <= 1e-6


def subgroups(rank: int, world: int) -> int:
    """Two DDP models on two halves of the ranks, at the same time."""
    halves = [torch.distributed.new_group([0, 1]), torch.distributed.new_group([2, 3])]
    torch.manual_seed(3)
    ddp = DistributedDataParallel(Zoo(), process_group=halves[rank // 2], bucket_cap_mb=0.0001)
    sync = thinwire.attach(ddp, LOSSY[1])
    train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.002), rank, range(5))
    sync.detach()
    thinwire.attach(ddp, LOSSY[0])
    return train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.002), rank, range(5))[-1]


def test_a_model_on_some_of_the_ranks(ranks):
    sums = ranks(subgroups, 4)
    assert sums[0] == sums[1] != sums[2] == sums[3]


def two_models(rank: int, world: int) -> list[int]:
    """A pair of models trained in turn, as in adversarial training, each with a synchroniser."""
    first, _ = make(rank, plan=LOSSY[0])
    second, _ = make(rank, plan=LOSSY[1])
    sums = []
    for step in range(5):
        for model in (first, second):
            sums += train(model, torch.optim.SGD(model.parameters(), lr=0.002), rank, range(step, step + 1))
        model.zero_grad()
        (loss(first, rank, step) + loss(second, rank, step)).backward()
    return sums


def test_two_models_at_once(pool):
    first, second = pool(2).run(two_models)
    assert first == second


def without_ddp(rank: int, world: int) -> tuple:
    """`synchronize`: lists and dictionaries, odd shapes, a ledger over several calls, sparse tensors."""
    tensors = [torch.full((2, 3), float(rank)), torch.tensor(float(rank)), torch.ones(4, 4)[:, ::2] * rank]
    result = thinwire.synchronize(tensors, thinwire.recipes.dense())
    assert result[0] is tensors[0]
    dense = [float(t.mean()) for t in tensors]
    ledger, plan = thinwire.Ledger(), Plan(selector=TopK(density=0.25))
    given = torch.zeros(8)
    for step in range(5):
        fresh = {"w": torch.arange(8.0) * (step + 1) + rank}
        given += thinwire.synchronize(fresh, plan, ledger=ledger)["w"]
    wanted = sum(torch.arange(8.0) * (step + 1) + (world - 1) / 2 for step in range(5))
    owed = ledger.owed()["w"]
    torch.distributed.all_reduce(owed)
    rows = torch.sparse_coo_tensor([[rank, rank + 1]], [[1.0, 2.0], [3.0, 4.0]], (9, 2))
    mean = thinwire.synchronize([rows], plan)[0]
    return dense, float((given + owed / world - wanted).abs().max()), mean.is_sparse, mean.to_dense().tolist()


def test_synchronize_without_ddp(pool):
    for dense, apart, is_sparse, rows in pool(2).run(without_ddp):
        assert dense == [0.5, 0.5, 0.5]
        assert apart <= 1e-5
        assert is_sparse
        assert rows[:3] == [[0.5, 1.0], [2.0, 3.0], [1.5, 2.0]]


def bad_attachments(rank: int, world: int) -> list[str]:
    """What attach refuses, and what it says."""
    torch.manual_seed(0)
    cases = [
        lambda: thinwire.attach(nn.Linear(2, 2)),
        lambda: thinwire.attach(DistributedDataParallel(nn.Linear(2, 2)), "dense"),
        lambda: thinwire.attach(DistributedDataParallel(nn.Linear(2, 2).to(torch.complex64))),
    ]
    twice = make(rank)[0]
    cases.append(lambda: thinwire.attach(twice))
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    other = DistributedDataParallel(nn.Linear(2, 2))
    other.register_comm_hook(None, allreduce_hook)
    cases.append(lambda: thinwire.attach(other))
    cases.append(lambda: thinwire.synchronize([torch.ones(3, dtype=torch.int64)]))
    messages = []
    for case in cases:
        with pytest.raises(thinwire.ThinwireError) as caught:
            case()
        messages.append(str(caught.value))
    return messages


def test_bad_attachments_say_what_to_do(pool):
    messages = pool(2).run(bad_attachments)[0]
    for part, message in zip(
        ("DistributedDataParallel", "thinwire.recipes", "complex64", "switch", "another communication hook", "int64"),
        messages,
        strict=True,
    ):
        assert part in message
