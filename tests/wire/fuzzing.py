"""Feeds damaged messages and records to the readers and counts what becomes of them. One process, one kernel.

    THINWIRE_KERNELS=reference python -m tests.wire.fuzzing 1 2000 1 500000

reads 2000 messages damaged by seed (1, 0) and half a million by seed (1, 1) and prints the outcome as JSON. Of the
first, common part it also prints a fingerprint of everything that was found.
"""

import faulthandler
import hashlib
import json
import math
import resource
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from tests.wire import mutate
from tests.wire.mutate import Awaited, Bytes, Stock
from thinwire import kernels
from thinwire.errors import WireError, WireReason
from thinwire.message import Kind, decode
from thinwire.roll_call import VERSION, Record, What
from thinwire.types import Selection, index_dtype, unit_count

SIZE = 4096
"""Messages in one batch."""
RECORDS = 8
"""Every so many batches one of records."""
_CODES = {reason: number for number, reason in enumerate(WireReason)}
_ACCEPTED, _UNALTERED = 100, 101


@dataclass
class Outcome:
    """What became of them."""

    damaged: Counter[str] = field(default_factory=Counter)
    """Messages as they were damaged: how many were refused for which reason, how many were not altered at all."""
    repaired: Counter[str] = field(default_factory=Counter)
    """Those that got a right checksum: how many were refused for which reason, how many were accepted."""
    failures: list[dict[str, str]] = field(default_factory=list)
    """What must not happen, the first few."""
    fingerprint: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def fail(self, what: str, data: Bytes, reader: object) -> None:
        """Remember how to do it again."""
        if len(self.failures) < 5:
            self.failures.append({"what": what, "data": data.tobytes().hex(), "reader": repr(reader)})


class Feeder:
    """The stock, and the readers."""

    def __init__(self) -> None:
        self.messages = mutate.messages(20240501)
        self.records = mutate.records(20240502)
        self.originals = {
            stock.head: {row[:length].tobytes() for row, length in zip(stock.rows, stock.lengths, strict=True)}
            for stock in (self.messages, self.records)
        }

    def feed(self, seed: tuple[int, int], count: int) -> Outcome:
        """Read so many damaged messages and records."""
        outcome = Outcome()
        for number, start in enumerate(range(0, count, SIZE)):
            stock = self.records if number % RECORDS == RECORDS - 1 else self.messages
            self._batch(stock, (*seed, number), min(SIZE, count - start), outcome)
        return outcome

    def mutants(self, seed: tuple[int, int], count: int) -> Iterator[tuple[bytes, Awaited, bool]]:
        """Only the damaged messages, with what their readers await, and whether their checksum was repaired."""
        for data, origin, numel, sealed in mutate.damaged(self.messages, seed, count).finished():
            yield data.tobytes(), _awaited(self.messages, origin, numel), sealed

    def _batch(self, stock: Stock, seed: tuple[int, ...], size: int, outcome: Outcome) -> None:
        codes = bytearray()
        for data, origin, numel, sealed in mutate.damaged(stock, seed, size).finished():
            reader = _awaited(stock, origin, numel) if stock.awaited else None
            try:
                found = read_message(data, reader, codes) if reader is not None else read_record(data)
            except WireError as error:
                codes.append(_CODES[error.reason])
                (outcome.repaired if sealed else outcome.damaged)[error.reason.name] += 1
                continue
            except Exception as error:
                outcome.fail(f"{type(error).__name__}: {error}", data, reader)
                continue
            unaltered = data.tobytes() in self.originals[stock.head]
            codes.append(_UNALTERED if unaltered else _ACCEPTED)
            (outcome.repaired if sealed else outcome.damaged)["unaltered" if unaltered else "accepted"] += 1
            if found:
                outcome.fail(found, data, reader)
            if not sealed and not unaltered:
                outcome.fail("altered, and accepted", data, reader)
        outcome.fingerprint.update(codes)


def _awaited(stock: Stock, origin: int, numel: int) -> Awaited:
    awaited = stock.awaited[origin]
    if numel < 0:
        return awaited
    expected, known = awaited.expected, awaited.known
    if known is not None:
        # The reader knows as many units as the message has, if there are so many.
        units = unit_count(numel, expected.width)
        indices = known.indices[known.indices < units].to(index_dtype(units))
        known = Selection(indices, known.values, numel, expected.width)
    return Awaited(replace(expected, numel=numel), awaited.kind, known)


def read_message(data: Bytes, reader: Awaited, codes: bytearray) -> str:
    """Read, and say what is wrong with what was read; nothing ever should be."""
    found = decode(torch.from_numpy(data), reader.expected, known=reader.known, kind=reader.kind)
    values = found.values.numpy()
    codes += values.tobytes()
    if not np.isfinite(values).all() or found.values.dtype != reader.expected.dtype:
        return "values that are not finite, or of another type"
    numel, width = reader.expected.numel, reader.expected.width
    units = unit_count(numel, width)
    if (found.numel, found.width, found.units) != (numel, width, units):
        return "another tensor"
    if values.size != (0 if reader.kind is Kind.COORDINATES else found.count * width):
        return "too many or too few values"
    if found.count > ROOM_FOR_INDICES:
        return "" if found.is_full else "more units than there can be bytes for"
    indices = found.indices.numpy()
    codes += indices.tobytes()
    if found.indices.dtype != index_dtype(units) or indices.size != found.count:
        return "indices of another type or number"
    if indices.size and (indices[0] < 0 or indices[-1] >= units or not (indices[1:] > indices[:-1]).all()):
        return "indices that do not increase, or lie outside"
    spare = units * width - numel
    if spare and values.size and indices[-1] == units - 1 and values[-spare:].any():
        return "values behind the end"
    return ""


ROOM_FOR_INDICES = 8 * mutate.ROOM


def read_record(data: Bytes) -> str:
    found = Record.unpack(data.tobytes())
    if found.version != VERSION:
        return ""
    right = isinstance(found.what, What) and math.isfinite(found.loss_scale) and found.loss_scale >= 0
    right = right and math.isfinite(found.weight) and found.weight >= 0 and not (found.weight and found.failure)
    return "" if right and len(found.failure) <= 48 else "a record that cannot be"


def main(seed: int, common: int, own: int, count: int) -> None:
    """See the top of the file."""
    faulthandler.enable()
    torch.set_num_threads(1)
    feeder = Feeder()
    shared = feeder.feed((seed, 0), common)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rest = feeder.feed((seed, own), count)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    result = {
        "kernel": kernels.active(),
        "damaged": shared.damaged + rest.damaged,
        "repaired": shared.repaired + rest.repaired,
        "failures": shared.failures + rest.failures,
        "fingerprint": shared.fingerprint.hexdigest(),
        "grown": grown * 1024,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
