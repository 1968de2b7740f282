"""A deterministic simulator of wires: what ranks would see, by costs that were measured with Gloo on emulated links.

It shares no code with what it tests: the costs are those of each collective in terms of one-way delay and link rate.
"""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from thinwire.control.controller import Controller, offers_of
from thinwire.control.decision import Decision
from thinwire.control.menu import FAMILIES, Choice, menu_of
from thinwire.control.mind import State
from thinwire.control.notes import KNOTS, Note, Seen, together

HEADER = 76
ENTROPY = 1.015  # of Rice codes


@dataclass(frozen=True)
class Link:
    """A link: one-way delay in seconds, bytes in a second."""

    delay: float
    rate: float

    @staticmethod
    def of(milliseconds: float, megabits: float) -> "Link":
        return Link(milliseconds / 1e3, megabits * 1e6 / 8)


def gap_bytes(count: int, numel: int) -> float:
    """The entropy of coordinates, and a little more."""
    if count in (0, numel):
        return 0.0
    d = count / numel
    return ENTROPY * count / d * (-d * math.log2(d) - (1 - d) * math.log2(1 - d)) / 8


def exchange_seconds(choice: Choice, sizes: Iterable[int], world: int, link: Link) -> tuple[float, float, float]:
    """Seconds, rounds and bytes of the busiest rank of one step's exchanges on Gloo."""
    n, d, b = world, link.delay, link.rate
    depth = math.ceil(math.log2(n))
    seconds = rounds = sent = 0.0
    for numel in sizes:
        count = numel if FAMILIES[choice.family].dense else max(1, math.ceil(choice.density * numel))
        width = {"f32": 4.0, "bf16": 2.0, "int8": 1.0, "int4": 0.5}[FAMILIES[choice.family].values]
        values, places = count * width, gap_bytes(count, numel)
        if choice.family.startswith("leader"):
            letter = HEADER + places
            seconds += depth * d + depth * (depth + 1) / 2 * letter / b
            rounds, sent = rounds + depth, sent + depth * letter
            places = 0.0
        if choice.family in ("dense", "leader"):
            seconds += 2 * (n - 1) * 2 * d + 2 * (n - 1) / n * values / b
            rounds, sent = rounds + 2 * (n - 1), sent + 2 * (n - 1) / n * values
        else:
            letter = HEADER + values + places
            seconds += (n - 1) * 2 * d + (n - 1) * letter / b
            rounds, sent = rounds + n - 1, sent + (n - 1) * letter
    return seconds, rounds, sent


def laplace_gain(density: float, decay: float = 1.0) -> float:
    """Share of the energy in the largest elements of an exponential tail."""
    t = -math.log(density)
    return (density * (1 + t + t * t / 2)) ** decay


@dataclass(kw_only=True)
class World:
    """A training on a network.

    Attributes:
        link: The link of each step.
        noise: Standard deviation of the logarithm of every time.
        outliers: How often a time is ten times as long.
    """

    link: Callable[[int], Link]
    sizes: tuple[int, ...] = (1_000_000,) * 5
    world: int = 4
    compute: float = 0.1
    noise: float = 0.0
    outliers: float = 0.0
    seed: int = 0

    def kernels(self, choice: Choice) -> float:
        """Seconds of the kernels: memory passes, and a few nanoseconds for each element that is sent and received."""
        total = sum(self.sizes)
        if choice.family == "dense":
            return 2e-9 * total
        sent = total if FAMILIES[choice.family].dense else choice.density * total
        shared = choice.family.startswith("leader")
        return 2e-9 * total + sent * (5e-9 + 8e-9 * (1 if shared else self.world)) + 5e-4 * len(self.sizes)

    def step_seconds(self, choice: Choice, step: int) -> float:
        """Of a whole step without noise and without overlap, roll calls included."""
        link = self.link(step)
        talk = (len(self.sizes) + 1) * 2 * link.delay
        return self.compute + self.kernels(choice) + exchange_seconds(choice, self.sizes, self.world, link)[0] + talk

    def notes(self, choice: Choice, step: int) -> list[Note]:
        """What every rank says at the end of a step."""
        chance = random.Random(self.seed * 100_003 + step)
        link = self.link(step)
        seconds, rounds, sent = exchange_seconds(choice, self.sizes, self.world, link)

        def noisy(value: float) -> float:
            odd = 10.0 if chance.random() < self.outliers else 1.0
            return value * math.exp(chance.gauss(0.0, self.noise)) * odd

        together = noisy(seconds)
        trip = noisy(2 * link.delay + 1e-4)
        return [
            Note(
                round_trip=trip + (0.001 * rank), exchange=together * (1 - 1e-3 * rank), rounds=rounds, bytes_sent=sent,
                kernels=noisy(self.kernels(choice)), plain=1e-9, stage=2e-9, write=5e-9, read=8e-9, group=5e-4,
                compute=noisy(self.compute), window=0.0, exposed=together, fresh=noisy(1.0), owed=4.0,
                gains=tuple(min(1.0, laplace_gain(density)) for density in KNOTS),
            )
            for rank in range(self.world)
        ]  # fmt: skip


@dataclass(kw_only=True)
class Run:
    """What a controller did."""

    decisions: list[Decision]
    states: list[State]
    seconds: list[float]

    @property
    def switches(self) -> list[int]:
        return [number for number, decision in enumerate(self.decisions) if decision.switched]


def drive(controller: Controller, world: World, steps: int) -> Run:
    """Run a controller."""
    state = controller.begin()
    run = Run(decisions=[], states=[], seconds=[])
    for step in range(steps):
        run.seconds.append(world.step_seconds(state.choice, step))
        seen: Seen = together(world.notes(state.choice, step))
        state, decision = controller.decide(state, seen, world.sizes)
        run.decisions.append(decision)
        run.states.append(state)
    return run


def best_fixed(controller: Controller, world: World, state: State, step: int) -> tuple[Choice, float, float]:
    """The candidate with the most progress per second by the true costs: its step time and its progress per second."""
    menu = menu_of(controller.families, world.sizes, world.world, controller.feedback)
    gains = offers_of(state, menu).gains
    floor = getattr(controller.policy, "floor", 0.0)
    rates = [
        (math.sqrt(gain) / world.step_seconds(choice, step) if gain >= floor else 0.0, choice)
        for choice, gain in zip(menu.choices, gains, strict=True)
    ]
    rate, choice = max(rates, key=lambda pair: pair[0])
    return choice, world.step_seconds(choice, step), rate
