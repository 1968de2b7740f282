"""What a run came to, from its events, in words and in a table."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from thinwire.cli._shown import size
from thinwire.observe.records import Began, Ended, Event

LINK = 100e6  # bits per second of the link in the arithmetic


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a method came to, over all seeds.

    Attributes:
        name: Of the method.
        quality: On held-out data, the mean of all seeds.
        spread: From the best seed to the worst.
        unit: Of the quality.
        seconds: Of all steps of one seed, on rank 0, the mean of all seeds.
        steps: How many.
        bytes_sent: By rank 0 in one seed, the mean; None where nobody counts.
        replicas_agree: All ranks ended with the same weights.
    """

    name: str
    quality: float
    spread: float = 0.0
    unit: str
    seconds: float
    steps: int
    bytes_sent: int | None
    replicas_agree: bool

    @property
    def pace(self) -> float:
        """Milliseconds for each step."""
        return 1e3 * self.seconds / max(1, self.steps)

    @property
    def seconds_on_link(self) -> float | None:
        """What its bytes alone would take on a slow link. Arithmetic, not a measurement."""
        return None if self.bytes_sent is None else self.bytes_sent * 8 / LINK


def summarise(events: Iterable[Event]) -> list[Result]:
    """Make one result of each method.

    Args:
        events: Of a run; where it was resumed, of all its parts.

    Returns:
        In the order of the methods.
    """
    unit, last = "", {}
    for event in events:
        if isinstance(event, Began):
            unit = event.unit
        elif isinstance(event, Ended):
            last[event.method, event.seed] = event
    names = dict.fromkeys(method for method, _ in last)
    return [_result(name, unit, [each for (method, _), each in last.items() if method == name]) for name in names]


def _result(name: str, unit: str, ends: Sequence[Ended]) -> Result:
    qualities = [end.quality for end in ends if end.quality is not None] or [float("nan")]
    counted = [end.bytes_total for end in ends if end.bytes_total is not None]
    return Result(
        name=name,
        quality=statistics.fmean(qualities),
        spread=max(qualities) - min(qualities),
        unit=unit,
        seconds=statistics.fmean(end.elapsed for end in ends),
        steps=max(end.steps for end in ends),
        bytes_sent=round(statistics.fmean(counted)) if counted else None,
        replicas_agree=all(end.agree for end in ends),
    )


def head(results: Sequence[Result], *, thin: bool) -> tuple[str, ...]:
    """The names of the columns of `cells`.

    Args:
        results: Of a run.
        thin: Whether its wire was a thin one.
    """
    link = () if thin else ("at 100 Mbit/s (arithmetic)",)
    return ("method", "held-out loss", "seconds", "ms/step", "sent by rank 0", *link)


def cells(result: Result, *, thin: bool) -> tuple[str, ...]:
    """A row of the table.

    Args:
        result: Of one method.
        thin: Whether the wire was a thin one; otherwise arithmetic stands in for it.
    """
    spread = f" ±{result.spread / 2:.2g}" if result.spread else ""
    arithmetic = result.seconds_on_link
    link = () if thin else (f"{arithmetic:.1f} s of sending" if arithmetic is not None else "?",)
    return (
        result.name,
        f"{result.quality:.3g}{spread} {result.unit}",
        f"{result.seconds:.1f}",
        f"{result.pace:.0f}",
        size(result.bytes_sent),
        *link,
    )
