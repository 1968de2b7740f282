"""thinwire's plans as contestants, called as the hook calls them: with no copy between gradient and exchange."""

import inspect
import re
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire import recipes
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange.method import Contestant, Contract, Message, Method, ring_bytes
from thinwire.bench.words import densities as read_densities
from thinwire.bench.words import words
from thinwire.carry import Cargo
from thinwire.errors import PlanError
from thinwire.ledger import Ledger
from thinwire.observe.stats import Counter
from thinwire.pace import Pace
from thinwire.plans import Plan
from thinwire.selectors import Rounded
from thinwire.step import Step
from thinwire.wire import GroupWire

_STAGES = {
    "compress": ("ledger", "select", "encode"),
    "exchange": ("agree", "exchange"),
    "decode": ("mean",),
}


_wires: dict[str, tuple[dist.ProcessGroup, GroupWire]] = {}


def wire() -> GroupWire:
    """The wire of all ranks, for the plans and for the benchmark itself."""
    group = dist.group.WORLD
    assert group is not None
    known = _wires.get(group.group_name)
    if known is None or known[0] is not group:
        known = _wires[group.group_name] = (group, GroupWire(group, Pace(), life="bench"))
    return known[1]


class OurMethod(Method):
    """A plan, carried out step by step with a ledger, roll calls and vote included."""

    def __init__(self, plan: Plan, message: Message) -> None:
        """Open a ledger."""
        super().__init__()
        self._plan = plan
        self._message = message
        self._ledger = Ledger()
        self._wire = wire()

    def exchange(self, gradient: Tensor) -> Tensor:
        """One step of one group."""
        counter = Counter()
        step = Step(plan=self._plan, ledger=self._ledger, wire=self._wire, counter=counter, generation=0)
        self._ledger.rooms.sweep()
        shapes = [shape for _, shape in self._message.shapes]
        mean = step.group(Cargo(gradient=gradient, layout=self._message.layout, turn=step.turn(), shapes=shapes))
        step.groups += 1
        step.vote()
        error = step.error()
        if error is not None:
            raise error
        assert mean is not None
        step.commit()
        found = counter.stats("", 1).total.seconds
        self.seconds = {name: sum(found.get(stage, 0.0) for stage in stages) for name, stages in _STAGES.items()}
        return mean

    def forget(self) -> None:
        """Every debt becomes zero, in its page."""
        for name in self._ledger:
            self._ledger.settle(name)

    def owed(self) -> Tensor | None:
        """All debts, in the order of the message."""
        found = self._ledger.owed()
        return torch.cat([found[name] for name in self._message.layout.names]) if found else None


def contestants(patterns: str, densities: Sequence[float]) -> list[Contestant]:
    """The plans that are meant.

    Args:
        patterns: Names of recipes with commas between, each with the format of its values if that is not the usual one,
            and with a density of its own if it has one: ``ar_topk,topk_allgather:int4,topk_allgather:int4@20%``.
        densities: For recipes that have one.

    Returns:
        In this order, each with every density.

    Raises:
        BenchError: There is no such recipe or format.
    """
    return [each for word in words(patterns) for each in _of(word, densities)]


def _of(word: str, densities: Sequence[float]) -> list[Contestant]:
    parts = re.fullmatch(r"(\w+)(?::(\w+))?(?:@(.+))?", word)
    recipe = recipes.RECIPES.get(parts[1]) if parts else None
    if parts is None or recipe is None:
        known = ", ".join(recipes.RECIPES)
        raise BenchError(f"{word!r} is no recipe; write one of {known}, with a format if you like: topk_allgather:int4")
    sparse = "density" in inspect.signature(recipe).parameters
    if parts[3]:
        if not sparse:
            raise BenchError(f"{word!r}: {parts[1]} has no density; write {word.partition('@')[0]}")
        densities = read_densities(parts[3])
    return [_contestant(parts[1], parts[2] or "", each) for each in (densities if sparse else [None])]


def _contestant(recipe: str, to: str, density: float | None) -> Contestant:
    try:
        own = bool(to) and "to" in inspect.signature(recipes.RECIPES[recipe]).parameters
        options = {"density": density} if density is not None else {}
        plan = recipes.named(recipe, **options, **({"to": to} if own else {}))
        if not isinstance(plan, Plan):
            raise BenchError(f"{recipe} chooses among plans while it trains; here each plan is measured for itself")
        plan = plan.replace(selector=Rounded(plan.selector, to=to)) if to and not own else plan
    except PlanError as error:
        raise BenchError(f"{recipe}:{to} cannot be: {error}") from error
    everything = plan.keeps_nothing
    return Contestant(
        name=f"{recipe}:{to}" if to else recipe,
        make=lambda message: OurMethod(plan, message),
        contract=Contract.EXACT if everything else Contract.KEEPS,
        density=density,
        forecast=ring_bytes(4.0) if everything else lambda numel, world: 0.0,
    )
