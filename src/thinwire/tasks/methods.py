"""Ways to synchronise gradients, by name: thinwire's plans, and what PyTorch itself has, as peers.

dense,topk_allgather(density=0.01),powersgd(rank=4),fp16
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from thinwire import recipes
from thinwire.control.controller import Controller
from thinwire.errors import PlanError
from thinwire.plans import Plan

_ONE_BUCKET = 1 << 14  # megabytes


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way, and what is special about training by it.

    Attributes:
        name: As it was asked for.
        plan: Thinwire's, or who chooses it; None for a peer.
        peer: The name of one of `PEERS`; empty for a plan.
        options: The peer's.
        rate: Peak learning rate; None for the task's own.
        arrange: Have the ledger keep the optimizer's first moment, where the plan compresses.
    """

    name: str
    plan: Plan | Controller | None = None
    peer: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    rate: float | None = None
    arrange: bool = True

    @property
    def rows(self) -> bool:
        """Whether gradients of embeddings may come as rows: not where everything is sent densely anyway."""
        return isinstance(self.plan, Controller) or (self.plan is not None and not self.plan.keeps_nothing)

    @property
    def trains(self) -> bool:
        """Whether all ranks train one model. The floor exchanges nothing."""
        return self.peer != "none"

    @property
    def words(self) -> str:
        """What it does."""
        return str(self.plan) if self.plan is not None else PEERS[self.peer].words

    def wrap(self, model: nn.Module) -> DistributedDataParallel:
        """The model in DDP, with a peer's hook where this is a peer.

        Args:
            model: The same on every rank.
        """
        if self.plan is not None:
            return DistributedDataParallel(model)
        return PEERS[self.peer].wrap(model, **self.options)


@dataclass(frozen=True)
class Peer:
    """Something that PyTorch has."""

    words: str
    wrap: Callable[..., DistributedDataParallel]


def _plain(model: nn.Module) -> DistributedDataParallel:
    return DistributedDataParallel(model)


def _fp16(model: nn.Module) -> DistributedDataParallel:
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(None, fp16_compress_hook)
    return ddp


def _powersgd(model: nn.Module, rank: int = 4) -> DistributedDataParallel:
    # On Gloo it waits for ever when there are several buckets.
    ddp = DistributedDataParallel(model, bucket_cap_mb=_ONE_BUCKET)
    state = PowerSGDState(None, matrix_approximation_rank=rank, start_powerSGD_iter=2)
    ddp.register_comm_hook(state, powerSGD_hook)
    return ddp


def _none(model: nn.Module) -> DistributedDataParallel:
    ddp = DistributedDataParallel(model)
    ddp.register_comm_hook(None, noop_hook)
    return ddp


PEERS: dict[str, Peer] = {
    "ddp": Peer("plain DDP, without any hook", _plain),
    "fp16": Peer("PyTorch's hook that sends every gradient as float16", _fp16),
    "powersgd": Peer("PyTorch's PowerSGD hook, in one bucket", _powersgd),
    "none": Peer("no exchange at all: no training, but the floor of the step time", _none),
}
"""What runs beside thinwire's plans."""


def methods(text: str) -> tuple[Method, ...]:
    """Read a list of methods as it stands on a command line.

    Args:
        text: Names with commas between them, each with options in parentheses, if any. Beside the recipe's or the
            peer's own, every method takes ``rate=``, and a recipe ``arrange=False``.

    Returns:
        The methods, in order.

    Raises:
        PlanError: Something in it is unknown, or it cannot be read.
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        asked = [_one(argument) for argument in call.args]
        if call.keywords:
            raise ValueError("an option outside of parentheses")
    except (SyntaxError, ValueError) as error:
        raise PlanError(
            f"cannot read the methods {text!r}; write names with commas between them, and options in parentheses, for "
            f"example 'dense,topk_allgather(density=0.01),powersgd(rank=4)'"
        ) from error
    if not asked:
        raise PlanError("no method was named; write for example dense,topk_allgather")
    made = tuple(method(name, options) for name, options in asked)
    names = [each.name for each in made]
    if len(set(names)) < len(names):
        raise PlanError(f"a method is named twice in {', '.join(names)}; its curves could not be told apart")
    return made


def _one(node: ast.expr) -> tuple[str, dict[str, Any]]:
    if isinstance(node, ast.Name):
        return node.id, {}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        return node.func.id, {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    raise ValueError("neither a name nor a call")


def method(name: str, options: dict[str, Any]) -> Method:
    """One method by its name.

    Args:
        name: Of a recipe or of a peer.
        options: Its own, and ``rate`` and ``arrange``.

    Raises:
        PlanError: There is no such method or option.
    """
    shown = f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})" if options else name
    own = {key: value for key, value in options.items() if key not in ("rate", "arrange")}
    rate, arrange = options.get("rate"), options.get("arrange", True)
    if rate is not None and (not isinstance(rate, int | float) or isinstance(rate, bool) or not 0.0 < rate < 1e6):
        raise PlanError(f"{shown}: rate is the peak learning rate, a number above 0")
    if not isinstance(arrange, bool):
        raise PlanError(f"{shown}: arrange is True or False")
    if name in PEERS:
        if set(own) - ({"rank"} if name == "powersgd" else set()) or not isinstance(own.get("rank", 1), int):
            raise PlanError(f"{shown}: {name} has no such options; powersgd has rank=, a whole number")
        return Method(name=shown, peer=name, options=own, rate=rate)
    if name not in recipes.RECIPES:
        raise PlanError(f"there is no method {name!r}; known: {', '.join([*recipes.RECIPES, *PEERS])}")
    return Method(name=shown, plan=recipes.named(name, **own), rate=rate, arrange=arrange)
