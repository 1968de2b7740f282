"""Predicted seconds of a step: kernels + rounds x latency + bytes / bandwidth, less what hides behind backward.

All plans are priced at once: their work is a table that depends on the model alone, and a price is a few products of
its columns with what the wire and the machine are like now.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from thinwire.control.machine import Machine
from thinwire.control.network import Network
from thinwire.control.work import Work

Floats = NDArray[np.float64]

_LEAST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What a step meets, beside its plan.

    Args:
        network: The wire.
        machine: The kernels.
        slowness: Measured over calibrated seconds of kernels: other processes, cold caches.
        compute: Seconds of forward, backward and optimizer.
        window: Seconds from the first bucket to the last one.
        overlap: The part of the time that could be hidden there that is hidden, between 0 and 1.
    """

    network: Network
    machine: Machine = field(default_factory=Machine)
    slowness: float = 1.0
    compute: float = 0.0
    window: float = 0.0
    overlap: float = 1.0


@dataclass(frozen=True)
class Table:
    """The work of several plans, column by column."""

    works: Sequence[Work]

    @cached_property
    def _columns(self) -> dict[str, Floats]:
        names = ("rounds", "bytes_sent", "plain", "stage", "write", "read", "groups")
        return {name: np.array([getattr(work, name) for work in self.works], dtype=np.float64) for name in names}

    def kernels(self, conditions: Conditions) -> Floats:
        """Seconds of each plan's kernels."""
        machine, column = conditions.machine, self._columns
        seconds: Floats = (
            column["plain"] * machine.plain
            + column["stage"] * machine.stage
            + column["write"] * machine.write
            + column["read"] * machine.read
            + column["groups"] * machine.group
        )
        return conditions.slowness * seconds

    def exchange(self, conditions: Conditions, factors: Floats | float = 1.0) -> Floats:
        """Seconds of each plan's exchanges.

        Args:
            conditions: The wire.
            factors: For each plan, how many times longer it was found to take than it should.
        """
        network, column = conditions.network, self._columns
        seconds: Floats = column["rounds"] * network.latency + column["bytes_sent"] * network.per_byte
        return seconds * factors

    def steps(self, conditions: Conditions, overhead: Work, factors: Floats | float = 1.0) -> Floats:
        """Seconds of a whole step with each plan."""
        talk = conditions.network.seconds(overhead.rounds, overhead.bytes_sent)
        busy = self.kernels(conditions) + self.exchange(conditions, factors) + talk
        # Where it all hides behind a backward pass of which nothing is known, a step takes some time all the same.
        seconds: Floats = np.maximum(conditions.compute + busy - hidden(busy, conditions), _LEAST)
        return seconds


def hidden(busy: Floats, conditions: Conditions) -> Floats:
    """How much of the time of exchanges lies behind the backward pass. The last group always comes after it."""
    saved: Floats = conditions.overlap * np.minimum(busy, conditions.window)
    return saved


def price(work: Work, conditions: Conditions, overhead: Work) -> float:
    """Seconds of a step of one plan."""
    return float(Table((work,)).steps(conditions, overhead)[0])
