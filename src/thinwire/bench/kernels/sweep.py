"""Going through everything that was asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from thinwire import kernels
from thinwire.bench import machine
from thinwire.bench.kernels.asked import Asked
from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.data import Task
from thinwire.bench.kernels.measure import Broom, Contestant, Slots, race
from thinwire.bench.kernels.moved import nbytes, tensors_in
from thinwire.bench.kernels.record import Heat, Role, Run, Yardstick

_SAMPLE = 1 << 20
"""Elements that one sample should see: smaller inputs are timed several at a time."""

_MOST_CALLS = 32
"""In one sample: each has inputs of its own, which are to be made and checked."""

_SMALL = 4096
_SCRATCH = 16
"""Bytes for each element that expressions and checks may use for themselves, roughly."""

_SHARE = 0.8
"""The part of the available memory that may be used."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One case at one size and density."""

    family: str
    case: Case
    size: int
    density: float

    def __str__(self) -> str:
        """For messages."""
        density = f", {100 * self.density:g} %" if self.case.densities else ""
        return f"{self.case.name}, {self.size} elements{density}"


def points(asked: Asked) -> list[Point]:
    """Everything that is to be measured, in order.

    Args:
        asked: The sweep.
    """
    return [
        Point(family=family, case=case, size=size, density=density or asked.densities[0])
        for size in asked.sizes
        for density in (None, *asked.densities)
        for family, case in asked.only
        if case.densities == (density is not None)
    ]


def sweep(
    asked: Asked,
    on_heat: Callable[[Heat | str], None],
    *,
    broom: Broom,
    available: Callable[[], int] = machine.available_memory,
) -> Run:
    """Measure it all.

    Args:
        asked: What.
        on_heat: Is told every heat when it is over, or why there was none.
        broom: What sweeps the caches between two turns.
        available: Tells how many bytes of memory there are to be had.

    Returns:
        The run.
    """
    facts = {**machine.facts(), "sweep_bytes": broom.nbytes}
    load = machine.load()
    heats, skipped = [], []
    for point in points(asked):
        missing = shortage(point, asked, available())
        if missing:
            skipped.append(f"{point}: {missing}")
            on_heat(skipped[-1])
            continue
        heat = measure(point, asked, broom)
        machine.release_memory()
        heats.append(heat)
        on_heat(heat)
    return Run(
        facts=facts, asked=asked.words(), heats=heats, skipped=skipped, load_before=load, load_after=machine.load()
    )


def measure(point: Point, asked: Asked, broom: Broom) -> Heat:
    """Measure one case at one size and density.

    Args:
        point: Which.
        asked: By whom, and how long.
        broom: Between the turns.

    Returns:
        All contestants' times.
    """
    calls = _calls(point.size)
    tasks = [_task(point, asked, number) for number in range(calls)]
    small = point.case.make(_small(point, asked))
    slots = Slots([point.case.make(task) for task in tasks], point.case.changes, small=small)
    expected = _Expected(point.case, slots)
    contestants = [*_kernels(asked, expected), *_torch(asked, expected)]
    contestants += _yardsticks(tasks[0], asked)
    moves = sum(point.case.moves(*arguments) for arguments in slots.arguments) // calls
    race(contestants, broom, asked.effort)
    return Heat(
        case=point.case.name,
        family=point.family,
        size=point.size,
        density=point.density if point.case.densities else None,
        moves=moves,
        in_place=bool(point.case.changes),
        times=[one.times() for one in contestants],
        remark=point.case.remark,
    )


def _calls(size: int) -> int:
    return max(1, min(_MOST_CALLS, _SAMPLE // size))


def _small(point: Point, asked: Asked) -> Task:
    """The same on a smaller scale: for the first calls of a sample, and to find out how much memory is needed."""
    return replace(_task(point, asked, 0), size=min(point.size, _SMALL))


def _task(point: Point, asked: Asked, number: int) -> Task:
    return Task(size=point.size, density=point.density, data=asked.data, seed=1000 * asked.seed + number)


def _kernels(asked: Asked, expected: "_Expected") -> Iterator[Contestant]:
    case, slots = expected.case, expected.slots
    wrong = expected.counter(case.check)
    for name in asked.implementations:
        # The reference has no threads of its own: it has those that torch may use.
        for threads in asked.threads:
            call = case.kernel(kernels.implementation(name, threads))
            yield Contestant(name=name, role=Role.KERNEL, threads=threads, call=call, slots=slots, count_wrong=wrong)


def _torch(asked: Asked, expected: "_Expected") -> Iterator[Contestant]:
    case, slots = expected.case, expected.slots
    wrong = expected.counter(case.torch_check or case.check)
    for threads in asked.torch_threads:
        yield Contestant(
            name="torch", role=Role.TORCH, threads=threads, call=case.torch, slots=slots, count_wrong=wrong
        )


def _yardsticks(task: Task, asked: Asked) -> Iterator[Contestant]:
    """Copying and reading are measured on buffers that hide the price of a call, but last no longer than the kernels.

    Who runs longer is interrupted more often, so that on a busy machine only samples of one length can be compared.
    """
    numel = max(task.size, _SAMPLE)
    owed, gradient = torch.ones(numel), torch.ones(numel)
    places = [slice(number * task.size, (number + 1) * task.size) for number in range(_calls(task.size))]
    small = (owed[:_SMALL].clone(), gradient[:_SMALL])
    whole, parts = (
        Slots([(owed, gradient)], small=small),
        Slots([(owed[at], gradient[at]) for at in places], small=small),
    )
    plan: tuple[tuple[Yardstick, Callable[..., Any], Slots, int], ...] = (
        (Yardstick.COPY, lambda owed, gradient: owed.copy_(gradient), whole, 8 * numel),
        (Yardstick.READ, lambda owed, gradient: gradient.sum(), whole, 4 * numel),
        (Yardstick.ADD, lambda owed, gradient: owed.add_(gradient), parts, 12 * task.size),
    )
    for threads in asked.torch_threads:
        for name, call, slots, moved in plan:
            yield Contestant(name=name, role=Role.YARDSTICK, threads=threads, call=call, slots=slots, moved=moved)


class _Expected:
    """What the reference makes of every slot, found out when it is first asked for."""

    def __init__(self, case: Case, slots: Slots) -> None:
        self.case = case
        self.slots = slots
        self._known: dict[int, Any] = {}

    def counter(self, check: Callable[..., int]) -> Callable[[int, Any], int]:
        """A function that counts the wrong elements of the result for a slot."""

        def count(number: int, result: Any) -> int:
            got = self.case.outcome(result, self.slots.arguments[number])
            return check(self.slots.before(number), self.of(number), got)

        return count

    def of(self, number: int) -> Any:
        if number not in self._known:
            before = self.slots.before(number)
            arguments = tuple(
                part.clone() if position in self.case.changes else part for position, part in enumerate(before)
            )
            result = self.case.kernel(kernels.implementation("reference"))(*arguments)
            self._known[number] = self.case.outcome(result, arguments)
        return self._known[number]


def shortage(point: Point, asked: Asked, available: int) -> str:
    """Judge by the same case at a small size whether there is enough memory.

    Args:
        point: What is to be measured.
        asked: By whom.
        available: Bytes that are to be had.

    Returns:
        Why it is not enough; empty if it is.
    """
    small = _small(point, asked)
    arguments = point.case.make(small)
    held = nbytes(*tensors_in(arguments))
    copies = sum(nbytes(arguments[position]) for position in point.case.changes)
    # The arguments, how they were, what is expected; the two that are added; what the expressions use.
    each = (held + 3 * copies) / small.size + 8
    needed = int((each * _calls(point.size) + _SCRATCH) * point.size)
    if needed <= _SHARE * available:
        return ""
    return f"needs about {needed / 1e9:.1f} GB, and {_SHARE:.0%} of the {available / 1e9:.1f} GB available may be used"
