"""Start a run's ranks: on hosts of an emulated network, on this machine's loopback, or as torchrun has started them."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from thinwire import lab
from thinwire.errors import ThinwireError
from thinwire.observe.records import Wired
from thinwire.observe.sinks import Jsonl
from thinwire.tasks.runner import Finish
from thinwire.tasks.side_by_side import EVENTS, STOP, Race, race

LOOPBACK = "loopback"
_SECONDS_PER_STEP = 60.0  # a step of one method that is slower than this on average is a hang
_NEEDED = 180.0  # seconds for set-up and examinations
_LONGEST = 1e6  # seconds; what waits for ranks cannot wait longer


class RankEnded(ThinwireError, RuntimeError):
    """A rank on an emulated host did not come to its end."""


def under_torchrun() -> bool:
    """Whether torchrun, or something like it, has started this process as one of several ranks."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= set(os.environ)


def launch(job: Race, hosts: int) -> None:
    """Run a job to its end, or until it is stopped; what it comes to is in its events.

    Args:
        job: What to run. Its network is `LOOPBACK`, or the name or description of an emulated one.
        hosts: Ranks, one on each host.

    Raises:
        LabRefused: There is no such network.
        LabMissing: This machine cannot emulate networks.
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
    limit = min(_LONGEST, _NEEDED + _SECONDS_PER_STEP * job.steps * len(job.methods) * len(job.seeds))
    with RankPool(hosts, threads=threads) as pool:
        finishes: list[list[Finish]] = pool.run(race, job, timeout=limit)
    assert len(finishes) == hosts


def _on_hosts(job: Race, hosts: int) -> None:
    net = lab.network(job.network)
    replace(job, thin=True).save()
    program = [sys.executable, "-m", "thinwire.tasks", str(Path(job.folder).resolve())]
    threads = str(max(1, (os.cpu_count() or 1) // hosts))
    sink = Jsonl(Path(job.folder, EVENTS))
    with lab.cluster(hosts, net) as cluster, cluster.start(program, env={"OMP_NUM_THREADS": threads}) as running:
        cluster.play(net.schedule)
        began = time.time()
        sink.write(Wired(time=began, bandwidth=net.path.rate, latency=net.path.delay))
        try:
            ended = running.wait()
        finally:
            for event in _changes(net, began, time.time()):
                sink.write(event)
            sink.close()
    if failed := [each for each in ended if each.code]:
        first = failed[0]
        raise RankEnded(f"rank {first.rank} on host {first.host} ended with status {first.code}:\n{first.output}")


def _changes(net: lab.Network, began: float, over: float) -> Iterator[Wired]:
    """What the network's schedule has done to all hosts between two times."""
    schedule = net.schedule
    changes = [each for each in schedule.changes if each.options and each.who < 0] if schedule is not None else []
    start, rate, delay = began, net.path.rate, net.path.delay
    while changes and start < over:
        for change in changes:
            rate, delay = change.options.get("rate", rate), change.options.get("delay", delay) or 0.0
            if start + change.at < over:
                yield Wired(time=start + change.at, bandwidth=rate, latency=delay)
        if schedule is None or schedule.repeat is None:
            return
        start += schedule.repeat


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
