"""What the dense plan costs beside plain DDP: step times, side by side in one run, and large allocations.

    python -m benchmarks.overhead --json benchmarks/results/overhead.json

Two models of the same weights in the same ranks, one plain and one attached, take turns, so that noise hits both alike.
Allocations are counted in the C library, for all threads: a small library that is loaded first counts the calls that ask
for more than a megabyte.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire.bench.machine import facts
from thinwire.lab.ranks import run_ranks

_COUNTER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
static atomic_long large;
long large_allocations(void) { return large; }
#define NOTE(size) do { if ((size) > 1000000) large++; } while (0)
void *__libc_malloc(size_t); void *__libc_calloc(size_t, size_t); void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *malloc(size_t n) { NOTE(n); return __libc_malloc(n); }
void *calloc(size_t n, size_t m) { NOTE(n * m); return __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { NOTE(n); return __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { NOTE(n); return __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { NOTE(n); return __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { NOTE(n); *p = __libc_memalign(a, n); return *p ? 0 : 12; }
"""


def wide(parameters: int) -> nn.Module:
    """Square layers of a million weights each."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(round(parameters / 1_001_000))))


def step(model: nn.Module, batch: torch.Tensor) -> float:
    """Seconds of one forward and backward pass, all ranks starting together."""
    model.zero_grad(set_to_none=False)
    dist.barrier()
    began = time.perf_counter()
    model(batch).square().mean().backward()
    return time.perf_counter() - began


def measured(rank: int, world: int, parameters: int, rounds: int) -> dict[str, Any]:
    """Step times and large allocations of both."""
    torch.set_num_threads(1)
    count: Callable[[], int] = ctypes.CDLL(None).large_allocations
    models = {"plain": DistributedDataParallel(wide(parameters)), "dense": DistributedDataParallel(wide(parameters))}
    thinwire.attach(models["dense"], thinwire.recipes.dense())
    batch = torch.randn(8, 1000, generator=torch.Generator().manual_seed(rank))
    for _ in range(3):
        for model in models.values():
            step(model, batch)
    seconds: dict[str, list[float]] = {name: [] for name in models}
    large = dict.fromkeys(models, 0)
    for number in range(rounds):
        for name in sorted(models, reverse=bool(number % 2)):
            before = count()
            seconds[name].append(step(models[name], batch))
            large[name] += count() - before
    return {"seconds": seconds, "large_allocations_per_step": {name: n / rounds for name, n in large.items()}}


def loaded_again() -> int:
    """This program once more, with the counter of allocations loaded first."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "counter.c"), Path(folder, "counter.so")
        source.write_text(_COUNTER)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
        environ = {**os.environ, "LD_PRELOAD": str(library)}
        return subprocess.run([sys.executable, "-m", "benchmarks.overhead", *sys.argv[1:]], env=environ).returncode


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--parameters", type=int, default=25_000_000)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if not hasattr(ctypes.CDLL(None), "large_allocations"):
        sys.exit(loaded_again())
    from benchmarks.overhead import measured as importable  # ranks look for it by the name of its module

    result = run_ranks(importable, asked.ranks, asked.parameters, asked.rounds, timeout=600.0)[0]
    plain, dense = result["seconds"]["plain"], result["seconds"]["dense"]
    low, middle, high = statistics.quantiles([b / a for a, b in zip(plain, dense, strict=True)], n=4)
    summary = {"plain": statistics.median(plain), "dense": statistics.median(dense), "ratios": [low, middle, high]}
    large = result["large_allocations_per_step"]
    print(f"{asked.parameters / 1e6:.0f}M parameters, {asked.ranks} ranks over loopback, {asked.rounds} rounds")
    print(f"plain DDP {summary['plain'] * 1e3:.1f} ms, the dense plan {summary['dense'] * 1e3:.1f} ms (medians)")
    print(f"dense / plain, round by round: median {middle:.3f}, quartiles {low:.3f} and {high:.3f}")
    print(f"allocations above 1 MB in a step: plain DDP {large['plain']:g}, the dense plan {large['dense']:g}")
    if asked.json:
        options = {"parameters": asked.parameters, "ranks": asked.ranks, "rounds": asked.rounds}
        record = {"machine": facts(), **options, **summary, **result}
        asked.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
