"""What the GPU's kernels share: which tensors they take, and how a program is started.

Triton is imported when the first tensor comes that is for it, and never before.
"""

import functools
import importlib
import importlib.util
import os
import threading
import warnings
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from thinwire.kernels.reference import Reference
from thinwire.kernels.triton.trial import trial

FLOATS = (torch.float32, torch.float64)
INDICES = (torch.int32, torch.int64)
BYTES = (torch.uint8,)

INTERPRET = "TRITON_INTERPRET"
OPTIONS = {"num_warps": 8, "enable_fp_fusion": False}
"""How every program is compiled: no product and sum may be rounded as one."""

_verdicts: dict[torch.device, bool] = {}
_trying = threading.RLock()


class OnGpu(Reference):
    """Kernels for tensors on a GPU.

    Attributes:
        anywhere: Whether tensors in main memory are taken too, where Triton interprets its programs.
    """

    anywhere: bool = False

    def takes(self, *tensors: Tensor) -> bool:
        """Whether the programs can take these tensors as they lie in memory, and can be trusted on their device."""
        device = tensors[0].device
        if device.type != "cuda" and not (self.anywhere and interpreting()):
            return False
        shaped = all(t.dim() == 1 and t.is_contiguous() and not t.requires_grad for t in tensors)
        return shaped and all(t.device == device for t in tensors) and self._trusts(device)

    def _trusts(self, device: torch.device) -> bool:
        """Whether the programs once gave on this device what the reference gives; tried at the first question.

        While the trial runs, the answer to itself is yes, and other threads wait.
        """
        with _trying:
            if device not in _verdicts:
                _verdicts[device] = True
                problem = trial(self, device) if importlib.util.find_spec("triton") else "triton is not installed"
                _verdicts[device] = not problem
                if problem:
                    warnings.warn(
                        f"thinwire runs its reference kernels on {device}, which are slower: {problem}",
                        RuntimeWarning,
                        stacklevel=2,
                    )
            return _verdicts[device]


def interpreting() -> bool:
    """Whether Triton was told to interpret its programs, which it can do anywhere, slowly."""
    return os.environ.get(INTERPRET, "") == "1"


def why_not() -> str:
    """Why the programs cannot run here; empty if they can."""
    if importlib.util.find_spec("triton") is None:
        return "triton is not installed; it comes with pip install 'thinwire[triton]'"
    if not torch.cuda.is_available() and not interpreting():
        return f"torch finds no GPU here; {INTERPRET}=1 interprets the programs on the CPU, to check them"
    return ""


@functools.cache
def programs(family: str) -> ModuleType:
    """A module of programs."""
    return importlib.import_module(f"thinwire.kernels.triton.programs.{family}")


def blocks_of(n: int) -> int:
    """How many blocks ``n`` elements make."""
    block: int = programs("blocks").BLOCK.value
    return -(-n // block)


def start(program: Any, n: int, *arguments: Any, **constants: int) -> None:
    """Start one instance of a program for every block of ``n`` elements, on the device of its first argument."""
    if n:
        device = arguments[0].device
        with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
            program[(blocks_of(n),)](*arguments, **constants, **OPTIONS)


def sums_before(counts: Tensor) -> tuple[Tensor, Tensor]:
    """For counts of blocks (in the last dimension), the sums of all blocks before each, and of all."""
    sums = counts.cumsum(-1, dtype=torch.int64)
    return (sums - counts).contiguous(), sums[..., -1]
