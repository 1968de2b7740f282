"""Where contestants meet: all ranks begin together, and what each of them saw becomes known to all."""

import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from thinwire.bench.exchange.method import Method
from thinwire.bench.exchange.ours import wire
from thinwire.bench.sockets import bytes_sent, can_count
from thinwire.roll_call import swap

_MEETING = struct.Struct("=ddI")
_SEEN = struct.Struct("=ddQI?ddd")
_LEAD = 0.03
_SPIN = 0.002
_WARM = 3
_LONGEST = 1.0


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One exchange, as all ranks saw it.

    Attributes:
        seconds: Until the last rank had its mean.
        apart: Seconds between the first rank's beginning and the last one's, by their common clock.
        bytes_sent: By the busiest rank.
        stages: Of the slowest rank.
        differing: Ranks that got other bits than rank 0.
        failed: Ranks on which it raised.
        mean: What this rank got.
        error: What it raised on this rank.
    """

    seconds: float
    apart: float
    bytes_sent: int | None
    stages: dict[str, float]
    differing: tuple[int, ...]
    failed: tuple[int, ...]
    mean: Tensor | None
    error: str


class Arena:
    """All ranks of the default process group.

    Attributes:
        wire: Between them.
        one_clock: They are on one machine, and can begin at one moment.
    """

    def __init__(self) -> None:
        """Find out who is there."""
        self.wire = wire()
        self.one_clock = True
        self._boot = zlib.crc32(_boot_id())
        self._way = 0.0
        for _ in range(_WARM):
            self._begin()

    def exchange(self, method: Method, gradient: Tensor) -> Sample:
        """Let everybody exchange once, beginning together.

        Args:
            method: How.
            gradient: This rank's; it may be overwritten.
        """
        start = self._begin()
        before = bytes_sent() if can_count() else 0
        _sleep_until(start)
        began, found, error = time.monotonic(), None, ""
        try:
            found = method.exchange(gradient)
        except Exception as raised:  # a method that cannot do it must not end the others' run
            error = f"{type(raised).__name__}: {raised}".splitlines()[0]
        ended = time.monotonic()
        sent = max(0, bytes_sent() - before) if can_count() else 0
        mean = None if found is None else _flat(found)
        check = 0 if mean is None else zlib.crc32(mean.numpy().data)
        stages = [method.seconds.get(name, -1.0) for name in ("compress", "exchange", "decode")]
        return self._seen(_SEEN.pack(began, ended, sent, check, bool(error), *stages), mean, error)

    def _seen(self, mine: bytes, mean: Tensor | None, error: str) -> Sample:
        """What came of it on all ranks."""
        notes = [_SEEN.unpack(note) for note in swap(self.wire, mine)]
        began, ended, sent, checks, failed = (list(column) for column in list(zip(*notes, strict=True))[:5])
        taken = [end - begin for begin, end in zip(began, ended, strict=True)]
        slowest = notes[taken.index(max(taken))]
        named = zip(("compress", "exchange", "decode"), slowest[5:], strict=True)
        return Sample(
            seconds=max(ended) - min(began) if self.one_clock else max(taken),
            apart=max(began) - min(began) if self.one_clock else 0.0,
            bytes_sent=max(sent) if can_count() else None,
            stages={name: seconds for name, seconds in named if seconds >= 0.0},
            differing=tuple(rank for rank, check in enumerate(checks) if check != checks[0]),
            failed=tuple(rank for rank, bad in enumerate(failed) if bad),
            mean=mean,
            error=error,
        )

    def _begin(self) -> float:
        """Agree on a moment that nobody can miss; now, where the ranks have no common clock."""
        now = time.monotonic()
        notes = [_MEETING.unpack(note) for note in swap(self.wire, _MEETING.pack(now, self._way, self._boot))]
        self.one_clock = len({boot for _, _, boot in notes}) == 1
        if not self.one_clock:
            return 0.0
        latest: float = max(came for came, _, _ in notes)
        self._way = min(_LONGEST, max(self._way, time.monotonic() - latest))
        start: float = latest + 2 * max(way for _, way, _ in notes) + _LEAD
        return start


def _flat(mean: Tensor | Sequence[Tensor]) -> Tensor:
    """The mean in one piece, where the judge can read it."""
    whole = mean if isinstance(mean, Tensor) else torch.cat([part.reshape(-1) for part in mean])
    return whole.detach().reshape(-1).cpu().contiguous()


def _sleep_until(moment: float) -> None:
    while (left := moment - time.monotonic()) > 0:
        if left > _SPIN:
            time.sleep(left - _SPIN)


def _boot_id() -> bytes:
    """Two processes of one machine have the same, whatever their namespaces."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return b""
