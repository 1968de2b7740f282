"""Fixtures for every test: real ranks on this machine, and a watch on processes that tests leave behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, Protocol

import pytest

from thinwire.lab import ranks as lab

pytest_plugins = ["thinwire.lab.fixtures"]

lab.preload("hypothesis", "pytest")

PoolFactory = Callable[[int], lab.RankPool]
_pools: dict[int, lab.RankPool] = {}


class Ranks(Protocol):
    """The type of the fixture `ranks`: `thinwire.lab.ranks.run_ranks`."""

    def __call__(
        self,
        fn: Callable[..., Any],
        world: int,
        *args: Any,
        backend: str = "gloo",
        timeout: float = 60.0,
        threads: int = 1,
    ) -> list[Any]: ...


@pytest.fixture(scope="session")
def ranks() -> Ranks:
    """`run_ranks`: fresh processes for each call."""
    return lab.run_ranks


@pytest.fixture(scope="session")
def pool() -> Iterator[PoolFactory]:
    """`pool(world)`: ranks that stay for the whole session. A pool that ended is replaced."""

    def get(world: int) -> lab.RankPool:
        if world not in _pools or not _pools[world].usable:
            _pools[world] = lab.RankPool(world)
        return _pools[world]

    yield get
    while _pools:
        _pools.popitem()[1].close()


@pytest.fixture(autouse=True)
def _no_process_left_behind() -> Iterator[None]:
    before = _strays()
    yield
    left = _strays() - before
    deadline = time.monotonic() + 2.0
    while left and time.monotonic() < deadline:
        time.sleep(0.02)
        left &= _strays()
    if left:
        pytest.fail(_stop(left))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fixtures of a wider scope are gone by now, so nothing at all may be left."""
    left = _strays()
    if left:
        print(f"\n{_stop(left)}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _strays() -> set[int]:
    """All descendants of this process but the two servers of multiprocessing and the shared pools."""
    servers = {
        getattr(forkserver._forkserver, "_forkserver_pid", None),
        getattr(resource_tracker._resource_tracker, "_pid", None),
    }
    shared = {pid for member in _pools.values() for pid in member.pids}
    return {pid for pid in _descendants(os.getpid()) if pid not in servers | shared and not _is_zombie(pid)}


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, _text(listing).split()):
            found |= {child} | _descendants(child)
    return found


def _is_zombie(pid: int) -> bool:
    return _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()[:1] in ([], ["Z"])


def _stop(pids: set[int]) -> str:
    lines = ["processes were left running (and are stopped now):"]
    for pid in sorted(pids):
        lines.append(f"  {pid}: {_text(Path(f'/proc/{pid}/cmdline')).replace(chr(0), ' ')[:200]}")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return "\n".join(lines)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Labs are found, cleaned and killed machine-wide: tests that make some run one after the other, in one worker."""
    for item in items:
        if "lab_cluster" in getattr(item, "fixturenames", ()) or "/tests/lab/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("lab"))
            # Real processes on real links, in real time: on a busy machine a lab may be late, refused, or lost.
            item.add_marker(pytest.mark.flaky(reruns=3, reruns_delay=1))
