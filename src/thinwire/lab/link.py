"""One direction of a host's access link: how fast, how far, how reliable."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

from thinwire.lab import quantities
from thinwire.lab.errors import LabRefused

_SHORTEST_QUEUE = 128 << 10
_QUEUE_SECONDS = 0.05
_SLOWEST, _LONGEST = 8e3, 10.0
_READERS = {
    "rate": quantities.rate,
    "delay": quantities.time,
    "jitter": quantities.time,
    "loss": quantities.share,
    "queue": quantities.size,
}


@dataclass(frozen=True, kw_only=True)
class Link:
    """One direction of an access link.

    Attributes:
        rate: Bits per second, counted as an interface counts them: with Ethernet's header. None: unlimited.
        delay: Seconds that a frame is under way, beside the time to send it.
        jitter: The delay of each packet is drawn evenly from ``delay - jitter`` to ``delay + jitter``. Order is kept.
        loss: The share of frames that are lost, each by its own lot.
        queue: Bytes that may wait for their turn; what comes then is dropped. None: 50 ms of the rate, and no
            less than 128 KiB.
    """

    rate: float | None = None
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    queue: float | None = None

    def __post_init__(self) -> None:
        if self.rate is not None and self.rate < _SLOWEST:
            raise LabRefused(f"asked for a rate of {self.rate:g} bit/s; write at least 8kbit, or cut the host off")
        if not 0.0 <= self.delay <= _LONGEST:
            raise LabRefused(f"asked for a delay of {self.delay:g} s; write 0 to {_LONGEST:g} s")
        if not 0.0 <= self.jitter <= self.delay:
            raise LabRefused(
                f"asked for a jitter of {self.jitter:g} s around a delay of {self.delay:g} s; write no more than that"
            )
        if not 0.0 <= self.loss < 1.0:
            raise LabRefused(f"asked for a loss of {self.loss:g}; write 0 to 99%, or cut the host off")
        if self.queue is not None and self.queue < 2 * 1514:
            raise LabRefused(f"asked for a queue of {self.queue:g} bytes; write at least two frames, 3028")

    @property
    def held(self) -> bool:
        """Whether packets have to be held or dropped, which a queue with a rate cannot do."""
        return self.delay > 0.0 or self.loss > 0.0

    @property
    def queue_bytes(self) -> int:
        """The length of the queue."""
        if self.queue is not None:
            return int(self.queue)
        return max(_SHORTEST_QUEUE, int((self.rate or 0.0) / 8 * _QUEUE_SECONDS))

    def changed(self, **options: str | float | None) -> Self:
        """This link with some options changed, each a number or text.

        Args:
            **options: As the attributes. ``rate=None`` and ``rate="unlimited"`` mean no limit.
        """
        read: dict[str, Any] = {name: _read(name, value) for name, value in options.items()}
        return replace(self, **read)

    def __str__(self) -> str:
        parts = [quantities.show_rate(self.rate)]
        parts += [f"delay {quantities.show_time(self.delay)}"] if self.delay else []
        parts += [f"jitter {quantities.show_time(self.jitter)}"] if self.jitter else []
        parts += [f"loss {100 * self.loss:.3g}%"] if self.loss else []
        return ", ".join(parts)


def read_options(text: str) -> dict[str, float | None]:
    """Options as text: ``rate=100mbit delay=20ms``, apart by blanks or commas.

    Args:
        text: What was written.

    Returns:
        The values by name, ready for `Link.changed`.

    Raises:
        LabRefused: It means nothing.
    """
    options: dict[str, float | None] = {}
    for word in text.replace(",", " ").split():
        name, equals, value = word.partition("=")
        if not equals:
            raise LabRefused(f"{word!r} is no option of a link; write name=value, with a name of {', '.join(_READERS)}")
        options[name] = _read(name, value)
    return options


def _read(name: str, value: str | float | None) -> float | None:
    if name not in _READERS:
        known = ", ".join(field.name for field in fields(Link))
        raise LabRefused(f"a link has no {name!r}; it has {known}")
    if name in ("rate", "queue") and value in (None, "unlimited"):
        return None
    if value is None:
        raise LabRefused(f"{name} is None; write a number, or text with a unit")
    return _READERS[name](value)
