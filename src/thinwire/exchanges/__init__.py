"""How do messages meet? One file for each answer."""

from thinwire.exchanges.all_gather import AllGather
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.exchanges.direct_gather import DirectGather
from thinwire.exchanges.direct_reduce import DirectReduce
from thinwire.exchanges.doubling_reduce import DoublingReduce
from thinwire.exchanges.ring_reduce import RingReduce
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
        "ring-reduce": RingReduce,
    },
)

__all__ = ["EXCHANGES", "AllGather", "AllReduce", "DirectGather", "DirectReduce", "DoublingReduce", "RingReduce"]
