"""What a sweep is asked to measure. It is written in words, so that it can be handed to ranks on other hosts."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from thinwire.bench.errors import BenchError
from thinwire.bench.exchange import ours, training
from thinwire.bench.exchange.method import Contestant
from thinwire.bench.words import densities, rate, sizes, words

PLANS = "dense,topk_allgather,ar_topk"
"""What takes part where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep.

    Attributes:
        sizes: Elements of the messages, such as ``5M,25M``.
        densities: For whatever has one, such as ``1%,0.1%``.
        plans: Recipes of thinwire, each with the format of its values if not the usual one: ``ar_topk,dense:int8``.
        peers: A module with other contestants; empty for none.
        only: Patterns of names; empty for all contestants.
        traces: The folder where gradients are recorded and found again.
        net: What the network is called in the table.
        rate: Bits per second that each rank can send, such as ``100M``; empty where that is not known.
        rounds: Turns of every contestant.
        seconds: Of measured time for each contestant and cell: who is slow takes fewer turns, one at least.
        limit: Who will take longer for one exchange, by bytes and rate, is not measured.
        backend: Of the process group.
        threads: That torch and the kernels may use in each rank.
        train: A task to train instead of exchanging recorded gradients; empty for those.
        steps: Of training.
    """

    sizes: str = "1M"
    densities: str = "0.1%,1%"
    plans: str = PLANS
    peers: str = ""
    only: str = ""
    traces: str = "runs/traces"
    net: str = "loopback"
    rate: str = ""
    rounds: int = 5
    seconds: float = 4.0
    limit: float = 60.0
    backend: str = "gloo"
    threads: int = 1
    train: str = ""
    steps: int = 60

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        sizes(self.sizes), densities(self.densities), rate(self.rate)
        if self.rounds < 1:
            raise BenchError(f"asked for {self.rounds} rounds; write 1 or more")
        for name in ("seconds", "limit"):
            if not 0.0 < getattr(self, name) < 1e6:
                raise BenchError(f"asked for {getattr(self, name)} {name}; write more than 0")
        if self.train:
            training.check(self.train, self.steps)
        if not 1 <= self.threads <= 64:
            raise BenchError(f"asked for {self.threads} threads; write 1 to 64")

    def words(self) -> dict[str, Any]:
        """The sweep as plain values."""
        return asdict(self)

    def contestants(self) -> list[Contestant]:
        """Everybody who is to take part, thinwire's own first.

        Raises:
            BenchError: There is no such plan, no such module, or nobody is left.
        """
        every = [*ours.contestants(self.plans, densities(self.densities)), *self._peers()]
        patterns = tuple(words(self.only))
        chosen = [one for one in every if not patterns or any(fnmatchcase(one.name, each) for each in patterns)]
        if not chosen:
            known = ", ".join(dict.fromkeys(one.name for one in every)) or "nobody"
            raise BenchError(f"nobody is called {self.only!r}; there are {known}")
        return chosen

    def _peers(self) -> Sequence[Contestant]:
        if not self.peers:
            return []
        try:
            module = importlib.import_module(self.peers)
            found: Sequence[Contestant] = module.contestants(densities(self.densities))
        except (ImportError, AttributeError) as error:
            raise BenchError(
                f"{self.peers!r} cannot be used as peers ({error}); name a module with a function "
                f"contestants(densities) that this Python finds, such as benchmarks.peers in a checkout "
                f"(sys.path begins with {sys.path[0]!r})"
            ) from error
        return found
