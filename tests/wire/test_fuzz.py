"""The fuzz bar: a million damaged messages and records, on every kernel implementation, and nothing but `WireError`.

Without a repaired checksum nothing altered is accepted; with one, what is accepted is a selection that can be used. The
environment variable THINWIRE_FUZZ_COUNT sets how many, THINWIRE_FUZZ_SEED which ones.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.wire import plain
from tests.wire.forge import NAMES, Reader, said_by
from tests.wire.fuzzing import Feeder
from thinwire.errors import WireError, WireReason
from thinwire.message import Kind

ROOT = Path(__file__).resolve().parents[2]
COUNT = int(os.environ.get("THINWIRE_FUZZ_COUNT", "1000000"))
SEED = int(os.environ.get("THINWIRE_FUZZ_SEED", "1"))
MEBIBYTE = 1 << 20


def feed(kernel: str, own: int, common: int, count: int) -> subprocess.Popen[str]:
    """One process of its own: a crash there is found here."""
    numbers = (SEED, common, own, count - common)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.wire.fuzzing", *map(str, numbers)],
        cwd=ROOT,
        env={**os.environ, "THINWIRE_KERNELS": kernel},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcomes() -> list[dict[str, Any]]:
    """What every kernel made of its share. A tenth is the same for all."""
    share = COUNT // len(NAMES)
    running = [feed(kernel, number, share // 10, share) for number, kernel in enumerate(NAMES, start=1)]
    found = []
    try:
        for process in running:
            out, errors = process.communicate(timeout=500)
            assert process.returncode == 0, f"a reader died, seed {SEED}:\n{errors[-4000:]}"
            found.append(json.loads(out))
    finally:
        for process in running:
            process.kill()
            process.communicate()
    return found


def table(damaged: Counter[str], repaired: Counter[str]) -> str:
    """How many were refused for which reason."""
    names = [reason.name for reason in WireReason] + ["accepted", "unaltered"]
    lines = [f"{'':<12}{'damaged':>10}{'repaired':>10}   (seed {SEED}; repaired: with a right checksum again)"]
    lines += [f"{name:<12}{damaged[name]:>10}{repaired[name]:>10}" for name in names]
    return "\n".join([*lines, f"{'together':<12}{damaged.total():>10}{repaired.total():>10}"])


@pytest.mark.timeout(600)
def test_a_million_damaged_messages_lead_to_nothing_but_wire_errors(capsys: pytest.CaptureFixture[str]) -> None:
    found = outcomes()
    damaged = sum((Counter(each["damaged"]) for each in found), Counter[str]())
    repaired = sum((Counter(each["repaired"]) for each in found), Counter[str]())
    with capsys.disabled():
        print(f"\n{table(damaged, repaired)}")
    assert [each["kernel"] for each in found] == NAMES
    assert [failure for each in found for failure in each["failures"]] == []
    assert damaged.total() + repaired.total() == COUNT // len(NAMES) * len(NAMES)
    assert damaged["accepted"] == 0
    assert damaged["unaltered"] + repaired["unaltered"] < 0.02 * COUNT
    # The bar is worth something only where the damage gets to every check, and past all of them.
    assert all(damaged[reason.name] + repaired[reason.name] > COUNT / 5000 for reason in WireReason)
    assert repaired["accepted"] > 0.05 * COUNT
    assert len({each["fingerprint"] for each in found}) == 1, "two implementations read the same bytes differently"
    assert all(each["grown"] < 32 * MEBIBYTE for each in found)


def test_the_plain_reader_says_the_same_about_damaged_messages() -> None:
    compared: Counter[str] = Counter()
    for data, awaited, sealed in Feeder().mutants((SEED, 99), 4000):
        units = -(-awaited.expected.numel // awaited.expected.width)
        if not sealed or units > 2**20:  # the plain reader writes everything out
            continue
        reader = Reader(
            numel=awaited.expected.numel,
            width=awaited.expected.width,
            dtype=awaited.expected.dtype,
            turn=awaited.expected.turn,
            kind=awaited.kind,
            known=awaited.known,
        )
        try:
            wanted: plain.Said | str = reader.read_plainly(data)
        except plain.Refused as refused:
            wanted = str(refused)
        try:
            found: plain.Said | str = said_by(reader.read(data), values=reader.kind is not Kind.COORDINATES)
        except WireError as error:
            found = error.reason.name
        assert found == wanted, data.hex()
        compared["accepted" if isinstance(found, plain.Said) else found] += 1
    assert compared.total() > 1500
    assert compared["accepted"] > 300
    assert {reason.name for reason in WireReason} - {"CHECKSUM"} <= set(compared)


def test_the_damage_follows_from_the_seed() -> None:
    def first(seed: int) -> list[bytes]:
        return [data for data, _, _ in Feeder().mutants((seed, 1), 50)]

    assert first(1) == first(1)
    assert first(1) != first(2)
