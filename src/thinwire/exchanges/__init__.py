"""How do messages meet? One file for each answer."""

from thinwire.exchanges.all_gather import AllGather
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.exchanges.direct_gather import DirectGather
from thinwire.exchanges.direct_reduce import DirectReduce
from thinwire.exchanges.doubling_reduce import DoublingReduce
from thinwire.exchanges.low_rank_reduce import LowRankReduce
from thinwire.exchanges.owner_reduce import OwnerReduce
from thinwire.exchanges.recursive_doubling import RecursiveDoubling
from thinwire.exchanges.ring_reduce import RingReduce
from thinwire.exchanges.rounded_reduce import RoundedReduce
from thinwire.protocols import Exchange
from thinwire.registry import Table

EXCHANGES: Table[Exchange] = Table(
    "exchange",
    {
        "all-gather": AllGather,
        "all-reduce": AllReduce,
        "direct-gather": DirectGather,
        "direct-reduce": DirectReduce,
        "doubling-reduce": DoublingReduce,
        "low-rank-reduce": LowRankReduce,
        "owner-reduce": OwnerReduce,
        "recursive-doubling": RecursiveDoubling,
        "ring-reduce": RingReduce,
        "rounded-reduce": RoundedReduce,
    },
)

__all__ = [
    "EXCHANGES",
    "AllGather",
    "AllReduce",
    "DirectGather",
    "DirectReduce",
    "DoublingReduce",
    "LowRankReduce",
    "OwnerReduce",
    "RecursiveDoubling",
    "RingReduce",
    "RoundedReduce",
]
