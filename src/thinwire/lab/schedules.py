"""Changes of a network while something runs on it: from a file, from a trace, from a paper."""

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from thinwire.lab import quantities
from thinwire.lab.errors import LabRefused
from thinwire.lab.link import read_options

_ALL = -1


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change at one time.

    Attributes:
        at: Seconds from the start of what runs.
        who: The host whose access link changes; -1: the whole network, and then delay and loss are those of a path.
        direction: ``up``, ``down`` or ``both``.
        options: Of the link, by name.
        cut: True: cut the host off. False: let it back. None: neither.
        kill: Kill everything that runs on the host.
    """

    at: float
    who: int = _ALL
    direction: str = "both"
    options: Mapping[str, float | None] = field(default_factory=dict)
    cut: bool | None = None
    kill: bool = False


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Changes in the order of their times.

    Attributes:
        changes: What happens.
        repeat: Begin again after so many seconds; None: what was changed last stays.
    """

    changes: tuple[Change, ...]
    repeat: float | None = None

    def __post_init__(self) -> None:
        times = [change.at for change in self.changes]
        if times != sorted(times) or min(times, default=0.0) < 0.0:
            raise LabRefused("the changes of a schedule must stand in the order of their times, from 0 on")
        if self.repeat is not None and self.repeat <= max(times, default=0.0):
            raise LabRefused(f"a schedule of {max(times):g} s cannot repeat after {self.repeat:g} s; write more")


def read_schedule(path: str | Path) -> Schedule:
    """A schedule from a file.

    Each line is a time in seconds and what happens then; ``#`` begins a comment::

        0    net       rate=100mbit delay=20ms   # from host to host
        10   host 2    rate=5mbit                # both ways of its access link
        12   host 2 up delay=40ms
        20   host 1    cut
        21.5 host 1    mend
        30   host 3    kill
        60   repeat

    A file of two or three numbers in each line is a trace instead: seconds, megabits per second, and milliseconds of
    delay, for the whole network.

    Args:
        path: Of the file.

    Returns:
        The schedule.

    Raises:
        LabRefused: A line means nothing; the message says which.
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise LabRefused(f"the schedule {path} cannot be read: {error}") from error
    changes: list[Change] = []
    repeat = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words:
            continue
        try:
            at = quantities.time(f"{words[0]}s")
            if words[1:] == ["repeat"]:
                repeat = at
            else:
                changes.append(_read_change(at, words[1:]))
        except LabRefused as error:
            raise LabRefused(f"{path}, line {number}: {error}") from error
    return Schedule(changes=tuple(changes), repeat=repeat)


def _read_change(at: float, words: list[str]) -> Change:
    match words:
        case ["net", _, *_]:
            return Change(at=at, options=read_options(" ".join(words[1:])))
        case ["host", host, ("cut" | "mend") as what] if host.isdecimal():
            return Change(at=at, who=int(host), cut=what == "cut")
        case ["host", host, "kill"] if host.isdecimal():
            return Change(at=at, who=int(host), kill=True)
        case ["host", host, ("up" | "down") as direction, _, *_] if host.isdecimal():
            return Change(at=at, who=int(host), direction=direction, options=read_options(" ".join(words[3:])))
        case ["host", host, _, *_] if host.isdecimal():
            return Change(at=at, who=int(host), options=read_options(" ".join(words[2:])))
        case [_] | [_, _] if all(re.fullmatch(r"\d+(\.\d*)?", word) for word in words):
            names = zip(("rate", "delay"), words, (1e6, 1e-3), strict=False)
            return Change(at=at, options={name: float(word) * unit for name, word, unit in names})
    raise LabRefused(
        f"{' '.join(words)!r} is no change; write net OPTIONS, host N [up|down] OPTIONS, host N cut, host N mend, "
        f"host N kill, or repeat; or only megabits per second and milliseconds"
    )


_RATE_SCALE = 1 / 50
"""Of the paper's rates: its 25 Gbit/s are 500 Mbit/s here, its 1 Gbit/s is 20 Mbit/s. Its delays are kept."""


def _steps(steps: list[tuple[float, float]], seconds: float) -> tuple[Change, ...]:
    return tuple(
        Change(at=number * seconds, options={"rate": gigabits * 1e9 * _RATE_SCALE, "delay": milliseconds / 1e3})
        for number, (milliseconds, gigabits) in enumerate(steps)
    )


def paper_c1(epoch: float = 1.0) -> Schedule:
    """C1 of the flexible-communication paper: four quarters, near and far, wide and thin.

    Args:
        epoch: Seconds for each of the paper's 50 epochs.
    """
    return Schedule(changes=_steps([(1, 25), (1, 1), (50, 1), (50, 25)], 12 * epoch))


def paper_c2(epoch: float = 1.0) -> Schedule:
    """C2 of the flexible-communication paper: in steps from near and wide to far and thin, and back.

    Args:
        epoch: Seconds for each of the paper's 50 epochs.
    """
    there = [(1, 25), (2, 20), (4, 15), (8, 10), (16, 5), (32, 1)]
    return Schedule(changes=_steps([*there, *there[::-1]], 4 * epoch))


def phone(seed: int = 0, seconds: float = 60.0, every: float = 0.5) -> Schedule:
    """Telephones on the move: a seeded random walk of each moment's rate, no recording.

    Args:
        seed: Of the walk.
        seconds: Until it begins again.
        every: Seconds between changes.
    """
    lots = random.Random(seed)
    level, changes = 0.0, []
    for number in range(int(seconds / every)):
        level = 0.9 * level + lots.gauss(0.0, 0.35)
        rate = min(60e6, max(1e6, 20e6 * 2.0**level))
        options = {"rate": float(round(rate, -4))}
        changes.append(Change(at=number * every, direction="down", options=options))
        options = {"rate": float(round(0.4 * rate, -4))}
        changes.append(Change(at=number * every, direction="up", options=options))
    return Schedule(changes=tuple(changes), repeat=seconds)
