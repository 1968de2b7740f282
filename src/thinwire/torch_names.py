"""Names of torch that its public modules have at run time but do not show to type checkers, in one place."""

from collections.abc import Callable
from typing import cast

import torch
from torch._C._distributed_c10d import GradBucket, Store

__all__ = ["GradBucket", "Store", "at_end_of_backward", "in_backward"]


def in_backward() -> bool:
    """Whether this thread is inside a backward pass."""
    return bool(torch._C._current_graph_task_id() != -1)


def at_end_of_backward(callback: Callable[[], None]) -> None:
    """Call back when the backward pass that is running has computed every gradient.

    Callbacks run in the order they are queued; one that runs may queue another.

    Raises:
        RuntimeError: No backward pass is running in this thread.
    """
    queue = cast(Callable[[Callable[[], None]], None], torch.autograd.Variable._execution_engine.queue_callback)
    queue(callback)
