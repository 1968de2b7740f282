"""The roll-call record and the plan text: round trip, every way of being wrong, and what a roll makes of them."""

import math
import struct
import zlib
from dataclasses import dataclass, fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from thinwire.errors import DisagreementError, PeerFailedError, SyncError, WireError, WireReason
from thinwire.lab import threads
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.plans import Plan
from thinwire.roll_call import SIZE, VERSION, Record, What, call_roll
from thinwire.selectors import TopK


@dataclass(frozen=True, kw_only=True)
class Forged:
    """A record by hand, written from docs/wire-format.md; its checksum is right unless it is given."""

    magic: bytes = b"TWR1"
    version: int = 1
    what: int = 0
    flags: int = 0
    dtype: int = 2
    rank: int = 1
    world: int = 4
    generation: int = 3
    step: int = 2**40
    group: int = 5
    numel: int = 2**33
    layout: bytes = b"layout-8"
    plan: bytes = b"the-plan"
    loss_scale: float = 65536.0
    coordinates: int = 0xDEADBEEF
    letter: int = 2**35
    weight: float = 0.0
    failure: bytes = b""
    checksum: int | None = None

    def but(self, **changed: Any) -> "Forged":
        return replace(self, **changed)

    @property
    def data(self) -> bytes:
        data = self.magic + bytes([self.version, self.what, self.flags, self.dtype])
        data += struct.pack("<IIIQIQ", self.rank, self.world, self.generation, self.step, self.group, self.numel)
        data += self.layout + self.plan + struct.pack("<dIQ", self.loss_scale, self.coordinates, self.letter)
        data += (self.failure or struct.pack("<d", self.weight)).ljust(48, b"\0")
        return data + struct.pack("<I", zlib.crc32(data) if self.checksum is None else self.checksum)


FORGED = Forged()
MEANT = Record(
    what=What.GROUP, world=4, generation=3, step=2**40, group=5, numel=2**33, layout=b"layout-8", plan=b"the-plan",
    loss_scale=65536.0, coordinates=0xDEADBEEF, dtype=2, rank=1, letter=2**35,
)  # fmt: skip

R = WireReason
CASES = [
    ("nothing", R.TRUNCATED, b""),
    ("a byte too few", R.TRUNCATED, FORGED.data[:-1]),
    ("a byte too many", R.TRAILING, FORGED.data + b"\0"),
    ("two records", R.TRAILING, FORGED.data * 2),
    ("zeros", R.MAGIC, bytes(SIZE)),
    ("the magic number of a message", R.MAGIC, FORGED.but(magic=b"TWM1").data),
    ("the magic number of a later format", R.MAGIC, FORGED.but(magic=b"TWR2").data),
    ("no checksum", R.CHECKSUM, FORGED.but(checksum=0).data),
    ("a wrong checksum of another version", R.CHECKSUM, FORGED.but(version=2, checksum=0).data),
    ("purpose 5", R.CODEC, FORGED.but(what=5).data),
    ("purpose 255", R.CODEC, FORGED.but(what=255).data),
    ("flag 3", R.PADDING, FORGED.but(flags=8).data),
    ("flag 7", R.PADDING, FORGED.but(flags=128).data),
    ("a text without a failure", R.PADDING, FORGED.but(failure=b"out of memory").data),
    ("a byte of text without a failure", R.PADDING, FORGED.but(flags=3, failure=bytes(47) + b"!").data),
    ("a loss scale that is not a number", R.VALUE, FORGED.but(loss_scale=math.nan).data),
    ("an infinite loss scale", R.VALUE, FORGED.but(loss_scale=math.inf).data),
    ("a negative loss scale", R.VALUE, FORGED.but(loss_scale=-1.0).data),
    ("a weight that is not a number", R.VALUE, FORGED.but(weight=math.nan).data),
    ("an infinite weight", R.VALUE, FORGED.but(weight=math.inf).data),
    ("a negative weight", R.VALUE, FORGED.but(weight=-1.0).data),
]


@pytest.mark.parametrize(("reason", "data"), [pytest.param(r, d, id=f"{r.name}: {name}") for name, r, d in CASES])
def test_wrong_records_are_refused_for_their_own_reason(reason: WireReason, data: bytes) -> None:
    with pytest.raises(WireError) as refused:
        Record.unpack(data)
    assert refused.value.reason is reason


def test_a_record_has_the_bytes_of_the_page() -> None:
    assert len(FORGED.data) == SIZE
    assert MEANT.pack() == FORGED.data
    assert Record.unpack(FORGED.data) == MEANT


@pytest.mark.parametrize(
    ("changes", "forged"),
    [
        ({"overflow": True}, FORGED.but(flags=1)),
        ({"owing": True}, FORGED.but(flags=2)),
        ({"failure": "no memory"}, FORGED.but(flags=4, failure=b"no memory")),
        ({"failure": "x" * 60, "owing": True}, FORGED.but(flags=6, failure=b"x" * 48)),
        ({"weight": 1.5}, FORGED.but(weight=1.5)),
        ({"weight": 1.5, "failure": "no memory"}, FORGED.but(flags=4, failure=b"no memory")),
        ({"failure": "Größe"}, FORGED.but(flags=4, failure=b"Gr??e")),
        *(({"what": what}, FORGED.but(what=number)) for number, what in enumerate(What)),
    ],
)
def test_flags_texts_and_purposes_have_the_bytes_of_the_page(changes: dict[str, Any], forged: Forged) -> None:
    assert replace(MEANT, **changes).pack() == forged.data


def test_a_failure_without_a_text_is_still_a_failure() -> None:
    assert Record.unpack(FORGED.but(flags=4).data).failure


u32, u64, eight = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1), st.binary(min_size=8, max_size=8)
records = st.builds(
    lambda failure, weight, **rest: Record(failure=failure, weight=0.0 if failure else weight, **rest),
    what=st.sampled_from(What), world=u32, generation=u32, step=u64, group=u32, numel=u64, layout=eight, plan=eight,
    loss_scale=st.floats(0.0, allow_infinity=False), coordinates=u32, dtype=st.integers(0, 255), rank=u32, letter=u64,
    overflow=st.booleans(), owing=st.booleans(),
    failure=st.text(st.characters(min_codepoint=1, max_codepoint=126), max_size=48),
    weight=st.floats(0.0, allow_infinity=False),
)  # fmt: skip


@settings(deadline=None)
@given(record=records)
def test_records_come_back(record: Record) -> None:
    assert Record.unpack(record.pack()) == record
    assert len(record.pack()) == SIZE


def test_no_flipped_bit_goes_unnoticed() -> None:
    data = FORGED.but(flags=6, failure=b"no memory").data
    for position in range(8 * SIZE):
        whole = int.from_bytes(data, "little") ^ 1 << position
        with pytest.raises(WireError):
            Record.unpack(whole.to_bytes(SIZE, "little"))


# What a roll makes of the records. The last rank is under the hand of the test; the others call the roll.


def plan_of(density: float) -> Plan:
    return Plan(selector=TopK(density=density))


def roll(world: int, record: Record, peer: bytes, peer_text: bytes | None = None) -> list[Any]:
    """What the honest ranks conclude from the records of all."""
    plan = plan_of(0.01)

    def work(wire: ThreadWire) -> Any:
        if wire.rank == world - 1:
            wire.announce(torch.frombuffer(bytearray(peer), dtype=torch.uint8))
            wire.hear()
            if peer_text is not None:
                others = range(world - 1)
                wire.post(dict.fromkeys(others, torch.frombuffer(bytearray(peer_text), dtype=torch.uint8)))
                wire.collect(others)
            return None
        return call_roll(wire, replace(record, rank=wire.rank, plan=plan.fingerprint, world=world), plan)

    return run_threads(work, world)[:-1]


def honest(**changed: Any) -> Record:
    return replace(replace(MEANT, rank=2, world=3, plan=plan_of(0.01).fingerprint), **changed)


@pytest.mark.parametrize("field", sorted({f.name for f in fields(Record)} - {"version", "plan"}))
def test_fields_that_must_agree_are_found_and_others_may_differ(field: str) -> None:
    free = {"letter", "overflow", "owing", "weight"}
    old = getattr(honest(), field)
    new: Any = What.ROWS if field == "what" else b"another!" if field == "layout" else "no memory"
    if isinstance(old, bool | int | float) and field != "what":
        new = not old if isinstance(old, bool) else type(old)(old + 1)
    found = roll(3, honest(), honest(**{field: new}).pack())
    for each in found:
        if field in free:
            assert [getattr(r, field) for r in each.records][-1] == new
        elif field == "failure":
            assert isinstance(each, PeerFailedError)
            assert each.ranks == (2,)
            assert "no memory" in str(each)
        else:
            assert isinstance(each, DisagreementError)
            assert (each.fields, each.ranks) == ((field,), (2,))


def test_another_plan_is_found() -> None:
    """With nobody under the hand of the test: all ranks go the same way, whether they find it or not."""

    def work(wire: ThreadWire) -> Any:
        plan = plan_of(0.02 if wire.rank == 1 else 0.01)
        return call_roll(wire, replace(honest(), rank=wire.rank, plan=plan.fingerprint), plan)

    for each in run_threads(work, 3):
        assert isinstance(each, DisagreementError), each
        assert (each.fields, each.ranks) == (("plan.selector.density",), (1,))


def test_coordinates_need_not_agree_where_nobody_will_send_anything() -> None:
    for each in roll(3, honest(), honest(overflow=True, coordinates=1).pack()):
        assert each.overflow == (2,)


@pytest.mark.parametrize("version", [0, VERSION + 1, 255])
def test_of_another_version_only_the_version_counts(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else the record may hold: another version gives its bytes another meaning."""
    monkeypatch.setattr(threads, "_TIMEOUT", 3.0)
    peer = FORGED.but(version=version, what=200, flags=255, loss_scale=math.nan, failure=b"\xff" * 48)
    for each in roll(3, honest(), peer.data):
        assert isinstance(each, DisagreementError)
        assert (each.fields, each.ranks) == (("version",), (2,))
        assert f"version is {version} on rank 2, elsewhere {VERSION}" in str(each)


@pytest.mark.parametrize("peer", [FORGED.but(checksum=1).data, bytes(SIZE), FORGED.but(what=77).data])
def test_a_record_that_is_none_is_refused_by_every_rank_alike(peer: bytes) -> None:
    found = roll(3, honest(), peer)
    for each in found:
        assert isinstance(each, PeerFailedError)
        assert "the roll-call record of rank 2 came damaged" in str(each)


PLAN_TEXT_SIZE = 2048


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        pytest.param(plan_of(0.02).text.encode(), ("plan.selector.density",), id="another density"),
        pytest.param(b"", ("plan",), id="nothing"),
        pytest.param(b"{", ("plan",), id="cut off"),
        pytest.param(b"\xff\xfe\x00\x80" * 9, ("plan",), id="no text"),
        pytest.param(b"[" * PLAN_TEXT_SIZE, ("plan",), id="deep lists"),
        pytest.param(b'{"a":' * 400 + b"1" + b"}" * 48, ("plan",), id="deep parts, cut off"),
        pytest.param(b"1" * PLAN_TEXT_SIZE, None, id="a long number"),
        pytest.param(plan_of(0.01).text.encode(), ("plan",), id="a text that is no different"),
        pytest.param(b'"plan"', None, id="no parts at all"),
        pytest.param(b'{"a":' * 330 + b"1" + b"}" * 330, None, id="deep parts"),
    ],
)
def test_plan_texts_can_be_anything_and_the_ranks_still_disagree(text: bytes, fields: tuple[str, ...] | None) -> None:
    peer = honest(plan=plan_of(0.02).fingerprint).pack()
    found = roll(3, honest(), peer, text[:PLAN_TEXT_SIZE].ljust(PLAN_TEXT_SIZE))
    for each in found:
        assert isinstance(each, DisagreementError)
        assert each.fields
        assert fields is None or each.fields == fields
        assert each.ranks == (2,)
    assert len({str(each) for each in found}) == 1


@settings(deadline=None)
@given(text=st.binary(max_size=60))
def test_no_plan_text_leads_to_another_error(text: bytes) -> None:
    for each in roll(2, honest(world=2), honest(world=2, plan=b"01234567").pack(), text.ljust(PLAN_TEXT_SIZE)):
        assert isinstance(each, SyncError)
