"""How do messages meet? One file for each answer."""

from thinwire.exchanges.all_gather import AllGather
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.exchanges.owner_reduce import OwnerReduce
from thinwire.exchanges.recursive_doubling import RecursiveDoubling
from thinwire.protocols import Exchange
from thinwire.registry import Table

EXCHANGES: Table[Exchange] = Table(
    "exchange",
    {
        "all-gather": AllGather,
        "all-reduce": AllReduce,
        "owner-reduce": OwnerReduce,
        "recursive-doubling": RecursiveDoubling,
    },
)

__all__ = ["EXCHANGES", "AllGather", "AllReduce", "OwnerReduce", "RecursiveDoubling"]
