"""How do messages meet? One file for each answer."""

from thinwire.exchanges.all_gather import AllGather
from thinwire.exchanges.all_reduce import AllReduce
from thinwire.protocols import Exchange
from thinwire.registry import Table

EXCHANGES: Table[Exchange] = Table("exchange", {"all-gather": AllGather, "all-reduce": AllReduce})

__all__ = ["EXCHANGES", "AllGather", "AllReduce"]
