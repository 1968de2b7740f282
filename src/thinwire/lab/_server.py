"""The process that hands out rank processes: a fork server with everything slow already imported."""

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from thinwire.lab._rank import Seat, rank_main

# torch._dynamo is a second of imports that the first DDP model or optimizer of every rank would cost.
_preloaded = ["torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo", "thinwire.attaching"]
_QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}
_LOOPBACK = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}


def preload(*modules: str) -> None:
    """Import more modules once, in the fork server, instead of once in every rank.

    Args:
        *modules: Their full names. Only has an effect before the first rank of this process is started.
    """
    _preloaded.extend(modules)


def environment() -> dict[str, str]:
    """The environment for ranks started now: this process's own, quiet, and on the loopback interface.

    Returns:
        Names and values. What this process has set itself goes first.
    """
    return {**_QUIET, **_LOOPBACK, **os.environ}


def start(seat: Seat) -> tuple[BaseProcess, Connection]:
    """Start one rank process. The first one waits for the imports.

    Args:
        seat: The place it is to take.

    Returns:
        The process and this side's end of its pipe.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_preloaded, "thinwire.lab._rank"])
    resource_tracker.ensure_running()  # on its first start it would unblock SIGINT again
    with _quiet_imports(), _deaf_to_interrupts():
        forkserver.ensure_running()
    here, there = context.Pipe()
    process = context.Process(target=rank_main, args=(seat, there), name=f"rank-{seat.rank}", daemon=True)
    process.start()
    there.close()
    return process, here


@contextlib.contextmanager
def _quiet_imports() -> Iterator[None]:
    """Torch reads its log level once, when it is imported, so the server must be born with it."""
    missing = {name: value for name, value in _QUIET.items() if name not in os.environ}
    os.environ.update(missing)
    try:
        yield
    finally:
        for name in missing:
            del os.environ[name]


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A blocked signal stays blocked in a process started meanwhile: Ctrl-C is no business of the server's."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
