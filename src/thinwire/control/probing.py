"""An active look at the network: a few short and a few longer messages between every two ranks. For `thinwire probe`.

Every pair has a group of its own. A short message there and back is a round; how much longer a message of some size
takes one way is its bytes, so that the two directions of a link are told apart. All pairs that have no rank in common
could talk at once, but they would share switches: one pair talks at a time.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from statistics import median, quantiles

import torch

from thinwire.control.network import Network
from thinwire.protocols import Wire

SIZES = (1 << 14, 1 << 16, 1 << 18)
"""Bytes of the longer messages: with three turns, under 1 MB each way on every link."""
TURNS = 3
ENOUGH = 8
"""So many ranks talk all with all; of more, each talks with those 1, 2, 4, ... places on."""

_SHORT = bytes(8)


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of a link.

    Args:
        source: The rank that sends.
        target: The rank that receives.
        latency: Seconds of a round, the median.
        per_byte: Seconds of a byte, the median over sizes and turns.
        latency_range: The lower and upper quartile.
        per_byte_range: The same of the other.
    """

    source: int
    target: int
    latency: float
    per_byte: float
    latency_range: tuple[float, float]
    per_byte_range: tuple[float, float]


def pairs(world: int) -> list[tuple[int, int]]:
    """Which ranks talk with each other, each pair once, in one order on all ranks."""
    if world <= ENOUGH:
        return list(combinations(range(world), 2))
    steps = [1 << power for power in range((world - 1).bit_length())]
    return sorted(
        {(min(a, b), max(a, b)) for a in range(world) for b in ((a + step) % world for step in steps) if a != b}
    )


def probe_pair(wire: Wire, ranks: tuple[int, int], clock: Callable[[], float] = time.perf_counter) -> list[Link]:
    """Measure both directions between the two ranks of a wire.

    Args:
        wire: A wire of exactly these two.
        ranks: Their numbers among all ranks.
        clock: In seconds.

    Returns:
        The direction in which this rank sends. (Who sends knows when the answer is there; who receives does not know
        when the message was sent.)
    """
    for _ in range(2):
        wire.swap(_SHORT)  # opens the connection
    rounds = sorted(_timed(lambda: wire.swap(_SHORT), clock) for _ in range(4 * TURNS))
    # Of rounds, the quicker half: in the slower ones this rank waited for the other.
    latency = median(rounds[: len(rounds) // 2])
    bytes_seconds: list[float] = []
    for size in SIZES:
        message = torch.zeros(size, dtype=torch.uint8)
        for _ in range(TURNS):
            for sender in range(2):
                wire.swap(_SHORT)
                taken = _timed(lambda sender=sender, message=message: _there_and_back(wire, message, sender), clock)  # type: ignore[misc]
                if sender == wire.rank:
                    bytes_seconds.append(max(taken - 1.5 * latency, 0.01 * taken) / message.numel())
    return [
        Link(
            source=ranks[wire.rank], target=ranks[1 - wire.rank], latency=latency, per_byte=median(bytes_seconds),
            latency_range=_quartiles(rounds), per_byte_range=_quartiles(bytes_seconds),
        )
    ]  # fmt: skip


def _there_and_back(wire: Wire, message: torch.Tensor, sender: int) -> None:
    """A message one way: half a round; and a round that ends when it has arrived."""
    wire.broadcast(message, message.numel(), sender)
    wire.swap(_SHORT)


def _timed(job: Callable[[], object], clock: Callable[[], float]) -> float:
    began = clock()
    job()
    return max(clock() - began, 1e-9)


def _quartiles(values: list[float]) -> tuple[float, float]:
    low, _, high = quantiles(values, n=4)
    return low, high


def fit(links: list[Link]) -> Network:
    """One network for all links: the slowest link is what a synchronous step waits for."""
    return Network(latency=max(link.latency for link in links), per_byte=max(link.per_byte for link in links))


def matrix(links: list[Link], world: int, what: Callable[[Link], float]) -> Iterator[list[float | None]]:
    """A row for each source; None where nothing was measured."""
    known = {(link.source, link.target): what(link) for link in links}
    for source in range(world):
        yield [known.get((source, target)) for target in range(world)]
