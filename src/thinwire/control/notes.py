"""What every rank tells all others at the end of a step: a block of fixed size behind its vote.

All ranks read the same bytes, so whatever follows from them alone is the same everywhere. Numbers are float32, and may
be anything: a note comes from a rank whose clock may have jumped. What makes no sense is read as unknown.
"""

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import median

from thinwire.control.track import SMALLEST

KNOTS = tuple(2.0**-power for power in range(13, 0, -1))
"""The densities at which a note says how much of the gradient's energy would go through."""

_FIGURES = 16
_LAYOUT = struct.Struct(f"<8s{_FIGURES}f{len(KNOTS)}H")
SIZE = _LAYOUT.size
"""Bytes of a note."""
_UNKNOWN = 0xFFFF
_WHOLE = 0xFFFE
_MOST = 1e15

UNKNOWN = math.nan


@dataclass(frozen=True, kw_only=True)
class Note:
    """What one rank saw in one step. NaN is what it does not know."""

    mind: bytes = bytes(8)
    """Eight bytes that differ where controllers or their states differ."""
    round_trip: float = UNKNOWN
    """Seconds that this rank waited for the others' notes in the last vote."""
    exchange: float = UNKNOWN
    """Seconds of all exchanges of the step."""
    rounds: float = UNKNOWN
    """Rounds of these."""
    bytes_sent: float = UNKNOWN
    """Bytes this rank sent in these."""
    kernels: float = UNKNOWN
    """Seconds of ledger, selector, codec and mean in the step."""
    plain: float = UNKNOWN
    """Seconds of an element of a dense plan: this and the next four from the calibration on this rank."""
    stage: float = UNKNOWN
    """Seconds to add an element to its debt, and to find the largest."""
    write: float = UNKNOWN
    """Seconds to write one element of a message."""
    read: float = UNKNOWN
    """Seconds to read one element of a message, and to add it."""
    group: float = UNKNOWN
    """Seconds of a group, however small."""
    compute: float = UNKNOWN
    """Seconds of the last step in which this rank waited for nobody."""
    window: float = UNKNOWN
    """Seconds from the first bucket to the last: what exchanges can hide behind."""
    exposed: float = UNKNOWN
    """Seconds of the last step in which backward was over and exchanges were not."""
    fresh: float = UNKNOWN
    """Energy of the gradient alone."""
    owed: float = UNKNOWN
    """Energy of the gradient and all debts."""
    loss: float = UNKNOWN
    """What the user said the loss is."""
    gains: tuple[float, ...] = ()
    """Share of the energy in the largest elements, at each density of `KNOTS`; empty if this rank did not look."""

    def pack(self) -> bytes:
        """The note as bytes."""
        gains = [_share(gain) for gain in self.gains] if len(self.gains) == len(KNOTS) else [_UNKNOWN] * len(KNOTS)
        return _LAYOUT.pack(self.mind, *(_narrow(getattr(self, name)) for name in FIGURES), *gains)

    @staticmethod
    def unpack(data: bytes) -> "Note":
        """Any bytes as a note: what makes no sense is unknown, and bytes of another length say nothing."""
        if len(data) != SIZE:
            return Note()
        mind, *numbers = _LAYOUT.unpack(data)
        figures = dict(zip(FIGURES, map(_read, numbers[:_FIGURES]), strict=True))
        shares = numbers[_FIGURES:]
        gains = () if any(share == _UNKNOWN for share in shares) else tuple(share / _WHOLE for share in shares)
        return Note(mind=mind, gains=gains, **figures)


FIGURES = tuple(field.name for field in fields(Note) if field.name not in ("mind", "gains"))
"""The names of a note's numbers."""
assert len(FIGURES) == _FIGURES


def _narrow(value: float) -> float:
    """As float32 can hold it; struct refuses what is too large."""
    return float(value) if math.isfinite(value) and abs(value) <= _MOST else math.nan


def _read(value: float) -> float:
    return value if math.isfinite(value) and 0.0 <= value <= _MOST else math.nan


def _share(gain: float) -> int:
    return round(min(max(gain, 0.0), 1.0) * _WHOLE) if math.isfinite(gain) else _UNKNOWN


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What all ranks saw in one step, as one: the same on every rank."""

    world: int
    round_trip: float = UNKNOWN
    exchange: float = UNKNOWN
    rounds: float = UNKNOWN
    bytes_sent: float = UNKNOWN
    kernels: float = UNKNOWN
    plain: float = UNKNOWN
    stage: float = UNKNOWN
    write: float = UNKNOWN
    read: float = UNKNOWN
    group: float = UNKNOWN
    compute: float = UNKNOWN
    window: float = UNKNOWN
    exposed: float = UNKNOWN
    fresh: float = UNKNOWN
    owed: float = UNKNOWN
    loss: float = UNKNOWN
    gains: tuple[float, ...] = ()


_QUICKEST = ("exchange", "window")
_TYPICAL = ("fresh", "owed", "loss")


def together(notes: Sequence[Note]) -> Seen:
    """What follows from the notes of all ranks.

    The slowest rank decides how long a step takes, so of most times the largest counts. An exchange ends for all ranks
    nearly at once, and who has come early to it has also waited for the late ones: there the shortest counts. Of
    energies the middle one does, and for rounds see `_one_way`.
    """
    whole: dict[str, float] = {}
    for name in FIGURES:
        known = [value for note in notes if not math.isnan(value := getattr(note, name))]
        choose = _one_way if name == "round_trip" else min if name in _QUICKEST else median if name in _TYPICAL else max
        whole[name] = choose(known) if known else UNKNOWN
    looked = [note.gains for note in notes if note.gains]
    gains = tuple(math.fsum(column) / len(looked) for column in zip(*looked, strict=True)) if looked else ()
    return Seen(world=len(notes), gains=gains, **whole)


def _one_way(waits: Sequence[float]) -> float:
    """The one-way delay that follows from how long each rank waited for the others' notes.

    Who comes last waits for the note of who came last but one, and the other way round: what the one waits less than
    the delay, the other waits more. All others wait longer than these two.
    """
    return max(sum(sorted(waits)[:2]) / min(len(waits), 2), SMALLEST)
