"""The machine that a benchmark runs on, as far as its figures depend on it."""

import ctypes
import os
import platform
import re
from pathlib import Path

import numpy as np
import torch

from thinwire import kernels
from thinwire.version import __version__

Facts = dict[str, str | int | float | list[float] | dict[str, str]]

_USUAL_CACHE = 32 << 20
_MMAP_MAX, _TRIM_THRESHOLD = -4, -1  # names of mallopt(3)


def facts() -> Facts:
    """What stays as it is while the benchmark runs."""
    return {
        "thinwire": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu(),
        "cpus": usable_cpus(),
        "caches": caches(),
        "memory_bytes": _meminfo("MemTotal"),
        "huge_pages": _text("/sys/kernel/mm/transparent_hugepage/enabled"),
        "torch_threads": torch.get_num_threads(),
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "kernels_active": kernels.active(),
        "kernels": kernels.available(),
    }


def usable_cpus() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> list[float]:
    """How many processes wanted to run, on average over the last 1, 5 and 15 minutes."""
    return [round(average, 2) for average in os.getloadavg()]


def caches() -> dict[str, str]:
    """The caches of the first processor, for example ``{"L2": "1024K"}``; empty where the system does not tell."""
    found = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_text(index / "type"), "")
        found[f"L{_text(index / 'level')}{kind}"] = _text(index / "size")
    return found


def last_level_cache() -> int:
    """The bytes of the largest cache; a common size where the system does not tell."""
    sizes = [re.fullmatch(r"(\d+)([KMG]?)", size) for size in caches().values()]
    units = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return max((int(size[1]) * units[size[2]] for size in sizes if size), default=_USUAL_CACHE)


def available_memory() -> int:
    """The bytes that can still be used without swapping, under the limit of this process's control group too."""
    free = [_meminfo("MemAvailable")]
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        bound, taken = _text(f"/sys/fs/cgroup/{limit}"), _text(f"/sys/fs/cgroup/{used}")
        if bound.isdecimal() and taken.isdecimal():
            free.append(int(bound) - int(taken))
    return max(0, min(free))


def keep_memory() -> bool:
    """Let the allocator of this process keep what is freed, instead of asking the system for fresh pages every time.

    Fresh pages cost more than the work that is timed in them. Torch's expressions gain more by it than the kernels do.

    Returns:
        Whether the system's allocator can do that.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))


def release_memory() -> None:
    """Give back to the system what `keep_memory` kept, as far as that can be done."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return


def _cpu() -> str:
    name = re.search(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.MULTILINE)
    return name[1] if name else platform.processor() or platform.machine()


def _meminfo(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB$", _text("/proc/meminfo"), re.MULTILINE)
    return int(found[1]) << 10 if found else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
