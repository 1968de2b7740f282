"""The sweep itself, as every rank runs it."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from thinwire.bench import machine
from thinwire.bench.exchange.arena import Arena, Sample
from thinwire.bench.exchange.asked import Asked
from thinwire.bench.exchange.feed import Feed, feed
from thinwire.bench.exchange.judge import Judge
from thinwire.bench.exchange.method import Contestant, Message, Method
from thinwire.bench.exchange.record import STAGES, Cell, Row, Run
from thinwire.bench.exchange.training import Lessons
from thinwire.bench.figures import amount
from thinwire.bench.words import rate, sizes

_WARM_STEPS = 2
_TRIES = 3
_APART, _APART_OF_TIME = 0.002, 0.02
"""How far apart ranks may begin: seconds, and of what the exchange takes."""
_TIMED = 3
"""Exchanges of one turn, while they are short."""

Tell = Callable[[str], None]


@dataclass
class _Tally:
    """What one contestant has done so far. The same on every rank, but for gain and wrong, which rank 0 knows."""

    one: Contestant
    samples: list[Sample] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    wrong: int = 0
    missing: str = ""
    loss: float | None = None

    def failed(self, sample: Sample) -> bool:
        """Whether it raised anywhere; then it takes part no more."""
        if sample.failed:
            where = f"on rank {', '.join(map(str, sample.failed))}"
            self.missing = f"failed {where}: {sample.error or 'see the output of that rank'}"
        return bool(sample.failed)

    @property
    def spent(self) -> float:
        return sum(sample.seconds for sample in self.samples)

    def row(self) -> Row:
        sent = [sample.bytes_sent for sample in self.samples if sample.bytes_sent is not None]
        stages = {
            name: statistics.median(found)
            for name in STAGES
            if (found := [sample.stages[name] for sample in self.samples if name in sample.stages])
        }
        return Row(
            name=self.one.name,
            peer=self.one.peer,
            density=self.one.density,
            seconds=[round(sample.seconds, 7) for sample in self.samples],
            bytes_sent=round(statistics.median(sent)) if sent else None,
            stages=stages,
            gain=statistics.mean(self.gains) if self.gains else None,
            wrong=self.wrong,
            loss=self.loss,
            missing=self.missing,
            note=self.one.note,
        )


def sweep(asked: Asked, tell: Tell) -> Run:
    """Measure everything. Every rank of the default process group must call it.

    Args:
        asked: What.
        tell: Is told how far it is, on rank 0.

    Returns:
        The run; only rank 0's has gains and counts of wrong elements.
    """
    torch.set_num_threads(asked.threads)
    kept = machine.keep_memory()
    arena = Arena()
    load = machine.load()
    tell = tell if arena.wire.rank == 0 else _nothing
    if asked.train:
        cells = [_train(asked, arena, tell)]
    else:
        cells = [_Heat(asked, arena, size, tell).cell() for size in sizes(asked.sizes)]
    facts = {
        **machine.facts(),
        "ranks": arena.wire.world,
        "backend": asked.backend,
        "one_clock": arena.one_clock,
        "memory_kept": kept,
        "load_before": load,
        "load_after": machine.load(),
    }
    return Run(facts=facts, asked=asked.words(), cells=cells)


def _train(asked: Asked, arena: Arena, tell: Tell) -> Cell:
    """Let everybody's model learn, step by step in turns."""
    lessons = Lessons(arena, asked.steps)
    tallies = [_Tally(one, missing=one.absent) for one in asked.contestants()]
    learners = {id(tally): lessons.learner(tally.one) for tally in tallies if not tally.missing}
    nothing = torch.empty(0)
    for step in range(asked.steps):
        first = step % len(tallies)
        for tally in (*tallies[first:], *tallies[:first]):
            if tally.missing:
                continue
            learner = learners[id(tally)]
            sample = arena.exchange(learner, nothing)
            if not tally.failed(sample):
                tally.wrong += len(sample.differing) * lessons.message.numel
                # What is not needed any more is not kept: a mean for each step would fill the memory.
                learner.samples.append(replace(sample, mean=None))
        if (step + 1) % max(1, asked.steps // 5) == 0:
            tell(f"{asked.net}, {asked.train}: step {step + 1}")
    found = []
    for tally in tallies:
        if not tally.missing:
            learner = learners[id(tally)]
            tally.samples = learner.samples[min(_WARM_STEPS, asked.steps - 1) :]
            tally.loss = lessons.loss(learner)
        found.append(tally.row())
    numel, world = lessons.message.numel, arena.wire.world
    return Cell(
        net=asked.net, rate=rate(asked.rate), world=world, size=numel, numel=numel, rows=found, task=asked.train
    )


class _Heat:
    """One size."""

    def __init__(self, asked: Asked, arena: Arena, size: int, tell: Tell) -> None:
        self._asked = asked
        self._arena = arena
        self._size = size
        self._tell = tell
        self._feed: Feed = feed(asked.traces, size, arena.wire.world)
        self._judge = Judge(self._feed, arena.wire)
        self._rate = rate(asked.rate)
        self._scratch = torch.empty(self._feed.message.numel)

    def cell(self) -> Cell:
        """Let everybody take turns."""
        tallies = [_Tally(one, missing=one.absent or self._too_slow(one)) for one in self._asked.contestants()]
        for number in range(self._asked.rounds):
            # Nobody always comes behind the same one.
            first = number % len(tallies)
            for tally in (*tallies[first:], *tallies[:first]):
                if not tally.missing and (tally.spent < self._asked.seconds or not tally.samples):
                    self._turn(tally)
            self._tell(f"{self._asked.net}, {self._feed.message.numel} elements: round {number + 1}")
        return Cell(
            net=self._asked.net,
            rate=self._rate,
            world=self._arena.wire.world,
            size=self._size,
            numel=self._feed.message.numel,
            rows=[tally.row() for tally in tallies],
        )

    def _expected(self, one: Contestant) -> float:
        """The least seconds that an exchange takes, as far as that is known."""
        forecast = one.forecast(self._feed.message.numel, self._arena.wire.world)
        return forecast * 8 / self._rate if self._rate else 0.0

    def _too_slow(self, one: Contestant) -> str:
        expected = self._expected(one)
        if expected <= self._asked.limit:
            return ""
        return f"would take {expected:.0f} s at {amount(self._rate)}bit/s; --limit {expected + 1:.0f} waits for it"

    def _turn(self, tally: _Tally) -> None:
        """Make the method, warm it up unless that takes too long, time some exchanges, and judge the last."""
        method = _made(tally.one, self._feed.message)
        known = tally.samples[-1].seconds if tally.samples else self._expected(tally.one)
        slow = known > self._asked.seconds / 2
        if not slow and tally.failed(self._once(method)):
            return
        timed: list[Sample] = []
        while not timed or (not slow and len(timed) < _TIMED and sum(sample.seconds for sample in timed) < 1.0):
            timed.append(self._once(method))
            if tally.failed(timed[-1]):
                return
        tally.samples += timed
        self._look(tally, method, timed[-1])

    def _once(self, method: Method) -> Sample:
        """One exchange of a gradient that already has in it whatever was owed."""
        for _ in range(_TRIES):
            method.forget()
            self._scratch.copy_(self._feed.gradient(self._arena.wire.rank))
            sample = self._arena.exchange(method, self._scratch)
            # A rank that missed the beginning, on a busy machine, would be measured as the method's slowness.
            if sample.failed or sample.apart < max(_APART, _APART_OF_TIME * sample.seconds):
                break
        return sample

    def _look(self, tally: _Tally, method: Method, last: Sample) -> None:
        """Judge what the last exchange of a turn delivered."""
        assert last.mean is not None
        delivered = last.mean
        tally.wrong += self._judge.wrong(delivered, tally.one.contract, method.owed())
        tally.wrong += len(last.differing) * self._feed.message.numel
        if self._arena.wire.rank == 0:
            tally.gains.append(self._judge.gain(delivered))


class _Broken(Method):
    """Stands for a method that could not be made, so that the ranks stay together."""

    def __init__(self, why: Exception) -> None:
        super().__init__()
        self._why = why

    def exchange(self, gradient: Tensor) -> Tensor:
        raise self._why

    def forget(self) -> None:
        """There is nothing."""


def _made(one: Contestant, message: Message) -> Method:
    try:
        return one.make(message)
    except Exception as error:
        return _Broken(error)


def _nothing(_: str) -> None:
    """Rank 0 alone tells how far it is."""
