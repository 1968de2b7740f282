"""Optimizers beside a ledger with momentum: whoever keeps the first moment, nobody else may.

With ``Feedback(momentum=0.9)`` every rank keeps a velocity of its own and sends the largest of what it amounts to
(momentum correction and factor masking of Deep Gradient Compression). An optimizer with a first moment of its own would
average the same directions a second time, and late. So its first moment goes: AdamW with beta1 = 0, SGD without
momentum. What scales steps, Adam's second moment, stays.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

from torch.optim import Optimizer

from thinwire.control.controller import Controller
from thinwire.errors import PlanError
from thinwire.plans import Plan

_Steered = TypeVar("_Steered", bound=Plan | Controller)


def first_moment(optimizer: Optimizer) -> float:
    """The largest factor with which an optimizer remembers earlier gradients: beta1, or SGD's momentum; 0 for none.

    Args:
        optimizer: Any. Of those that keep ``betas`` or ``momentum`` in their groups the answer is known.
    """
    return max((value for _, _, value in _memories(optimizer)), default=0.0)


def arrange(optimizer: Optimizer, plan: _Steered) -> _Steered:
    """Have the first moment kept in one place: by the ledger, where the plan compresses.

    A plan that sends everything is left alone, and so is the optimizer beside it. Call it before the first step.

    Args:
        optimizer: What steps the model. Its beta1, or its momentum, becomes 0 where the ledger takes it over.
        plan: The plan to attach, or the controller: then the ledger has the momentum whatever is chosen.

    Returns:
        What to attach: with the optimizer's own factor as momentum, if it had none.

    Raises:
        PlanError: The optimizer has stepped already; its first moment would be lost.
    """
    found = first_moment(optimizer)
    if not found or (isinstance(plan, Plan) and plan.selector.covers_everything):
        return plan
    if optimizer.state:
        raise PlanError(
            f"{type(optimizer).__name__} has stepped already and holds a first moment; arrange it before the first step"
        )
    for group, name, _ in _memories(optimizer):
        group[name] = (0.0, *group[name][1:]) if name == "betas" else 0.0
        group["nesterov"] = False
    momentum = plan.feedback.momentum or found
    return replace(plan, feedback=replace(plan.feedback, momentum=momentum))


def advice(optimizer: Optimizer, plan: Plan | Controller) -> str:
    """What does not fit between an optimizer and a plan, in a sentence; nothing where all is well.

    Args:
        optimizer: What steps the model.
        plan: The plan in force.
    """
    found = first_moment(optimizer)
    if not found or (isinstance(plan, Plan) and plan.selector.covers_everything):
        return ""
    name = type(optimizer).__name__
    if plan.feedback.momentum:
        return (
            f"the ledger keeps a momentum of {plan.feedback.momentum:g} and {name} a first moment of {found:g}: the "
            f"same "
            f"directions are averaged twice; write plan = thinwire.optimizers.arrange(optimizer, plan) before attach"
        )
    return (
        f"{name} keeps a first moment of {found:g} of gradients that come late and in parts, which costs quality; "
        f"write "
        f"plan = thinwire.optimizers.arrange(optimizer, plan) before attach"
    )


def _memories(optimizer: Optimizer) -> Iterator[tuple[dict[str, Any], str, float]]:
    """Each group that has a first moment, under which name, and its factor."""
    for group in optimizer.param_groups:
        if "betas" in group:
            yield group, "betas", float(group["betas"][0])
        elif "momentum" in group:
            yield group, "momentum", float(group["momentum"])
