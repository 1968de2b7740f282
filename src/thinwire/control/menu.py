"""What a controller may choose from: families of plans, each at many densities. A new family is one line of a table.

What a family's plan gains is not what one rank's largest elements hold. With coordinates of its own every rank updates
other places, so that together they update more of them; with a leader's all update the same. In a trial with 4
workers (a byte language model, 500 steps, one seed) a leader's 3 % ended about where each rank's own 1 % did: so a
leader's coordinates count for a third of as many of one's own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from thinwire.agreements import Leader, Own
from thinwire.codecs import Cheapest, Delta, Dense
from thinwire.control.gains import Curve, Floats
from thinwire.control.price import Table
from thinwire.control.work import work_of
from thinwire.errors import PlanError
from thinwire.exchanges import AllReduce, DirectGather, DirectReduce, OwnerReduce, RoundedReduce
from thinwire.plans import Feedback, Plan
from thinwire.protocols import Selector
from thinwire.registry import unknown
from thinwire.selectors import Everything, Rounded, TopK

DENSITIES = tuple(float(f"{density:.3g}") for density in np.geomspace(1e-4, 0.5, 32))
"""The densities that are priced, beside that of a dense plan."""

OWN, SHARED = 1.0, 1 / 3
"""For how many of one's own coordinates one of a plan's counts."""

NOISE = {"f32": 0.0, "bf16": 1e-6, "int8": 1e-3, "int4": 4e-4, "int2": 3.5e-3}
"""The energy that rounding takes from the values of a selection: the squares of the losses that DESIGN.md has."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Plans that differ in their density alone.

    Args:
        name: For people.
        way: Who goes the same way over the wire, and so takes as much longer than it should.
        make: The plan of a density.
        worth: Of a coordinate; see `OWN` and `SHARED`.
        values: How they are written.
        dense: Sends everything, whatever density is asked for.
    """

    name: str
    way: str
    make: Callable[[float, Feedback], Plan]
    worth: float = OWN
    values: str = "f32"
    dense: bool = False

    @property
    def densities(self) -> tuple[float, ...]:
        """Those that there are plans for."""
        return (1.0,) if self.dense else DENSITIES

    def gains(self, curve: Curve) -> Floats:
        """The share of the energy that goes through at each density, in terms of one's own coordinates."""
        if self.dense:
            return np.array([1.0 - NOISE[self.values]])
        return curve.at(np.array(self.densities) * self.worth) * (1.0 - NOISE[self.values])


def _top(density: float, values: str) -> Selector:
    return TopK(density=density) if values == "f32" else Rounded(TopK(density=density), to=values)


def _own(values: str) -> Family:
    def make(density: float, feedback: Feedback) -> Plan:
        return Plan(
            selector=_top(density, values), agreement=Own(), codec=Delta(), exchange=DirectGather(), feedback=feedback
        )

    return Family(name=f"own-{values}", way="own, gather", make=make, values=values)


def _owners(density: float, feedback: Feedback) -> Plan:
    return Plan(
        selector=_top(density, "f32"), agreement=Own(), codec=Cheapest(), exchange=OwnerReduce(), feedback=feedback
    )


def _leader(density: float, feedback: Feedback) -> Plan:
    return Plan(
        selector=_top(density, "f32"), agreement=Leader(), codec=Delta(), exchange=DirectReduce(), feedback=feedback
    )


def _leader_gathered(density: float, feedback: Feedback) -> Plan:
    return Plan(
        selector=_top(density, "bf16"), agreement=Leader(), codec=Delta(), exchange=DirectGather(), feedback=feedback
    )


def _dense(density: float, feedback: Feedback) -> Plan:
    return Plan(selector=Everything(), agreement=Own(), codec=Dense(), exchange=AllReduce(), feedback=feedback)


def _dense_direct(density: float, feedback: Feedback) -> Plan:
    return Plan(selector=Everything(), agreement=Own(), codec=Dense(), exchange=DirectReduce(), feedback=feedback)


def _half(density: float, feedback: Feedback) -> Plan:
    selector = Rounded(Everything(), to="bf16")
    return Plan(selector=selector, agreement=Own(), codec=Dense(), exchange=RoundedReduce(), feedback=feedback)


_LISTED = (
    Family(name="dense", way="dense, all-reduce", make=_dense, dense=True),
    Family(name="dense-direct", way="dense, direct", make=_dense_direct, dense=True),
    Family(name="dense-bf16", way="dense, rounded", make=_half, values="bf16", dense=True),
    Family(name="leader", way="leader, direct", make=_leader, worth=SHARED),
    Family(name="leader-bf16", way="leader, gather", make=_leader_gathered, worth=SHARED, values="bf16"),
    Family(name="owners", way="own, owners", make=_owners),
    *(_own(values) for values in ("f32", "bf16", "int8", "int4")),
)
FAMILIES: dict[str, Family] = {family.name: family for family in _LISTED}
"""All families by name."""


def families(names: Sequence[str]) -> tuple[Family, ...]:
    """Families by their names.

    Raises:
        PlanError: There is none of that name.
    """
    for name in names:
        if name not in FAMILIES:
            raise PlanError(unknown("family of plans", str(name), FAMILIES))
    return tuple(FAMILIES[name] for name in names)


@dataclass(frozen=True)
class Choice:
    """One candidate: a family, and which of its densities."""

    family: str
    place: int

    @property
    def density(self) -> float:
        """The density."""
        return FAMILIES[self.family].densities[self.place]

    def plan(self, feedback: Feedback) -> Plan:
        """The plan."""
        return FAMILIES[self.family].make(self.density, feedback)

    def __str__(self) -> str:
        """As one speaks of it."""
        return self.family if FAMILIES[self.family].dense else f"{self.family} at {100 * self.density:.3g} %"


@dataclass(frozen=True, eq=False)
class Menu:
    """All candidates for a model on so many ranks, and their work."""

    choices: tuple[Choice, ...]
    table: Table
    sizes: tuple[int, ...]
    world: int

    @cached_property
    def densities(self) -> Floats:
        """Of each candidate."""
        return np.array([choice.density for choice in self.choices])

    @cached_property
    def worths(self) -> Floats:
        """Densities in terms of one's own coordinates."""
        return np.array([choice.density * FAMILIES[choice.family].worth for choice in self.choices])

    @cached_property
    def places(self) -> dict[Choice, int]:
        """Where each candidate is."""
        return {choice: place for place, choice in enumerate(self.choices)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The families, in order."""
        return tuple(dict.fromkeys(choice.family for choice in self.choices))

    def gains(self, curve: Curve) -> Floats:
        """The share of the energy that each candidate lets through."""
        return np.concatenate([FAMILIES[name].gains(curve) for name in self.names])


@lru_cache(maxsize=16)
def menu_of(names: tuple[str, ...], sizes: tuple[int, ...], world: int, feedback: Feedback) -> Menu:
    """The menu of some families for groups of given sizes. Made once for each model."""
    choices = tuple(Choice(family.name, place) for family in families(names) for place in range(len(family.densities)))
    table = Table(tuple(work_of(choice.plan(feedback), sizes, world) for choice in choices))
    return Menu(choices, table, sizes, world)
