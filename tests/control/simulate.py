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


SHORT, ROOM = 64 << 10, 1 << 20


@dataclass
class Cost:
    """What one step's exchanges cost: seconds in all, and what a clock on the wire sees of it."""

    delays: float = 0.0
    moved: float = 0.0
    """Bytes of the busiest rank, in calls that are timed."""
    along: float = 0.0
    """Bytes of the busiest rank that go along with roll calls."""
    rounds: int = 0

    def letters(self, rounds: int, moved: float, letter: float) -> None:
        """Rounds of letters; of one that is longer than its room, the rest comes two delays later."""
        self.rounds += rounds
        self.delays += rounds * (3 if letter > ROOM else 1)
        self.moved += moved

    def timed(self, link: Link) -> float:
        return self.delays * link.delay + self.moved / link.rate

    def seconds(self, link: Link) -> float:
        return self.timed(link) + self.along / link.rate


def exchange_cost(choice: Choice, sizes: Iterable[int], world: int, *, apart: bool = False) -> Cost:
    """One step's exchanges, by letters of one delay each and by Gloo's ring of two."""
    cost = Cost()
    for numel in sizes:
        before = cost.along
        _add(cost, choice, numel, world)
        if apart and choice.family.startswith("own-") and cost.along > before:
            cost.letters(1, cost.along - before, 0.0)
            cost.along = before
    return cost


def _add(cost: Cost, choice: Choice, numel: int, n: int) -> None:
    dense = FAMILIES[choice.family].dense
    count = numel if dense else max(1, math.ceil(choice.density * numel))
    width = {"f32": 4.0, "bf16": 2.0, "int8": 1.0, "int4": 0.5}[FAMILIES[choice.family].values]
    values, places = count * width, gap_bytes(count, numel)
    if choice.family.startswith("leader"):
        letter = HEADER + places
        if letter < SHORT:
            cost.along += (n - 1) * letter
        else:
            cost.letters(min(2, n - 1), letter * (1 + (n - 2) / (n - 1)), letter / (n - 1))
    if choice.family == "dense":
        cost.rounds += 2 * (n - 1)
        cost.delays += 2 * 2 * (n - 1)
        cost.moved += 2 * (n - 1) / n * values
    elif choice.family in ("dense-direct", "leader"):
        chunk = values if n == 2 else values / n
        cost.letters(min(2, n - 1), values if n == 2 else 2 * (n - 1) / n * values, chunk)
    elif choice.family == "dense-bf16":
        chunk = values if n == 2 else values / n
        letters = n - 1 if n == 2 else 2 * (n - 1)
        cost.letters(min(2, n - 1), letters * (HEADER + chunk), HEADER + chunk)
    elif choice.family == "leader-bf16":
        cost.letters(1, (n - 1) * (HEADER + values), HEADER + values)
    elif choice.family == "owners":
        met = round(numel * (1 - (1 - choice.density) ** n))
        sums = n * HEADER + 4 * met + min(gap_bytes(met, numel), numel / 8)
        pushed = n * HEADER + values + min(places, numel / 8)
        cost.letters(2, (n - 1) / n * (pushed + sums), sums / n)
    else:
        letter = HEADER + values + places
        if letter <= SHORT:
            cost.along += (n - 1) * letter
        else:
            cost.letters(1, (n - 1) * letter, letter)


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
        if choice.family == "dense-direct":
            return 3e-9 * total
        sent = total if FAMILIES[choice.family].dense else choice.density * total
        shared = choice.family.startswith("leader")
        return 2e-9 * total + sent * (5e-9 + 8e-9 * (1 if shared else self.world)) + 5e-4 * len(self.sizes)

    def step_seconds(self, choice: Choice, step: int, *, apart: bool = False) -> float:
        """Of a whole step without noise and without overlap, roll calls included."""
        link = self.link(step)
        cost = exchange_cost(choice, self.sizes, self.world, apart=apart)
        return self.compute + self.kernels(choice) + cost.seconds(link) + 2 * link.delay

    def notes(self, choice: Choice, step: int, *, apart: bool = False) -> list[Note]:
        """What every rank says at the end of a step."""
        chance = random.Random(self.seed * 100_003 + step)
        link = self.link(step)
        cost = exchange_cost(choice, self.sizes, self.world, apart=apart)

        def noisy(value: float) -> float:
            odd = 10.0 if chance.random() < self.outliers else 1.0
            return value * math.exp(chance.gauss(0.0, self.noise)) * odd

        together = noisy(cost.timed(link)) or math.nan
        trip = noisy(link.delay + 1e-4)
        # Ranks come to the vote one after the other; a note that is there already is not waited for.
        come = sorted(chance.uniform(0.0, trip / 2) for _ in range(self.world))
        waits = [max(0.0, max(come[:rank] + come[rank + 1 :]) + trip - own) for rank, own in enumerate(come)]
        return [
            Note(
                round_trip=waits[rank], exchange=together * (1 - 1e-3 * rank), rounds=cost.rounds,
                bytes_sent=cost.moved,
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
        run.seconds.append(world.step_seconds(state.choice, step, apart=state.apart))
        seen: Seen = together(world.notes(state.choice, step, apart=state.apart))
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
