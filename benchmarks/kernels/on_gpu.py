"""Triton's kernels on a GPU beside the torch expressions a user would write: medians of interleaved calls, as JSON.

    python benchmarks/kernels/on_gpu.py [elements] > gpu.json

Needs torch with CUDA, triton, and thinwire on the path; nothing else. Every result is checked against the reference.
"""

import json
import statistics
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from thinwire import kernels

DENSITIES = (0.001, 0.01, 0.1)
ROUNDS = 21
REFERENCE = kernels.implementation("reference")
TRITON = kernels.implementation("triton")
CUDA = torch.device("cuda")


def seconds(call: Callable[[], object]) -> float:
    """The time of one call on the device, with all that it waits for."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3


def interleaved(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median seconds of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(ROUNDS + 3):
        for name, call in calls.items():
            taken = seconds(call)
            if turn >= 3:
                times[name].append(taken)
    return {name: statistics.median(each) for name, each in times.items()}


def torch_take(owed: Tensor, gradient: Tensor, k: int) -> tuple[Tensor, Tensor]:
    owed.add_(gradient)
    indices = owed.abs().topk(k, sorted=False).indices
    values = owed.gather(0, indices)
    owed.index_fill_(0, indices, 0.0)
    return indices, values


def measure(n: int, density: float) -> dict[str, object]:
    k = round(n * density)
    values = torch.randn(n)
    gradient = torch.randn(n)
    there, more, out = values.to(CUDA), gradient.to(CUDA), torch.empty(n, device=CUDA)
    top = REFERENCE.top_k(values, k)
    indices, found = top.to(CUDA), values[top.long()].to(CUDA)
    rice = TRITON.rice_write(indices, n)
    bytes_there = rice.to(CUDA)
    kept = torch.empty_like(values)
    wrong = {
        "top_k": not torch.equal(TRITON.top_k(there, k).cpu(), top),
        "rice": not torch.equal(rice, REFERENCE.rice_write(top, n))
        or not torch.equal(TRITON.rice_read(bytes_there, k, n).cpu(), top),
        "take_top_k": not torch.equal(
            TRITON.take_top_k(there, more, out, k).indices.cpu(),
            REFERENCE.take_top_k(values, gradient, kept, k).indices,
        )
        or not torch.equal(out.cpu(), kept),
    }
    calls = {
        "add": lambda: torch.add(there, more, out=out),
        "top_k": lambda: TRITON.top_k(there, k),
        "top_k, torch": lambda: there.abs().topk(k, sorted=False).indices,
        "take_top_k": lambda: TRITON.take_top_k(there, more, out, k),
        "take_top_k, torch": lambda: torch_take(out, more, k),
        "at_least": lambda: TRITON.at_least(there, 2.5),
        "at_least, torch": lambda: torch.nonzero(there.abs() >= 2.5),
        "scatter_add_": lambda: TRITON.scatter_add_(out, indices, found),
        "scatter_add_, torch": lambda: out.index_add_(0, indices, found),
        "rice_write": lambda: TRITON.rice_write(indices, n),
        "rice_read": lambda: TRITON.rice_read(bytes_there, k, n),
    }
    return {"elements": n, "density": density, "wrong": wrong, "seconds": interleaved(calls)}


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 25_000_000
    import triton

    machine = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__}
    runs = [measure(n, density) for density in DENSITIES]
    json.dump({"machine": machine, "rounds": ROUNDS, "runs": runs}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
