"""Law 6: the dense plan trains exactly like plain DDP, and so does a detached model."""

import pytest
import torch

import thinwire
from tests.distributed.models import make, parameters, train

STEPS = 50


def both(rank: int, world: int, options: dict) -> tuple[list[int], list[int], float]:
    """Checksums of plain DDP and of the dense plan after every step, and how far apart they ended."""
    runs = []
    for plain in (True, False):
        ddp, sync = make(rank, plain=plain, plan=thinwire.recipes.dense(), **options)
        optimizer = torch.optim.AdamW(ddp.parameters(), lr=0.01)
        runs.append((train(ddp, optimizer, rank, range(STEPS)), parameters(ddp)))
        if sync is not None:
            sync.detach()
    (plain_sums, plain_end), (our_sums, our_end) = runs
    return plain_sums, our_sums, float((plain_end - our_end).abs().max() / plain_end.abs().max())


@pytest.mark.parametrize("options", [{}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 25}], ids=repr)
@pytest.mark.parametrize("world", [1, 2, 3, 5])
def test_dense_is_plain_ddp(pool, world, options):
    for plain, ours, distance in pool(world).run(both, options):
        assert distance <= 1e-6
        if world <= 2:
            assert plain == ours
        assert len(set(plain)) == STEPS


def detached(rank: int, world: int) -> tuple[list[int], list[int], int]:
    """Plain DDP, beside a model that is detached, attached again and detached again."""
    plain, _ = make(rank, plain=True)
    wanted = train(plain, torch.optim.SGD(plain.parameters(), lr=0.01), rank, range(6))
    ddp, sync = make(rank, plan=thinwire.recipes.dense())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    found = train(ddp, optimizer, rank, range(2))
    sync.detach()
    sync.detach()
    with pytest.raises(thinwire.AttachError, match="detached"):
        sync.flush()
    found += train(ddp, optimizer, rank, range(2, 4))
    again = thinwire.attach(ddp, thinwire.recipes.dense())
    assert again.attached
    found += train(ddp, optimizer, rank, range(4, 6))
    steps = again.stats().steps
    again.detach()
    return wanted, found, steps


def test_detach_gives_plain_ddp_back_and_attach_works_again(pool):
    for wanted, found, steps in pool(2).run(detached):
        assert wanted == found
        assert steps == 2


def never_used(rank: int, world: int) -> tuple[list[int], list[int]]:
    """Plain DDP, beside a model that was attached with a lossy plan and detached before it was trained."""
    plain, _ = make(rank, plain=True)
    wanted = train(plain, torch.optim.SGD(plain.parameters(), lr=0.01), rank, range(3))
    ddp, sync = make(rank, plan=thinwire.recipes.topk_allgather(density=0.01))
    sync.detach()
    return wanted, train(ddp, torch.optim.SGD(ddp.parameters(), lr=0.01), rank, range(3))


def test_a_detached_model_is_plain_ddp_whatever_the_plan_was(pool):
    for wanted, found in pool(2).run(never_used):
        assert wanted == found
