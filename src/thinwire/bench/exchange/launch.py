"""Starting the ranks of a sweep on this machine, where nobody else has."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from thinwire import lab
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange import feed
from thinwire.bench.exchange.asked import Asked
from thinwire.bench.exchange.record import Run
from thinwire.bench.words import sizes

_POLL = 0.05
_GRACE = 10.0
_MOST = 64


def started_by_others() -> bool:
    """Whether this process is a rank already, as under torchrun."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def on_loopback(asked: Asked, ranks: int) -> Run:
    """Measure with so many ranks of this machine, which talk over its loopback interface.

    Args:
        asked: What.
        ranks: How many.

    Returns:
        The run.

    Raises:
        BenchError: It is no number of ranks, or a rank failed.
    """
    with tempfile.TemporaryDirectory(prefix="thinwire-bench-") as folder:
        job = write_job(asked, ranks, Path(folder), leash=True)
        port = str(_free_port())
        processes = [
            subprocess.Popen(
                command(job),
                stdin=subprocess.PIPE,
                env={**environment(rank, ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
            )
            for rank in range(ranks)
        ]
        _wait(processes)
        return Run.read(Path(folder) / "run.json")


def in_lab(asked: Asked, ranks: int, nets: Sequence[str], *, on_run: Callable[[Run], None] = lambda run: None) -> Run:
    """Measure in emulated networks, one after the other, with a host of its own for every rank.

    Args:
        asked: What, on each of them.
        ranks: How many.
        nets: Names or descriptions of networks, as `thinwire.lab` knows them.
        on_run: Is given what there is after each network, so that a later one that fails costs no more than itself.

    Returns:
        One run with the cells of all networks.

    Raises:
        BenchError: It is no number of ranks, or a rank failed.
        LabRefused: There is no such network, or it cannot be emulated here.
        LabMissing: This machine lacks rights or tools.
        LabFailed: A link is not what it was set to be.
    """
    known = [lab.network(net) for net in nets]
    whole: Run | None = None
    for net in known:
        found = _in_one(asked, ranks, net)
        whole = found if whole is None else whole.with_cells(found.cells)
        on_run(whole)
    if whole is None:
        raise BenchError("asked for no network; name one, such as lan-1g")
    return whole


def _in_one(asked: Asked, ranks: int, net: lab.Network) -> Run:
    up, down = net.links()
    rates = [link.rate for link in (up, down) if link.rate is not None]
    slowest = f"{min(rates) / 1e6:g}M" if rates else ""
    with tempfile.TemporaryDirectory(prefix="thinwire-bench-") as folder:
        job = write_job(replace(asked, net=net.name, rate=slowest), ranks, Path(folder))
        ended = lab.run_in(net, ranks, command(job), env={"OMP_NUM_THREADS": str(asked.threads)}, on_line=_pass_on)
        failed = [each for each in ended if each.code]
        if failed:
            said = "\n".join(f"--- rank {each.rank}: {_death(each.code)}\n{each.output}" for each in failed)
            raise BenchError(f"ranks failed on {net.name}:\n{said}")
        return Run.read(Path(folder) / "run.json")


def _pass_on(rank: int, _: str, line: str) -> None:
    if rank == 0:
        print(line.rstrip(), file=sys.stderr, flush=True)


def write_job(asked: Asked, ranks: int, folder: Path, *, leash: bool = False) -> Path:
    """Write down what every rank is to do, with gradients recorded where they are missing.

    Args:
        asked: What is to be measured.
        ranks: By how many.
        folder: Where to; the result comes there as ``run.json``.
        leash: Ranks end when their standard input does.

    Returns:
        The file.

    Raises:
        BenchError: It is no number of ranks, or nobody would take part.
    """
    if not 2 <= ranks <= _MOST:
        raise BenchError(f"asked for {ranks} hosts; write 2 to {_MOST}")
    asked.contestants()
    for size in () if asked.train else sizes(asked.sizes):
        feed.prepare(asked.traces, size, ranks)
    said = {
        "asked": {**asked.words(), "traces": os.path.abspath(asked.traces)},
        "leash": leash,
        "path": [os.path.abspath(path) for path in sys.path],
        "result": str(folder / "run.json"),
    }
    job = folder / "job.json"
    job.write_text(json.dumps(said))
    return job


def command(job: Path) -> list[str]:
    """What starts a rank.

    Args:
        job: Of `write_job`.
    """
    return [sys.executable, "-m", "thinwire.bench.exchange.rank", str(job)]


def environment(rank: int, ranks: int) -> dict[str, str]:
    """What a rank must know, but where to meet.

    Args:
        rank: Which.
        ranks: Of how many.
    """
    usual = {"TORCH_CPP_LOG_LEVEL": "ERROR", "OMP_NUM_THREADS": "1"}
    if sys.platform == "linux":
        usual["GLOO_SOCKET_IFNAME"] = "lo"
    return {**usual, **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}


def _wait(processes: list[subprocess.Popen[bytes]]) -> None:
    """Until all are done; when one has failed the others get a moment to say why, and are then stopped."""
    try:
        while any(process.poll() is None for process in processes):
            if any(process.poll() for process in processes):
                _let_go(processes)
                break
            time.sleep(_POLL)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    failed = [rank for rank, process in enumerate(processes) if process.returncode]
    if failed:
        which = ", ".join(f"rank {rank} ({_death(processes[rank].returncode)})" for rank in failed)
        raise BenchError(f"{which} failed; what they said is above")


def _let_go(processes: list[subprocess.Popen[bytes]]) -> None:
    until = time.monotonic() + _GRACE
    while time.monotonic() < until and any(process.poll() is None for process in processes):
        time.sleep(_POLL)


def _death(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"status {code}"


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
