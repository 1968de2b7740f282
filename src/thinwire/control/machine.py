"""How fast this machine's kernels are: measured once in each process, on a small gradient, by the functions in use."""

import math
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cache

import numpy as np
import torch

from thinwire import kernels, message
from thinwire.codecs import Delta
from thinwire.control.notes import Seen
from thinwire.message import Expected
from thinwire.types import Selection, Turn
from thinwire.units import add_

_ELEMENTS = 1 << 18
_DENSITY = 0.05
_TURNS = 7


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Seconds of what a plan does to each element, on one rank. The default is what a common processor needs.

    Args:
        plain: An element of a dense plan: divided, copied.
        stage: Added to its debt, and compared with the others.
        write: One of the selected: its place and value as bytes.
        read: One of those that arrive: read and added.
        group: A group, however small.
    """

    plain: float = 1e-9
    stage: float = 1.5e-9
    write: float = 4e-9
    read: float = 6e-9
    group: float = 3e-4

    @staticmethod
    def of(seen: Seen, otherwise: "Machine") -> "Machine":
        """The slowest rank's, as far as the ranks told it."""
        told = (seen.plain, seen.stage, seen.write, seen.read, seen.group)
        values = [new if 0.0 < new < 1.0 else old for new, old in zip(told, astuple(otherwise), strict=True)]
        return Machine(plain=values[0], stage=values[1], write=values[2], read=values[3], group=values[4])


@cache
def calibrated() -> Machine:
    """This machine, measured at the first call, which takes a few hundredths of a second."""
    generator = torch.Generator().manual_seed(0)
    gradient = torch.randn(_ELEMENTS, generator=generator)
    before, out = torch.zeros(_ELEMENTS), torch.empty(_ELEMENTS)
    k = int(_DENSITY * _ELEMENTS)
    taken = kernels.take_top_k(before, gradient, out, k)
    selection = Selection(taken.indices, taken.values, _ELEMENTS)
    turn = Turn(step=0, group=0, rank=0, world=1)
    letter = message.encode(selection, Delta(), turn)
    expected = Expected(numel=_ELEMENTS, width=1, dtype=torch.float32, turn=turn)
    empty = Selection(taken.indices[:0], taken.values[:0], _ELEMENTS)
    nothing = message.encode(empty, Delta(), turn)
    fixed = _quickest(lambda: add_(out, message.decode(nothing, expected)))
    return Machine(
        # By numpy: torch would start threads for it, which on a busy machine wait for each other.
        plain=_quickest(lambda: np.multiply(gradient.numpy(), np.float32(0.5), out=out.numpy())) / _ELEMENTS,
        stage=_quickest(lambda: kernels.take_top_k(before, gradient, out, k)) / _ELEMENTS,
        write=_quickest(lambda: message.encode(selection, Delta(), turn)) / k,
        read=_quickest(lambda: add_(out, message.decode(letter, expected))) / k,
        group=10 * fixed,
    )


def _quickest(job: Callable[[], object]) -> float:
    best = math.inf
    for _ in range(_TURNS):
        began = time.perf_counter()
        job()
        best = min(best, time.perf_counter() - began)
    return best
