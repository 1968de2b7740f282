"""What the hook gives DDP where there is nothing of ours to give."""

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire.errors import SyncError
from thinwire.step import Step


def plain_mean(buffer: Tensor, group: dist.ProcessGroup) -> torch.futures.Future[Tensor]:
    """What DDP does without a hook."""
    work = dist.all_reduce(buffer.div_(dist.get_world_size(group)), group=group, async_op=True)
    future: torch.futures.Future[Tensor] = work.get_future().then(lambda done: done.value()[0])
    return future


def value_or_error(step: Step, done: torch.futures.Future[Tensor]) -> Tensor:
    """A bucket's mean; raises if its step has failed."""
    error: SyncError | None = step.error()
    if error is not None:
        raise error
    return done.value()
