"""Coverage-guided fuzzing of the readers with atheris: for nights, where `tests/wire/test_fuzz.py` is for every day.

    pip install -c constraints.txt atheris
    mkdir corpus && THINWIRE_KERNELS=reference python fuzz/wire.py corpus -max_len=420 -max_total_time=3600

Coverage inside the kernels is seen with the reference implementation only. An empty corpus is filled with right
messages and records first. An input is two bytes that choose what the reader awaits, one byte of flags (1: repair the
checksum, 2: read it as a record), and the bytes to be read. `WireError` is the only exception that may come out, and
bytes that were altered and have no repaired checksum must lead to one. Inputs that lead to anything else are written
to the working directory, and ``python fuzz/wire.py FILE`` reads such a file again.
"""

import inspect
import sys
from pathlib import Path

import atheris
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.wire.fuzzing import Feeder, read_message, read_record
from thinwire import message, roll_call
from thinwire.codecs import CODECS
from thinwire.errors import WireError
from thinwire.kernels import reference

FEEDER = Feeder()
REPAIR, RECORD = 1, 2


def instrument() -> None:
    """Count coverage in the readers; instrumenting imports would miss an editable install."""
    for place in [message, roll_call, roll_call.Record, reference, *CODECS.values()]:
        for function in vars(place).values():
            function = getattr(function, "__func__", function)
            if inspect.isfunction(function) and function.__module__.startswith("thinwire."):
                atheris.instrument_func(function)


@atheris.instrument_func
def one_input(data: bytes) -> None:
    """Read one input; an exception that leaves this function is a finding."""
    if len(data) < 3:
        return
    flags = data[2]
    stock = FEEDER.records if flags & RECORD else FEEDER.messages
    raw = np.frombuffer(data[3:], dtype=np.uint8).copy()
    if flags & REPAIR:
        stock.seal(raw)
    try:
        if flags & RECORD:
            wrong = read_record(raw)
        else:
            reader = stock.awaited[int.from_bytes(data[:2], "little") % len(stock.awaited)]
            wrong = read_message(raw, reader, bytearray())
    except WireError:
        return
    if wrong:
        raise AssertionError(wrong)
    if not flags & REPAIR and raw.tobytes() not in FEEDER.originals[stock.head]:
        raise AssertionError("altered, and accepted")


def fill(corpus: Path) -> None:
    """Begin with right messages and records, each with and without the order to repair its checksum."""
    for flags, stock in [(0, FEEDER.messages), (RECORD, FEEDER.records)]:
        for number, (row, length) in enumerate(zip(stock.rows, stock.lengths, strict=True)):
            for repair in (0, REPAIR):
                head = number.to_bytes(2, "little") + bytes([flags | repair])
                (corpus / f"right-{flags | repair}-{number}").write_bytes(head + row[:length].tobytes())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if Path(name).is_dir() and not any(Path(name).iterdir()):
            fill(Path(name))
            break
    instrument()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
