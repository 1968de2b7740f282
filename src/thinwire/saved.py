"""A synchroniser's state as tensors and plain numbers, and back, trusting nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from thinwire.errors import PlanError, StateError
from thinwire.plans import Plan
from thinwire.units import accumulation_dtype, is_finite

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What a run needs to go on bitwise as if it had never stopped."""

    rank: int
    world: int
    steps: int
    scale: float
    plan: Plan
    groups: Sequence[tuple[str, ...]]
    owed: dict[str, Tensor]
    velocity: dict[str, Tensor]


def pack(saved: Saved) -> dict[str, Any]:
    """As a dictionary of tensors and numbers; text goes in as tensors of bytes."""
    return {
        "format": FORMAT,
        "rank": saved.rank,
        "world": saved.world,
        "steps": saved.steps,
        "scale": saved.scale,
        "plan": _text(saved.plan.text),
        "groups": _text(json.dumps([list(names) for names in saved.groups])),
        "owed": dict(saved.owed),
        "velocity": dict(saved.velocity),
    }


def _text(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def unpack(state: Mapping[str, Any], *, rank: int, world: int, parameters: Mapping[str, Tensor]) -> Saved:
    """Read a saved state for one rank of one model.

    Args:
        state: What `pack` made.
        rank: Whose it should be.
        world: The ranks there should be.
        parameters: The model's parameters by name.

    Returns:
        The state, checked.

    Raises:
        StateError: It does not belong here, or is damaged.
    """
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, Mapping) else type(state).__name__
        raise StateError(
            f"this is no thinwire state of format {FORMAT} (found: {found!r}); pass what sync.state_dict() gave"
        )
    try:
        saved = Saved(
            rank=int(state["rank"]), world=int(state["world"]), steps=int(state["steps"]), scale=float(state["scale"]),
            plan=Plan.build(json.loads(bytes(state["plan"].tolist()))),
            groups=[tuple(names) for names in json.loads(bytes(state["groups"].tolist()))],
            owed=dict(state["owed"]), velocity=dict(state["velocity"]),
        )  # fmt: skip
    except (KeyError, ValueError, TypeError, AttributeError, PlanError) as error:
        raise StateError(f"the saved state is damaged: {type(error).__name__}: {error}. Nothing was loaded.") from error
    _check_place(saved, rank, world)
    for kind in (saved.owed, saved.velocity):
        for name, tensor in kind.items():
            _check_tensor(name, tensor, parameters)
    return saved


def _check_place(saved: Saved, rank: int, world: int) -> None:
    if saved.world != world:
        raise StateError(
            f"this state was saved by one of {saved.world} ranks, but there are {world} now: debts are a rank's own "
            f"and cannot be dealt out anew. Before a resize call sync.flush() and step once; then no state is needed."
        )
    if saved.rank != rank:
        raise StateError(
            f"this is the state of rank {saved.rank}, and this is rank {rank}: each rank owes something else. Save one "
            f"file for each rank, for example f'sync-{{rank}}.pt', and load the rank's own."
        )
    if saved.steps < 0 or not 0.0 < saved.scale < float("inf"):
        raise StateError(
            f"the saved state is damaged: {saved.steps} steps, loss scale {saved.scale}. Nothing was loaded."
        )


def _check_tensor(name: str, tensor: object, parameters: Mapping[str, Tensor]) -> None:
    if name not in parameters:
        raise StateError(
            f"the saved state owes for a parameter {name!r} that this model does not have. Nothing was loaded."
        )
    parameter = parameters[name]
    wanted = accumulation_dtype(parameter.dtype)
    if not isinstance(tensor, Tensor) or tensor.shape != (parameter.numel(),) or tensor.dtype != wanted:
        found = (
            f"{tensor.dtype} of shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
        )
        raise StateError(
            f"the debt of {name} is a {found} instead of {parameter.numel()} x {wanted}. Nothing was loaded."
        )
    if not is_finite(tensor):
        raise StateError(f"the debt of {name} is not finite. Nothing was loaded.")
