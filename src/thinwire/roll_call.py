"""The roll call: before every exchange all ranks swap one small record and look whether they mean the same.

The record has a fixed size whatever the plan, so ranks that disagree about everything else can still say so.
(Two ranks that start different collectives get silent nonsense, an abort or a hang, never an error.)
Any disagreement is found by every rank from the same records, so all of them raise, and nobody steps on.
"""

import enum
import json
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from thinwire.errors import DisagreementError, PeerFailedError, SyncError, WireError, WireReason
from thinwire.plans import Plan
from thinwire.protocols import Wire

MAGIC = b"TWR1"
VERSION = 1
_LAYOUT = struct.Struct("<4sBBBBIIIQIQ8s8sdIQ48sI")
SIZE = _LAYOUT.size
_PLAN_TEXT = 2048


class What(enum.IntEnum):
    """What an exchange is for."""

    GROUP = 0
    VOTE = 1
    FLUSH = 2
    ROWS = 3
    BYSTANDER = 4


@dataclass(frozen=True, kw_only=True)
class Record:
    """What one rank says before an exchange. The first fields must be the same on all ranks."""

    what: What
    world: int
    generation: int
    step: int
    group: int = 0
    numel: int = 0
    layout: bytes = bytes(8)
    plan: bytes = bytes(8)
    loss_scale: float = 1.0
    coordinates: int = 0
    """CRC-32 of coordinates drawn from the common seed."""
    dtype: int = 0
    version: int = VERSION

    rank: int
    letter: int = 0
    """Bytes of the letter this rank is going to send."""
    overflow: bool = False
    """Something here is not a finite number."""
    owing: bool = False
    """This rank has debts in this group."""
    failure: str = ""
    """Why this rank cannot go on; empty if it can."""

    def pack(self) -> bytes:
        """The record as bytes."""
        flags = self.overflow | self.owing << 1 | bool(self.failure) << 2
        head = (
            MAGIC,
            self.version,
            self.what,
            flags,
            self.dtype,
            self.rank,
            self.world,
            self.generation,
            self.step,
        )
        body = (
            self.group,
            self.numel,
            self.layout,
            self.plan,
            self.loss_scale,
            self.coordinates,
            self.letter,
        )
        text = self.failure.encode("ascii", "replace")[:48]
        packed = _LAYOUT.pack(*head, *body, text, 0)
        return packed[:-4] + struct.pack("<I", zlib.crc32(packed[:-4]))

    @staticmethod
    def unpack(data: bytes) -> "Record":
        """Read a record. Of one written in another version only the version is read: `call_roll` reports it.

        Raises:
            WireError: TRUNCATED, TRAILING, MAGIC, CHECKSUM, CODEC (an unknown purpose), PADDING (unknown flags, or
                a text without a failure) or VALUE (an impossible loss scale).
        """
        if len(data) != SIZE:
            reason = WireReason.TRUNCATED if len(data) < SIZE else WireReason.TRAILING
            raise WireError(reason, f"a roll-call record of {len(data)} bytes instead of {SIZE}")
        magic, version, what, flags, dtype, rank, world, generation, step, *body, text, checksum = _LAYOUT.unpack(data)
        group, numel, layout, plan, loss_scale, coordinates, letter = body
        if magic != MAGIC:
            raise WireError(WireReason.MAGIC, repr(magic))
        if checksum != zlib.crc32(data[:-4]):
            raise WireError(WireReason.CHECKSUM)
        if version != VERSION:
            return Record(version=version, what=What.VOTE, world=0, generation=0, step=0, rank=0)
        if what not in list(What):
            raise WireError(WireReason.CODEC, f"purpose {what}")
        if flags > 7 or (not flags & 4 and any(text)):
            raise WireError(WireReason.PADDING, f"flags {flags}, text {text!r}")
        if not 0.0 <= loss_scale < math.inf:
            raise WireError(WireReason.VALUE, f"a loss scale of {loss_scale}")
        return Record(
            what=What(what), world=world, generation=generation, step=step, group=group, numel=numel, layout=layout,
            plan=plan, loss_scale=loss_scale, coordinates=coordinates, dtype=dtype, version=version, rank=rank,
            letter=letter, overflow=bool(flags & 1), owing=bool(flags & 2),
            failure=(text.rstrip(b"\0").decode("ascii", "replace") or "unknown") if flags & 4 else "",
        )  # fmt: skip


_COMMON = (
    "what", "world", "generation", "step", "group", "numel", "dtype", "layout", "plan", "loss_scale",
    "coordinates",
)  # fmt: skip


@dataclass(frozen=True)
class Roll:
    """The records of all ranks, in rank order, found to agree."""

    records: Sequence[Record]
    asides: Sequence[bytes] = ()
    """What each rank said beside its record."""

    @property
    def letters(self) -> list[int]:
        """The lengths of everybody's letters."""
        return [record.letter for record in self.records]

    @property
    def overflow(self) -> tuple[int, ...]:
        """The ranks on which something is not a finite number."""
        return tuple(record.rank for record in self.records if record.overflow)

    @property
    def owing(self) -> bool:
        """Whether any rank has debts in this group."""
        return any(record.owing for record in self.records)


def describe(failure: BaseException | None) -> str:
    """A failure in the few words that fit the roll call."""
    return "" if failure is None else f"{type(failure).__name__}: {failure}"


@contextmanager
def in_step(wire: Wire, calls: int) -> Iterator[None]:
    """Guard what all ranks do together: so many calls of the wire.

    A rank that fails behind the last of them is still in step: it tells the others at the next roll call. One that
    fails before must not let them wait, and cannot go on with this group.

    Args:
        wire: The ranks.
        calls: How many calls of it belong to what is guarded.

    Raises:
        PeerFailedError: This rank fell out of step.
    """
    end = wire.calls + calls
    try:
        yield
    except Exception as error:
        if wire.broken or wire.calls >= end:
            raise
        wire.abandon(describe(error))
        raise PeerFailedError(f"{wire.broken}. Nothing was changed.", ranks=(wire.rank,)) from error


def call_roll(wire: Wire, record: Record, plan: Plan, aside: bytes = b"") -> Roll:
    """Swap records with all ranks.

    Args:
        wire: The ranks.
        record: This rank's.
        plan: Its plan, for the error if plans differ.
        aside: Said beside the record; as long on every rank.

    Raises:
        PeerFailedError: Some rank cannot go on. The same error on every rank.
        DisagreementError: The ranks are about to do different things. The same error on every rank.
    """
    notes = wire.swap(record.pack() + aside)
    with in_step(wire, 1):
        # Ranks that can read all records go on to the exchange: who cannot must not let them wait there.
        records = [_unpack(note[: len(note) - len(aside)], place) for place, note in enumerate(notes)]
    if odd_versions := _odd_ranks([r.version for r in records]):
        raise _disagreement(wire, records, {"version": odd_versions}, plan)
    failed = [r for r in records if r.failure]
    if failed:
        reasons = "; ".join(f"rank {r.rank}: {r.failure}" for r in failed)
        ranks = tuple(r.rank for r in failed)
        raise PeerFailedError(
            f"step {record.step} was given up on all ranks: {reasons}. Nothing was changed.", ranks=ranks
        )
    # A rank with an overflow has drawn no lots, and nobody will send anything.
    fields = _COMMON if not any(r.overflow for r in records) else _COMMON[:-1]
    odd = {field: ranks for field in fields if (ranks := _odd_ranks([getattr(r, field) for r in records]))}
    if strangers := tuple(place for place, r in enumerate(records) if r.rank != place):
        odd["rank"] = strangers
    if odd:
        raise _disagreement(wire, records, odd, plan)
    return Roll(records, [note[len(note) - len(aside) :] for note in notes])


def _unpack(note: bytes, place: int) -> Record:
    try:
        return Record.unpack(note)
    except WireError as error:
        raise SyncError(f"the roll-call record of rank {place} came damaged: {error}", ranks=(place,)) from error


def _odd_ranks(values: Sequence[Any]) -> tuple[int, ...]:
    """The ranks whose value is not the most frequent one (of equally frequent ones, the lowest rank's)."""
    most = Counter(values).most_common(1)[0][1]
    usual = next(value for value in values if values.count(value) == most)
    return tuple(rank for rank, value in enumerate(values) if value != usual)


def _disagreement(
    wire: Wire, records: Sequence[Record], odd: dict[str, tuple[int, ...]], plan: Plan
) -> DisagreementError:
    """Find out more where the plans differ (all ranks are here, in step), and say it all."""
    findings = {field: [str(_shown(getattr(r, field))) for r in records] for field in odd}
    if "rank" in odd:
        findings["rank"] = ["its own" if r.rank == place else str(r.rank) for place, r in enumerate(records)]
    if "plan" in odd:
        notes = wire.swap(plan.text.encode()[:_PLAN_TEXT].ljust(_PLAN_TEXT))
        # Where the texts tell no difference (they are cut off, or damaged), the fingerprints stay.
        if details := _plan_differences([note.rstrip(b" ").decode("utf-8", "replace") for note in notes]):
            del findings["plan"]
            findings.pop("coordinates", None)  # other plans draw other lots: nothing new
            findings.update(details)
    odd_ranks = tuple(sorted({rank for values in findings.values() for rank in _odd_ranks(values)}))
    sentences = [_sentence(field, values) for field, values in findings.items()]
    return DisagreementError(
        f"the ranks do not agree: {'; '.join(sentences)}. Nothing was changed. "
        f"Call attach, switch, flush and load_state_dict with the same arguments on every rank.",
        ranks=odd_ranks,
        fields=tuple(findings),
    )


def _sentence(field: str, values: Sequence[str]) -> str:
    """Who has what."""
    odd = _odd_ranks(values)
    usual = next(value for rank, value in enumerate(values) if rank not in odd)
    return f"{field} is " + ", ".join(f"{values[rank]} on rank {rank}" for rank in odd) + f", elsewhere {usual}"


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value.name.lower() if isinstance(value, What) else value


def _plan_differences(texts: Sequence[str]) -> dict[str, list[str]]:
    """Every option in which plans differ, by its path, for example ``plan.selector.density``."""
    try:
        flat = [_flattened("plan", json.loads(text)) for text in texts]
    except (ValueError, RecursionError):
        return {"plan": list(texts)} if len(set(texts)) > 1 else {}
    paths = sorted({path for options in flat for path in options})
    rows = {path: [str(options.get(path, "absent")) for options in flat] for path in paths}
    differing = {path: values for path, values in rows.items() if len(set(values)) > 1}
    # Where another part was chosen altogether, its options differ as well; its name says enough.
    named = {path.removesuffix(".name") for path in differing if path.endswith(".name")}
    return {p: v for p, v in differing.items() if p.endswith(".name") or p.rpartition(".")[0] not in named}


def _flattened(path: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {path: value}
    return {key: leaf for name, part in value.items() for key, leaf in _flattened(f"{path}.{name}", part).items()}
