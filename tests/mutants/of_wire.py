"""Mutants of what is done with bytes from peers."""

from tests.mutants.mutant import Mutant

_REASON = "tests/wire/test_reasons.py::test_wrong_bytes_are_refused_for_their_own_reason"
_RECORD = "tests/wire/test_records.py::test_wrong_records_are_refused_for_their_own_reason"


def _refused(*cases: str) -> tuple[str, ...]:
    return tuple(f"{_REASON}[{case}-reference]" for case in cases)


def _record(*cases: str) -> tuple[str, ...]:
    return tuple(f"{_RECORD}[{case}]" for case in cases)


OF_WIRE = (
    Mutant(
        name="any-magic",
        safeguard="What is no message is refused",
        file="message.py",
        old="    if magic != MAGIC:\n",
        new="    if False:\n",
        tests=_refused("MAGIC: another magic number"),
    ),
    Mutant(
        name="any-version",
        safeguard="A message of another version is refused",
        file="message.py",
        old="    if version != VERSION:\n",
        new="    if False:\n",
        tests=_refused("VERSION: version 2"),
    ),
    Mutant(
        name="any-checksum",
        safeguard="A damaged message is refused",
        file="message.py",
        old="    if checksum != _checksum(message):\n",
        new="    if False:\n",
        tests=_refused("CHECKSUM: no checksum", "CHECKSUM: a flipped bit in the first byte of the body"),
    ),
    Mutant(
        name="any-kind",
        safeguard="Coordinates, values and whole messages are not taken for each other",
        file="message.py",
        old="codec not in BY_NUMBER or kind != wanted or (kind",
        new="codec not in BY_NUMBER or kind > 2 or (kind",
        tests=_refused("CODEC: coordinates where a whole message was awaited"),
    ),
    Mutant(
        name="any-shape",
        safeguard="A message about another number of elements is refused",
        file="message.py",
        old="    if (numel, width) != (expected.numel, expected.width):\n",
        new="    if False:\n",
        tests=_refused("SHAPE: another number of elements", "SHAPE: another width"),
    ),
    Mutant(
        name="any-turn",
        safeguard="A message of another generation, step or group is refused",
        file="message.py",
        old="    if tuple(turn) != (expected.turn.generation, expected.turn.step, expected.turn.group):\n",
        new="    if False:\n",
        tests=_refused("TURN: another generation", "TURN: the step before", "TURN: another group"),
    ),
    Mutant(
        name="any-count",
        safeguard="No more units are believed than there are",
        file="message.py",
        old="    if header.count > units:\n",
        new="    if False:\n",
        tests=_refused("COUNT: more units than there are", "COUNT: 2**64 - 1 units"),
        also=("RuntimeError", "OverflowError"),
    ),
    Mutant(
        name="any-length",
        safeguard="A message has the length that its header says",
        file="message.py",
        old="    if length != wanted:\n",
        new="    if False:\n",
        tests=_refused("TRUNCATED: a value too few", "TRAILING: a value too many"),
    ),
    Mutant(
        name="any-format",
        safeguard="Float64 values are not squeezed into sums of float32",
        file="message.py",
        old="(format_ == ValueFormat.F64 and expected.dtype != torch.float64)",
        new="False",
        tests=_refused("FORMAT: float64 for sums in float32"),
    ),
    Mutant(
        name="any-value",
        safeguard="A value that is not finite is refused",
        file="message.py",
        old="    if not is_finite(values):\n",
        new="    if False:\n",
        tests=_refused("VALUE: not a number", "VALUE: infinity in F16", "VALUE: steps that add up to infinity"),
    ),
    Mutant(
        name="any-scale",
        safeguard="A step of int8 that is zero, negative or not finite is refused",
        file="message.py",
        old='    if not 0.0 < header.scale < float("inf") or',
        new="    if",
        tests=_refused("VALUE: a step of zero", "VALUE: a negative step"),
    ),
    Mutant(
        name="any-padding",
        safeguard="Nothing hides behind the last element",
        file="message.py",
        old="    if has_last and bool(section[-spare:].any()):\n",
        new="    if False:\n",
        tests=_refused("PADDING: a value behind the last element"),
    ),
    Mutant(
        name="any-order",
        safeguard="Indices increase strictly, so none is there twice",
        file="codecs/index_value.py",
        old="        if bool((indices[1:] <= indices[:-1]).any()):\n",
        new="        if False:\n",
        tests=_refused("ORDER: indices that fall", "ORDER: an index twice"),
    ),
    Mutant(
        name="any-index",
        safeguard="Indices lie inside the tensor",
        file="codecs/index_value.py",
        old="        if count and (int(indices[0]) < 0 or int(indices.max()) >= units):\n",
        new="        if False:\n",
        tests=_refused("RANGE: a negative index", "RANGE: an index just beyond the end"),
    ),
    Mutant(
        name="any-gap",
        safeguard="Gaps end inside the tensor",
        file="kernels/reference/coordinates.py",
        old="(quotients.astype(np.float64) * 2.0**bits + low).sum() + count > units + 0.5",
        new="False",
        tests=_refused("RANGE: a gap just beyond the end"),
    ),
    Mutant(
        name="gaps-that-wrap-around",
        safeguard="Gaps so wide that their sum wraps around do not look harmless",
        file="kernels/reference/coordinates.py",
        old="(quotients.astype(np.float64) * 2.0**bits + low).sum() + count > units + 0.5",
        new="int(((quotients << bits) + low).sum()) + count > units",
        tests=_refused("RANGE: gaps whose sum wraps around"),
    ),
    Mutant(
        name="memory-before-the-count",
        safeguard="A count is compared with the bytes that are there before memory is taken for it",
        file="kernels/reference/coordinates.py",
        old="    if count > 8 * raw.size:\n",
        new="    if raw.size == 0:\n",
        tests=_refused("COORDINATES: 2**39 Rice codes without a bit"),
        also=("MemoryError", "_ArrayMemoryError"),
    ),
    Mutant(
        name="bits-behind-a-bitmap",
        safeguard="Unused bits are zero",
        file="kernels/reference/coordinates.py",
        old="    if flags[units:].any():\n",
        new="    if False:\n",
        tests=_refused("PADDING: a bit behind the last unit"),
    ),
    Mutant(
        name="bits-not-counted",
        safeguard="A bitmap has as many bits set as the header says",
        file="kernels/reference/coordinates.py",
        old="    if positions.size != count:\n",
        new="    if False:\n",
        tests=_refused("COORDINATES: a bitmap with too many bits set"),
    ),
    Mutant(
        name="record-with-any-magic",
        safeguard="What is no roll-call record is refused",
        file="roll_call.py",
        old="        if magic != MAGIC:\n",
        new="        if False:\n",
        tests=_record("MAGIC: the magic number of a message"),
    ),
    Mutant(
        name="record-with-any-checksum",
        safeguard="A damaged record is refused",
        file="roll_call.py",
        old="        if checksum != zlib.crc32(data[:-4]):\n",
        new="        if False:\n",
        tests=_record("CHECKSUM: no checksum"),
    ),
    Mutant(
        name="record-of-any-version",
        safeguard="Ranks with different versions find out",
        file="roll_call.py",
        old="    if odd_versions := _odd_ranks([r.version for r in records]):\n",
        new="    if odd_versions := ():\n",
        tests=("tests/wire/test_records.py::test_of_another_version_only_the_version_counts[2]",),
    ),
    Mutant(
        name="read-a-record-of-any-version",
        safeguard="Of a record of another version nothing is read but the version",
        file="roll_call.py",
        old="        if version != VERSION:\n",
        new="        if False:\n",
        tests=("tests/wire/test_records.py::test_of_another_version_only_the_version_counts[2]",),
    ),
)
