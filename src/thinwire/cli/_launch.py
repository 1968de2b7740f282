"""Start a run's ranks: on hosts of an emulated network, on this machine's loopback, or as torchrun has started them."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

from thinwire.errors import PlanError, ThinwireError
from thinwire.observe.events import Wired
from thinwire.observe.sinks import Jsonl
from thinwire.tasks.runner import Finish
from thinwire.tasks.side_by_side import EVENTS, STOP, Race, race

LOOPBACK = "loopback"
_SECONDS_PER_STEP = 60.0  # a step of one method that is slower than this on average is a hang
_NEEDED = 180.0  # seconds for set-up and examinations


def under_torchrun() -> bool:
    """Whether torchrun, or something like it, has started this process as one of several ranks."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)


def networks() -> dict[str, str]:
    """The emulated networks there are, each with a line about it."""
    known = getattr(import_module("thinwire.lab"), "NETWORKS", {})
    return {name: net.about for name, net in known.items()}


def launch(job: Race, hosts: int) -> None:
    """Run a job to its end, or until it is stopped; what it comes to is in its events.

    Args:
        job: What to run. Its network is `LOOPBACK`, or the name or description of an emulated one.
        hosts: Ranks, one on each host.

    Raises:
        PlanError: There is no such network here.
        ThinwireError: A rank failed.
    """
    job.save()
    Path(job.folder, STOP).unlink(missing_ok=True)
    with _stopping(Path(job.folder, STOP)):
        if job.network == LOOPBACK:
            _on_loopback(job, hosts)
        else:
            _on_hosts(job, hosts)


def _on_loopback(job: Race, hosts: int) -> None:
    from thinwire.lab.ranks import RankPool, preload

    preload("thinwire.tasks.side_by_side")
    threads = max(1, (os.cpu_count() or 1) // hosts)
    limit = _NEEDED + _SECONDS_PER_STEP * job.steps * len(job.methods) * len(job.seeds)
    with RankPool(hosts, threads=threads) as pool:
        finishes: list[list[Finish]] = pool.run(race, job, timeout=limit)
    assert len(finishes) == hosts


def _on_hosts(job: Race, hosts: int) -> None:
    lab: Any = import_module("thinwire.lab")
    if not hasattr(lab, "run_in"):
        raise PlanError(f"asked for the network {job.network!r}, and this build emulates none; leave --net out")
    net = lab.network(job.network)
    sink = Jsonl(Path(job.folder, EVENTS))
    sink.write(Wired(time=time.time(), bandwidth=net.path.rate or None, latency=net.path.delay))
    sink.close()
    replace(job, thin=True).save()
    program = [sys.executable, "-m", "thinwire.tasks", str(Path(job.folder).resolve())]
    failed = [ended for ended in lab.run_in(net, hosts, program) if ended.code]
    if failed:
        first = failed[0]
        raise ThinwireError(f"rank {first.rank} on host {first.host} ended with {first.code}:\n{first.output}")


@contextmanager
def _stopping(path: Path) -> Iterator[None]:
    """The first Ctrl-C asks the ranks to finish the step they are in; the second one is meant seriously."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        path.touch()
        print("\nfinishing the step; Ctrl-C again to give up at once", flush=True)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
