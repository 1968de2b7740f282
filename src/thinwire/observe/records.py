"""What happens in a run, as records: one line of JSON each, so that anything can read them.

A file of events is read while it is still written, and after a disk was full: a line that is not whole is passed over.
Fields and kinds that a reader does not know are passed over too, so files of other versions can be read.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1
"""The version of the format, in every `Began`."""


@dataclass(frozen=True, kw_only=True)
class Began:
    """A run begins, or goes on after it was stopped."""

    time: float
    """Seconds since 1970."""
    task: str
    about: str
    """What is trained on what, in a sentence."""
    unit: str
    """Of losses and qualities; lower is better."""
    counted: str
    """What samples are, for example tokens."""
    methods: tuple[str, ...]
    plans: dict[str, str]
    """What each method does, in words."""
    rates: dict[str, float] = field(default_factory=dict)
    """Peak learning rate of each method."""
    world: int
    steps: int
    seeds: tuple[int, ...] = (0,)
    network: str = ""
    """The wire in words."""
    thin: bool = False
    """Whether the wire is one that somebody made thin, and not this machine's loopback."""
    parameters: int = 0
    machine: dict[str, str] = field(default_factory=dict)
    resumed: int = 0
    """The first step of this part of the run."""
    format: int = FORMAT


@dataclass(frozen=True, kw_only=True)
class Stepped:
    """One training step of one method, as rank 0 saw it."""

    method: str
    seed: int = 0
    step: int
    """From 0."""
    seconds: float
    """Of this step."""
    elapsed: float
    """Of all steps of this method so far."""
    time: float = 0.0
    """When it ended, in seconds since 1970."""
    loss: float | None = None
    """Of this rank's batch; None where it was not finite."""
    samples: int = 0
    bytes_sent: int | None = None
    """By this rank in this step, headers and votes included; None where nobody counts."""
    bytes_total: int | None = None
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage of the exchange. They may run beside the backward pass."""
    density: float | None = None
    """Elements sent over elements synchronised."""
    gain: float | None = None
    """Energy sent over energy owed."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """Another plan is in force from this step on."""

    method: str
    seed: int = 0
    step: int
    elapsed: float
    plan: str
    short: str = ""
    """The plan in a word or two, for pictures."""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Owing:
    """A look at what a method still owes. It costs a copy of all debts, so it is taken only now and then."""

    method: str
    seed: int = 0
    step: int
    norm: float
    """Of everything that this rank owes."""
    layers: dict[str, float] = field(default_factory=dict)
    """By parameter: the part of its elements for which something is owed."""
    histogram: tuple[int, ...] = ()
    """How many debts have a magnitude from 2**(e) to below 2**(e + 1), for e from `FIRST_EXPONENT` on."""


FIRST_EXPONENT = -40
"""Of the first bar of `Owing.histogram`; smaller magnitudes are counted there too, zeros nowhere."""


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A method's model was examined on data it does not train on."""

    method: str
    seed: int = 0
    step: int
    """Steps done."""
    elapsed: float
    bytes_total: int | None = None
    quality: float | None = None
    """In the task's unit; lower is better; None where it was not finite."""


@dataclass(frozen=True, kw_only=True)
class Wired:
    """What the wire is like from now on."""

    time: float
    bandwidth: float | None = None
    """Bits per second of one host's link."""
    latency: float | None = None
    """Seconds, one way."""
    source: str = "set"
    """``set`` by whoever made the wire, or ``sensed``."""
    method: str = ""
    seed: int = 0
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Predicted:
    """What somebody who chose a plan thought that exchanges would take, and what they took."""

    method: str
    seed: int = 0
    step: int
    predicted: float
    """Seconds."""
    measured: float


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One method of one seed is done, or was stopped."""

    method: str
    seed: int = 0
    steps: int
    elapsed: float
    bytes_total: int | None = None
    quality: float | None = None
    checksum: str = ""
    """Of the bits of the final weights."""
    agree: bool = True
    """Whether all ranks ended with the same bits."""
    stopped: bool = False
    """Before its last step."""


Event = Began | Stepped | Planned | Owing | Examined | Wired | Predicted | Ended
_KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in (Began, Stepped, Planned, Owing, Examined, Wired, Predicted, Ended)
}


def to_line(event: Event) -> str:
    """One line of JSON without its end. What is not finite is written as null, which is all that JSON has.

    Args:
        event: Any of them.
    """
    plain = {"event": type(event).__name__.lower(), **dataclasses.asdict(event)}
    try:
        return json.dumps(plain, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(plain), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value


def from_line(line: str) -> Event | None:
    """The event that a line tells of, or None where it tells of none that is known here.

    Args:
        line: As `to_line` writes it, or anything.
    """
    try:
        plain = json.loads(line)
        kind = _KINDS[plain.pop("event")]
        known = {each.name for each in dataclasses.fields(kind)}
        event: Event = kind(**{name: _plain(value) for name, value in plain.items() if name in known})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return event


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def events_in(lines: Iterable[str]) -> Iterator[Event]:
    """The events among some lines.

    Args:
        lines: Of a file of events.
    """
    for line in lines:
        if (event := from_line(line)) is not None:
            yield event


class Tail:
    """Reads a file of events while another process writes it.

    Args:
        path: Of the file. It need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._place = 0

    def skip(self) -> None:
        """Pass over what is there already."""
        self._place = self._path.stat().st_size if self._path.exists() else 0

    def new(self) -> list[Event]:
        """The events that came since the last call. The last line is left alone until it is whole."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._place)
                text = file.read()
        except OSError:
            return []
        whole = text.rfind(b"\n") + 1
        self._place += whole
        return list(events_in(text[:whole].decode(errors="replace").splitlines()))
