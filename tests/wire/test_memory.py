"""What a header claims costs no memory until it is believed; and what is believed is bounded by bytes that are there.

In a process of its own that may not grow: any large allocation, used or not, ends in an error that is no `WireError`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.wire import plain
from tests.wire.forge import NAMES, Forged, Reader
from thinwire.errors import WireError
from thinwire.message import Kind
from thinwire.types import Selection

ROOT = Path(__file__).resolve().parents[2]
MEBIBYTE = 1 << 20
ALLOWANCE = 96 * MEBIBYTE
"""Room for what Python, torch and numpy need for themselves; what is claimed takes half a terabyte and more."""

HUGE = 2**39

PROGRAM = """
import json, resource, sys
import torch
from tests.wire.test_memory import ALLOWANCE, claims, verdict

torch.set_num_threads(1)
cases = claims()
for name, *case in cases:
    verdict(*case)  # once without a limit: whatever is loaded late is loaded now
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + ALLOWANCE
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    torch.empty(2 * ALLOWANCE, dtype=torch.uint8)
    sys.exit("the limit does not hold")
except RuntimeError:
    pass
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = {name: verdict(*case) for name, *case in cases}
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(json.dumps({"found": found, "grown": grown}))
"""


def claims() -> list[tuple[str, bytes, Reader]]:
    """Messages of a few bytes that claim to be enormous, and readers for which their header is just right."""
    letter = Forged(kind=plain.COORDINATES, numel=HUGE, count=HUGE)
    hears, waits = Reader(numel=HUGE, kind=Kind.COORDINATES), Reader(numel=HUGE)
    known = Selection(None, torch.empty(0), HUGE)
    found: list[tuple[str, bytes, Reader]] = [
        ("more than agreed", Forged(numel=HUGE, count=HUGE).data, Reader(numel=1000)),
        ("values as many as claimed", Forged(numel=HUGE, count=HUGE, codec=0).data, waits),
        ("known values as many as claimed", Forged(numel=HUGE, count=HUGE, kind=plain.VALUES, codec=0).data,
         Reader(numel=HUGE, kind=Kind.VALUES, known=known)),
        ("a section of 2**64 - 1 bytes", letter.but(section=2**64 - 1).data, hears),
        ("a section of 2**39 bytes", letter.but(section=HUGE).data, hears),
        ("units of 2**32 - 1 elements", Forged(numel=HUGE, width=2**32 - 1, count=100).data,
         Reader(numel=HUGE, width=2**32 - 1)),
        ("every unit", letter.but(codec=0).data, hears),
    ]  # fmt: skip
    for codec in (1, 2, 3):
        for section in (b"", b"\0", b"\0\1", b"\0" + b"\xff" * 40, b"\x28" + b"\xff" * 400, bytes(400)):
            for count in (1, HUGE - 1, HUGE):
                forged = letter.but(codec=codec, coordinates=section, count=count)
                found.append(
                    (f"codec {codec}, {len(section)} bytes {section[:2]!r} for {count} units", forged.data, hears)
                )
    return found


def verdict(data: bytes, reader: Reader) -> str:
    """The reason to refuse it, or what was found."""
    try:
        found = reader.read(data)
    except WireError as error:
        return error.reason.name
    return f"{found.count} units"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to know the size of a process")
@pytest.mark.parametrize("kernel", NAMES)
def test_enormous_claims_are_refused_without_memory_for_them(kernel: str) -> None:
    environment = {**os.environ, "THINWIRE_KERNELS": kernel}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["grown"] * 1024 < 8 * MEBIBYTE
    found = result["found"]
    assert len(found) == len(claims())
    assert found.pop("more than agreed") == "SHAPE"
    # Nothing needs to be written down to say "every unit", so this one is right, and costs nothing either.
    assert found.pop("every unit") == f"{HUGE} units"
    # A first index of 0 is a right message, however many units there are.
    right = {name for name, answer in found.items() if answer == "1 units"}
    assert right == {"codec 3, 2 bytes b'\\x00\\x01' for 1 units"}
    assert {answer for name, answer in found.items() if name not in right} <= {"TRUNCATED", "COORDINATES", "RANGE"}
