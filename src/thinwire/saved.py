"""A synchroniser's state as tensors and plain numbers, and back, trusting nothing."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from thinwire.errors import StateError
from thinwire.plans import Plan
from thinwire.units import accumulation_dtype, is_finite

FORMAT = 1
_MIND = ("controller", "mind")


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
    mind: tuple[str, str] = ("", "")
    """The controller and its state as text; empty where the plan was given."""


def pack(saved: Saved) -> dict[str, Any]:
    """As a dictionary of tensors and numbers; text goes in as tensors of bytes."""
    return {
        "format": FORMAT,
        "rank": saved.rank,
        "world": saved.world,
        "steps": saved.steps,
        "scale": saved.scale,
        "plan": _text(saved.plan.text),
        **{key: _text(text) for key, text in zip(_MIND, saved.mind, strict=True) if text},
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
    try:
        if not isinstance(state, Mapping):
            raise TypeError(f"a {type(state).__name__}")
        found = _whole(state["format"])
    except (KeyError, ValueError, TypeError) as error:
        raise StateError(
            f"this is no thinwire state ({type(error).__name__}: {error}); pass what sync.state_dict() gave"
        ) from error
    if found != FORMAT:
        raise StateError(f"this is a state of format {found}; this version of thinwire reads format {FORMAT}")
    try:
        saved = Saved(
            rank=_whole(state["rank"]), world=_whole(state["world"]), steps=_whole(state["steps"]),
            scale=_number(state["scale"]), plan=Plan.build(_read_json(state["plan"])),
            groups=_read_groups(_read_json(state["groups"])),
            owed=_read_tensors(state["owed"]), velocity=_read_tensors(state["velocity"]),
            mind=(_read_text(state, "controller"), _read_text(state, "mind")),
        )  # fmt: skip
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise StateError(f"the saved state is damaged: {type(error).__name__}: {error}. Nothing was loaded.") from error
    _check_place(saved, rank, world)
    _check_groups(saved, parameters)
    # Detached and moved: a file may hold tensors that require gradients, or come from another device.
    return replace(
        saved,
        owed={name: _checked("debt", name, tensor, parameters) for name, tensor in saved.owed.items()},
        velocity={name: _checked("velocity", name, tensor, parameters) for name, tensor in saved.velocity.items()},
    )


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{type(value).__name__} instead of a whole number")
    if abs(value) >= 1 << 63:
        raise ValueError("a number beyond 64 bits")
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"{type(value).__name__} instead of a number")
    return float(value)  # type: ignore[arg-type]


def _read_text(state: Mapping[str, Any], key: str) -> str:
    """A text that need not be there."""
    return bytes(_bytes(state[key])).decode() if key in state else ""


def _read_json(text: object) -> Any:
    """The data in a tensor of bytes."""
    return json.loads(bytes(_bytes(text)))


def _bytes(text: object) -> list[int]:
    if not isinstance(text, Tensor) or not _is_plain(text, torch.uint8):
        raise TypeError("a text that is no tensor of bytes")
    numbers: list[int] = text.tolist()
    return numbers


def _read_tensors(data: object) -> dict[str, Tensor]:
    if not isinstance(data, Mapping) or not all(isinstance(name, str) for name in data):
        raise TypeError("debts that are no mapping of names")
    return dict(data)


def _is_plain(tensor: Tensor, dtype: torch.dtype) -> bool:
    """Nothing sparse, nested or without data."""
    return tensor.layout is torch.strided and not tensor.is_nested and not tensor.is_meta and tensor.dtype == dtype


def _read_groups(data: object) -> list[tuple[str, ...]]:
    """Lists of names. No name may be there twice: a group cut along such a list would leave out another parameter."""
    if not isinstance(data, list) or not all(isinstance(names, list) for names in data):
        raise TypeError("groups that are no lists of names")
    every = [name for names in data for name in names]
    if len(set(every)) != len(every):
        raise ValueError("a parameter in two groups")
    return [tuple(names) for names in data]


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


def _check_groups(saved: Saved, parameters: Mapping[str, Tensor]) -> None:
    named = {name: None for names in saved.groups for name in names} | saved.owed | saved.velocity
    if unknown := [name for name in named if name not in parameters]:
        raise StateError(
            f"the saved state speaks of a parameter {unknown[0]!r} that this model does not have. Nothing was loaded."
        )
    if alone := saved.velocity.keys() - saved.owed.keys():
        raise StateError(f"the saved state is damaged: {min(alone)} has a velocity but no debt. Nothing was loaded.")


def _checked(kind: str, name: str, tensor: object, parameters: Mapping[str, Tensor]) -> Tensor:
    parameter = parameters[name]
    wanted = accumulation_dtype(parameter.dtype)
    if not isinstance(tensor, Tensor) or not _is_plain(tensor, wanted) or tensor.shape != (parameter.numel(),):
        raise StateError(
            f"the {kind} of {name} is {_described(tensor)} instead of {parameter.numel()} x {wanted}. "
            f"Nothing was loaded."
        )
    if not is_finite(tensor.detach()):
        raise StateError(f"the {kind} of {name} is not finite. Nothing was loaded.")
    return tensor.detach().to(parameter.device)


def _described(found: object) -> str:
    if not isinstance(found, Tensor) or found.is_nested:
        return f"a {type(found).__name__}"
    return f"a {found.layout} tensor of {found.dtype} and shape {tuple(found.shape)} on {found.device}"
