"""Which exchange suits sparse gradients, from a profile of them and of the link: pure functions.

Zen compares bytes only. Here every round costs a one-way delay as well, which decides for small groups and for far
ranks, and sizes are those of our messages: headers, the codec that is shortest at that density, values of any width.
"""

from dataclasses import dataclass

from thinwire.codecs import Cheapest
from thinwire.exchanges.all_gather import AllGather
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.exchanges.owner_reduce import OwnerReduce
from thinwire.exchanges.recursive_doubling import RecursiveDoubling, held
from thinwire.exchanges.volumes import Profile
from thinwire.message import HEADER
from thinwire.protocols import Codec, Exchange
from thinwire.types import unit_count

_DELAYS_OF_A_STEP = 2
"""One-way delays of one step of the backend's rings: the receiver first says that it is ready."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """What joins the ranks.

    Args:
        bandwidth: Bytes in a second that a rank can send.
        delay: Seconds one way.
    """

    bandwidth: float
    delay: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Group:
    """A group of gradients.

    Args:
        numel: Elements.
        width: Elements of one unit.
        world: Ranks.
        itemsize: Bytes of one value.
    """

    numel: int
    world: int
    width: int = 1
    itemsize: int = 4

    @property
    def units(self) -> int:
        """Units of the group."""
        return unit_count(self.numel, self.width)

    def letter(self, density: float, codec: Codec, share: int = 1) -> float:
        """Bytes of a message with so many units of one in ``share`` owners; zeros fill up what is nearly full."""
        units = self.units / share
        count = min(density, 1.0) * units
        values = self.width * self.itemsize
        marks = codec.size(max(1, round(count)), max(1, round(units))) if count and density < 1.0 else 1.0
        return HEADER.size + min(count * values + marks, units * values + 1.0)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one exchange is expected to cost.

    Attributes:
        exchange: The part.
        is_dense: It brings everything, not only what was selected.
        bytes_sent: By the busiest rank.
        delays: One-way delays that come one after the other.
        seconds: All of it on the link.
    """

    exchange: Exchange
    is_dense: bool
    bytes_sent: float
    delays: int
    seconds: float


def estimates(profile: Profile, group: Group, link: Link, codec: Codec | None = None) -> list[Estimate]:
    """All four, the quickest first; of equals the simpler one.

    Args:
        profile: Of what the ranks select.
        group: What they select from.
        link: Between them.
        codec: How coordinates are written; by default whichever is shortest.
    """
    written = codec if codec is not None else Cheapest()
    n = group.world
    dense = AllReduce().traffic(n, group.numel * group.itemsize, group.itemsize)
    gathered = round(group.letter(profile.density, written))
    ring = AllGather().traffic(n, gathered)
    rows: list[tuple[Exchange, bool, float, int]] = [
        (AllReduce(), True, dense.bytes_sent, _DELAYS_OF_A_STEP * dense.rounds),
        (AllGather(), False, ring.bytes_sent, _DELAYS_OF_A_STEP * ring.rounds),
        (RecursiveDoubling(), False, doubling_bytes(profile, group, written), RecursiveDoubling().calls(n)),
        (OwnerReduce(), False, owner_bytes(profile, group, written), OwnerReduce().calls(n)),
    ]
    found = [
        Estimate(
            exchange=exchange, is_dense=is_dense, bytes_sent=sent, delays=delays,
            seconds=sent / link.bandwidth + delays * link.delay,
        )
        for exchange, is_dense, sent, delays in rows
    ]  # fmt: skip
    return sorted(found, key=lambda estimate: estimate.seconds)


def choose(profile: Profile, group: Group, link: Link, codec: Codec | None = None) -> Estimate:
    """The quickest of `estimates`."""
    return estimates(profile, group, link, codec)[0]


def owner_bytes(profile: Profile, group: Group, codec: Codec) -> float:
    """Bytes that `OwnerReduce` makes the busiest rank send: a letter to each other rank, twice."""
    n = group.world
    pushed = group.letter(profile.density, codec, share=n)
    pulled = group.letter(profile.density * profile.grown(n), codec, share=n)
    return (n - 1) * (pushed + pulled)


def doubling_bytes(profile: Profile, group: Group, codec: Codec) -> float:
    """Bytes that `RecursiveDoubling` makes the busiest rank of each round send."""
    return sum(group.letter(profile.density * profile.grown(ranks), codec) for ranks in held(group.world))
