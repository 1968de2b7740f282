"""What a plan makes the ranks do for groups of given sizes: rounds, bytes, and elements for the kernels.

It follows from what the parts declare (`traffic`, `calls`, a codec's `size`, a selector's `budget`) and from nothing
else, so a new part has a price as soon as it is registered.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from thinwire import message, roll_call
from thinwire.control import notes
from thinwire.control.manners import delays
from thinwire.plans import Plan
from thinwire.protocols import SHORT
from thinwire.types import Traffic, ValueFormat, unit_count

WRITING = {ValueFormat.BF16: 1.1, ValueFormat.INT8: 1.4, ValueFormat.INT4: 5.0, ValueFormat.INT2: 5.0}
"""How many times longer than a float32 a value takes to write; levels have to be found first."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Sums over all groups of a step, on the busiest rank."""

    rounds: float = 0.0
    """In one-way delays; see `thinwire.control.manners`."""
    bytes_sent: float = 0.0
    """All of them; those that go along with roll calls, too."""
    declared: Traffic = field(default_factory=Traffic)
    """The same as the parts declare it, without what goes along with roll calls: what the wire can time."""
    plain: int = 0
    """Elements that go a dense way."""
    stage: int = 0
    """Elements whose debts are added up and searched."""
    write: float = 0.0
    """Elements written as bytes, each counted as long as its format takes beside float32."""
    read: int = 0
    """Elements read from bytes, and added."""
    groups: int = 0

    def __add__(self, other: "Work") -> "Work":
        """One after the other."""
        return Work(
            rounds=self.rounds + other.rounds,
            bytes_sent=self.bytes_sent + other.bytes_sent,
            declared=self.declared + other.declared,
            plain=self.plain + other.plain,
            stage=self.stage + other.stage,
            write=self.write + other.write,
            read=self.read + other.read,
            groups=self.groups + other.groups,
        )


def work_of(plan: Plan, sizes: Sequence[int], world: int) -> Work:
    """What one step of a plan is.

    Args:
        plan: The plan.
        sizes: Elements of each group.
        world: The ranks.

    Returns:
        The work of the exchanges. Roll calls and votes are the same for all plans: see `overhead_of`.
    """
    total = Work()
    for numel in sizes:
        total += _group(plan, numel, world)
    return total


def overhead_of(groups: int, world: int) -> Work:
    """The roll calls of so many groups, which are on their way at the same time, and the vote."""
    bytes_sent = (world - 1) * ((groups + 1) * roll_call.SIZE + notes.SIZE)
    rounds = 2 if world > 1 else 0
    return Work(rounds=rounds, bytes_sent=bytes_sent, declared=Traffic(bytes_sent=bytes_sent, rounds=rounds))


def _group(plan: Plan, numel: int, world: int) -> Work:
    told, exchanged = traffic_of(plan, numel, world)
    timed = Traffic() if plan.agreement.tells and not told.rounds else told
    if exchanged.rounds or not plan.exchange.early:
        timed += exchanged
    count = sent_of(plan, numel)
    summed = plan.exchange.needs_shared
    bare = summed and not plan.agreement.tells and not plan.exchange.drops
    writes = 0.0 if bare else count * WRITING.get(_format_of(plan), 1.0)
    # What is summed by owners is read twice where it is written as messages: by its owner, and by everybody.
    sums = (2 if plan.exchange.drops else 1) * count
    return Work(
        rounds=delays(plan.agreement, told, world) + delays(plan.exchange, exchanged, world),
        bytes_sent=told.bytes_sent + exchanged.bytes_sent,
        declared=timed,
        plain=numel if plan.keeps_nothing else 0,
        stage=0 if plan.keeps_nothing else numel,
        write=writes,
        read=0 if plan.keeps_nothing and summed else sums if summed else world * count,
        groups=1,
    )


def sent_of(plan: Plan, numel: int) -> int:
    """Elements that each rank sends of a group."""
    width = plan.selector.width
    return min(plan.selector.budget(unit_count(numel, width)) * width, numel)


def traffic_of(plan: Plan, numel: int, world: int) -> tuple[Traffic, Traffic]:
    """What a group of ``numel`` elements costs on the wire: to settle the coordinates, and to bring values together."""
    width = plan.selector.width
    units = unit_count(numel, width)
    count = plan.selector.budget(units)
    section = 0 if plan.selector.covers_everything else round(plan.codec.size(count, units))
    values = _format_of(plan).size(count * width)
    told = Traffic()
    if plan.agreement.tells:
        told = plan.agreement.traffic(world, message.HEADER.size + section)
    if plan.exchange.needs_shared:
        return told, plan.exchange.traffic(world, values, 4)
    letter = message.HEADER.size + values + (0 if plan.shares_coordinates else section)
    exchanged = plan.exchange.traffic(world, letter, 1)
    if plan.exchange.depends_on_data:
        exchanged = _expected(exchanged, plan, numel, world)
    if plan.exchange.early and not plan.shares_coordinates and letter <= SHORT:
        exchanged = Traffic(bytes_sent=exchanged.bytes_sent)  # along with the roll call
    return told, exchanged


def _expected(bound: Traffic, plan: Plan, numel: int, world: int) -> Traffic:
    """What is declared for units of which none is sent twice, if all ranks drew theirs independently.

    Of the bytes of an owner-reduce one part in ``world + 1`` goes to the owners. The rest are their sums.
    """
    width = plan.selector.width
    units = unit_count(numel, width)
    density = plan.selector.budget(units) / max(units, 1)
    met = round(units * (1.0 - (1.0 - density) ** world))
    sums = world * message.HEADER.size + plan.codec.size(met, units) + ValueFormat.F32.size(met * width)
    sent = (bound.bytes_sent + (world - 1) * sums * (world + 1) / world) / (1 + world)
    return Traffic(bytes_sent=min(round(sent), bound.bytes_sent), rounds=bound.rounds)


def _format_of(plan: Plan) -> ValueFormat:
    """How values are written: as float32, unless the selector rounds."""
    return ValueFormat[str(getattr(plan.selector, "to", "f32")).upper()]
