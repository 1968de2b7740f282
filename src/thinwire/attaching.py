"""One line on a DDP model."""

import torch
from torch.nn.parallel import DistributedDataParallel

from thinwire.asked import DEFAULT_PATIENCE, LossScale
from thinwire.control.controller import Controller
from thinwire.errors import AttachError
from thinwire.plans import Plan
from thinwire.sync import SyncState
from thinwire.torch_names import GradBucket

# No postponed evaluation of annotations in this module: DDP looks at the hook's annotations itself.


def hook(state: SyncState, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The communication hook, for those who register it by hand.

        state = thinwire.SyncState(ddp_model, plan)
        ddp_model.register_comm_hook(state, thinwire.hook)

    Args:
        state: The model's synchroniser.
        bucket: A bucket of gradients, as DDP gives it.

    Returns:
        A future of the mean of the bucket over all ranks.
    """
    return state.on_bucket(bucket)


def attach(
    model: DistributedDataParallel,
    plan: Plan | Controller | None = None,
    *,
    scaler: LossScale | None = None,
    patience: float = DEFAULT_PATIENCE,
) -> SyncState:
    """Let thinwire synchronise a DDP model's gradients. Every rank must call it, before the first backward pass.

    Args:
        model: The model, wrapped in DistributedDataParallel.
        plan: What to send and how, for example ``thinwire.recipes.ar_topk(density=0.01)``; the same on every rank.
            A controller, such as ``thinwire.recipes.adaptive()``, chooses by itself, anew in each step; None does the
            same with default options.
        scaler: The GradScaler in use, if any, so that debts follow the loss scale.
        patience: Seconds to wait for a slow rank before giving up on it.

    Returns:
        The synchroniser: its statistics, its state, and the ways to steer it.

    Raises:
        AttachError: The model is not a DDP model, has another hook, or is attached already.
        PlanError: The plan is no plan.
    """
    for registered, state in getattr(model, "_comm_hooks", []):
        if registered is hook and state is None:
            continue  # a copy of an attached model: it came without a synchroniser, and without a hook
        if not isinstance(state, SyncState):
            raise AttachError(
                "this DDP model has another communication hook, and DDP takes only one in its life; wrap the module "
                "anew in DistributedDataParallel and attach before registering anything"
            )
        state.open(plan, scaler=scaler, patience=patience)
        return state
    sync = SyncState(model, plan, scaler=scaler, patience=patience)
    model.register_comm_hook(sync, hook)
    return sync
