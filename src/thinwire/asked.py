"""What a user asks for, checked once, with a message that says what to write instead."""

from typing import Protocol

import torch
from torch.nn.parallel import DistributedDataParallel

from thinwire import recipes
from thinwire.control.controller import Controller
from thinwire.errors import AttachError, PlanError
from thinwire.plans import Plan

DEFAULT_PATIENCE = 1800.0
"""Seconds to wait for a slow rank: as long as Gloo itself would wait."""

_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


class LossScale(Protocol):
    """Anything that knows the loss scale in force; `torch.amp.GradScaler` does."""

    def get_scale(self) -> float:
        """The factor that this step's loss was multiplied with."""


def plan_or_default(plan: Plan | Controller | None) -> Plan | Controller:
    """The plan, or what chooses one; the default where none was given.

    Raises:
        PlanError: It is neither.
    """
    if plan is None:
        return recipes.adaptive()
    if not isinstance(plan, Plan | Controller):
        raise PlanError(
            f"{plan!r} is no plan; write thinwire.recipes.adaptive(), thinwire.recipes.ar_topk(density=0.01), or "
            f"thinwire.Plan(selector=thinwire.TopK(density=0.01))"
        )
    return plan


def check_patience(patience: float) -> None:
    """Nothing, if it is a time to wait.

    Raises:
        AttachError: It is not.
    """
    if not isinstance(patience, int | float) or not 0.0 < patience <= 1e6:
        raise AttachError(f"patience={patience!r}: seconds to wait for a slow rank, above 0 and at most 1e6")


def check_model(model: object) -> None:
    """Nothing, if thinwire can synchronise the model.

    Raises:
        AttachError: It cannot.
    """
    if not isinstance(model, DistributedDataParallel):
        raise AttachError(
            f"attach needs a model wrapped in torch.nn.parallel.DistributedDataParallel, got {type(model).__name__}; "
            f"write ddp = DistributedDataParallel(model) after init_process_group, then thinwire.attach(ddp)"
        )
    for name, parameter in model.module.named_parameters():
        if parameter.requires_grad and parameter.dtype not in _FLOATS:
            raise AttachError(
                f"parameter {name} is {parameter.dtype}; thinwire synchronises float32, float64, bfloat16 and float16"
            )
