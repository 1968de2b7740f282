"""What a sweep is asked to measure, and how it is written on a command line."""

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass

from thinwire import kernels
from thinwire.bench.errors import BenchError
from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.cases import FAMILIES
from thinwire.bench.kernels.data import KINDS
from thinwire.bench.kernels.measure import Clock, Effort
from thinwire.bench.words import each, words

_MOST_THREADS = 64

Chosen = tuple[tuple[str, Case], ...]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep.

    Attributes:
        only: The cases with their families.
        sizes: Elements of the gradient.
        densities: The parts of it that are selected.
        threads: How many threads kernels and torch may use. Torch is measured with one thread in any case.
        implementations: Of the kernels.
        data: The shape of the gradient.
        effort: How long each is measured.
        seed: Of the inputs.
    """

    only: Chosen
    sizes: tuple[int, ...]
    densities: tuple[float, ...]
    threads: tuple[int, ...]
    implementations: tuple[str, ...]
    data: str
    effort: Effort
    seed: int = 0

    def __post_init__(self) -> None:
        if self.effort.clock is Clock.CPU and self.threads != (1,):
            raise BenchError("the clock cpu counts one thread only; write --threads 1, or --clock wall")

    @property
    def torch_threads(self) -> tuple[int, ...]:
        """With how many threads torch and the yardsticks are measured."""
        return tuple(sorted({1, *self.threads}))

    def words(self) -> dict[str, object]:
        """The sweep as plain values, for JSON."""
        return {
            "cases": [case.name for _, case in self.only],
            "sizes": list(self.sizes),
            "densities": list(self.densities),
            "threads": list(self.threads),
            "kernels": list(self.implementations),
            "data": self.data,
            "rounds": self.effort.rounds,
            "seconds": self.effort.seconds,
            "clock": self.effort.clock,
            "seed": self.seed,
        }


def cases(patterns: str, families: Mapping[str, tuple[Case, ...]] = FAMILIES) -> Chosen:
    """The cases that are meant.

    Args:
        patterns: Names of cases or families, ``*`` for any letters, ``-`` as good as ``_``, with commas between; empty
            for all.
        families: All cases.

    Returns:
        In the order of the families.

    Raises:
        BenchError: A pattern means nothing.
    """
    every = tuple((family, case) for family, members in families.items() for case in members)
    if not patterns.strip():
        return every
    chosen: set[str] = set()
    for pattern in words(patterns):
        plain = pattern.replace("-", "_")
        found = {case.name for family, case in every if _means(plain, family, case.name)}
        if not found:
            known = ", ".join(case.name for _, case in every)
            whole = ", ".join(family for family, members in families.items() if members)
            raise BenchError(f"no kernel {pattern!r} is measured; write some of {known}, or of {whole}")
        chosen |= found
    return tuple((family, case) for family, case in every if case.name in chosen)


def _means(pattern: str, family: str, name: str) -> bool:
    return any(fnmatch.fnmatchcase(word, pattern) for word in (family, name, name.rstrip("_")))


def threads(text: str) -> tuple[int, ...]:
    """Numbers of threads, such as ``1,2``.

    Raises:
        BenchError: It is no such list.
    """
    return each(text, _threads, "a number of threads", f"a whole number from 1 to {_MOST_THREADS}")


def implementations(text: str) -> tuple[str, ...]:
    """Implementations that can run here, such as ``avx512,reference``; ``all`` for all, empty for the active one.

    Raises:
        KernelError: One does not exist, or cannot run here.
    """
    names = tuple(words(text)) or (kernels.active(),)
    if names == ("all",):
        return tuple(name for name, answer in kernels.available().items() if answer == "yes")
    for name in names:
        kernels.implementation(name, threads=1)
    return tuple(dict.fromkeys(names))


def data(name: str) -> str:
    """The name of a shape of gradients.

    Raises:
        BenchError: There is no such shape.
    """
    if name not in KINDS:
        raise BenchError(f"there is no data {name!r}; write one of {', '.join(KINDS)}")
    return name


def effort(rounds: int, seconds: float, clock: str) -> Effort:
    """How long to measure.

    Raises:
        BenchError: It is no time at all.
    """
    if rounds < 1:
        raise BenchError(f"asked for {rounds} rounds; write 1 or more")
    if not 0.0 < seconds < 1e6:
        raise BenchError(f"asked for {seconds} seconds for each contestant; write more than 0")
    if clock not in set(Clock):
        raise BenchError(f"there is no clock {clock!r}; write {' or '.join(Clock)}")
    return Effort(rounds=rounds, seconds=seconds, clock=Clock(clock))


def _threads(word: str) -> int | None:
    value = int(word) if re.fullmatch(r"\d{1,4}", word) else 0
    return value if 1 <= value <= _MOST_THREADS else None
