"""Step times and crossovers: the controller's own prices, with a network that is given instead of sensed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from thinwire.control.controller import Controller
from thinwire.control.gains import Curve
from thinwire.control.machine import Machine
from thinwire.control.menu import Choice, menu_of
from thinwire.control.network import Network
from thinwire.control.policies import Offers
from thinwire.control.price import Conditions, price
from thinwire.control.work import Work, overhead_of
from thinwire.planning.models import Shapes, buckets
from thinwire.planning.peers import PEERS

HOSTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked.

    Args:
        shapes: Of the model.
        network: The wire.
        compute: Seconds of forward, backward and optimizer on one host.
        window: Seconds of backward behind which exchanges can hide.
        machine: The kernels.
        controller: Whose policy chooses.
    """

    shapes: Shapes
    network: Network
    compute: float = 0.0
    window: float = 0.0
    machine: Machine = field(default_factory=Machine)
    controller: Controller = field(default_factory=Controller)

    @property
    def conditions(self) -> Conditions:
        """For a price."""
        return Conditions(network=self.network, machine=self.machine, compute=self.compute, window=self.window)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One number of hosts on one network.

    Args:
        hosts: How many.
        network: The wire.
        peers: Seconds of a step of each peer.
        choice: What thinwire would choose.
        seconds: Of a step with it.
        gain: The share of the energy that goes through in a step, if magnitudes fall off exponentially.
        bytes_sent: By the busiest host in a step.
    """

    hosts: int
    network: Network
    peers: dict[str, float]
    choice: Choice
    seconds: float
    gain: float
    bytes_sent: float

    @property
    def speedup(self) -> float:
        """Over plain DDP, in step time."""
        return self.peers["dense"] / self.seconds


def answer(question: Question, hosts: int) -> Answer:
    """What a step takes on so many hosts, with everybody's plan."""
    sizes = buckets(question.shapes)
    conditions, talk = question.conditions, overhead_of(len(sizes), hosts)
    peers = {name: price(work(question.shapes, hosts), conditions, Work()) for name, work in PEERS.items()}
    controller = question.controller
    menu = menu_of(controller.families, sizes, hosts, controller.feedback)
    steps, exchanges = menu.table.steps(conditions, talk), menu.table.exchange(conditions)
    offers = Offers(steps=steps, exchanges=exchanges, gains=menu.gains(Curve()), densities=menu.densities)
    best = int(np.argmax(controller.policy.scores(offers)))
    return Answer(
        hosts=hosts, network=question.network, peers=peers, choice=menu.choices[best], seconds=float(steps[best]),
        gain=float(offers.gains[best]), bytes_sent=menu.table.works[best].bytes_sent,
    )  # fmt: skip


def over_hosts(question: Question, hosts: Sequence[int] = HOSTS) -> list[Answer]:
    """The answers for several numbers of hosts."""
    return [answer(question, each) for each in hosts]


def over_bandwidths(question: Question, hosts: int, megabits: Sequence[float]) -> list[Answer]:
    """The answers for several bandwidths, at the question's latency."""
    wires = [Network(latency=question.network.latency, per_byte=8e-6 / each) for each in megabits]
    return [answer(replace(question, network=wire), hosts) for wire in wires]


def crossover(question: Question, hosts: int, peer: str = "dense") -> float | None:
    """The bandwidth in Mbit/s above which a peer's step is the faster one; None where it never is, up to 1 Tbit/s."""

    def ahead(megabits: float) -> bool:
        found = over_bandwidths(question, hosts, (megabits,))[0]
        return found.peers[peer] <= found.seconds * (1 + 1e-9)

    low, high = 0.1, 1e6
    if ahead(low) or not ahead(high):
        return low if ahead(low) else None
    for _ in range(30):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if ahead(middle) else (middle, high)
    return high


def line_of_code(found: Answer) -> str:
    """What to write."""
    return "model = DistributedDataParallel(model)" if found.choice.family == "dense" else "thinwire.attach(model)"
