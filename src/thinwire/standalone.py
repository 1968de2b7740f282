"""The same machine without DDP: for training loops of one's own, and for anything else that is averaged."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire import recipes
from thinwire.carry import Cargo
from thinwire.errors import PlanError
from thinwire.layout import Layout, Span
from thinwire.ledger import Ledger
from thinwire.observe.stats import Counter
from thinwire.pace import Pace
from thinwire.plans import Plan
from thinwire.step import Step
from thinwire.wire import GroupWire

Tensors = TypeVar("Tensors", bound=Sequence[Tensor] | Mapping[str, Tensor])

_wires: dict[str, tuple[dist.ProcessGroup, GroupWire]] = {}


def synchronize(
    tensors: Tensors,
    plan: Plan | None = None,
    group: dist.ProcessGroup | None = None,
    *,
    ledger: Ledger | None = None,
) -> Tensors:
    """Replace tensors by their mean over the ranks, as far as the plan sends it. Every rank must call it.

    Args:
        tensors: A list, or a dictionary by name; the same shapes and order on every rank. Dense ones are changed in
            place; a sparse COO tensor is only read, and its mean is in the result.
        plan: What to send and how; None for the best default known so far.
        group: The ranks; None for all.
        ledger: Keeps what was not sent for the next call (make one `thinwire.Ledger` and pass it every time).
            Without one, what a lossy plan does not send is dropped.

    Returns:
        The tensors with their means, in the form they were given.

    Raises:
        SyncError: As everywhere, on every rank; nothing was changed then.
        PlanError: A tensor is of a type that cannot be averaged.
    """
    named = dict(tensors) if isinstance(tensors, Mapping) else {str(i): t for i, t in enumerate(tensors)}
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            found = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise PlanError(f"tensors[{name!r}] is a {found}; synchronize averages floating-point tensors")
    step = Step(
        plan=_without_weights(plan if plan is not None else recipes.default()),
        ledger=ledger if ledger is not None else Ledger(),
        wire=_wire(group if group is not None else dist.group.WORLD),
        counter=Counter(),
        generation=0,
    )
    step.ledger.rooms.sweep()
    with torch.no_grad():
        means = _means(named, step)
        step.vote()
        if (error := step.error()) is not None:
            if step.wire.broken:
                step.ledger.rooms.clear()
            raise error
        step.commit()
        for name, mean in means.items():
            if named[name].is_sparse:
                named[name] = mean
            else:
                named[name].copy_(mean.view(named[name].shape))
    if isinstance(tensors, Mapping):
        return named  # type: ignore[return-value]
    return list(named.values())  # type: ignore[return-value]


def _without_weights(plan: Plan) -> Plan:
    """The plan, if it needs nothing but tensors."""
    if plan.selector.looks_at_weights:
        raise PlanError(
            f"{plan.selector!r} compares gradients with weights, which synchronize does not know; attach a model, or "
            f"use another selector, such as TopK(density=0.01)"
        )
    return plan


def _means(named: Mapping[str, Tensor], step: Step) -> dict[str, Tensor]:
    """Each tensor's mean; dense tensors of one type and device go together."""
    means: dict[str, Tensor] = {}
    kinds: dict[tuple[torch.dtype, torch.device], list[str]] = {}
    for name, tensor in named.items():
        if tensor.is_sparse:
            layout = Layout((Span(name, 0, tensor.numel()),))
            mean = step.group(Cargo(gradient=tensor, layout=layout, turn=step.turn()))
            means |= {} if mean is None else {name: mean}
        else:
            kinds.setdefault((tensor.dtype, tensor.device), []).append(name)
    for names in kinds.values():
        layout = Layout.of({name: named[name].numel() for name in names})
        shapes = [named[name].shape for name in names]
        flat = torch.cat([named[name].detach().reshape(-1) for name in names])
        mean = step.group(Cargo(gradient=flat, layout=layout, turn=step.turn(), shapes=shapes))
        if mean is not None:
            means |= {span.name: mean[span.start : span.stop] for span in layout.spans}
    return means


def _wire(group: dist.ProcessGroup | None) -> GroupWire:
    """One wire for each group, made at the first use."""
    if group is None:
        raise PlanError("there is no process group; call torch.distributed.init_process_group first")
    known = _wires.get(group.group_name)
    if known is None or known[0] is not group:
        known = _wires[group.group_name] = (group, GroupWire(group, Pace(), life="standalone"))
    return known[1]
