"""The inside of one rank process: wait for a job, run it, answer. The outside is `thinwire.lab.ranks`."""

import contextlib
import faulthandler
import fcntl
import gc
import os
import pickle
import signal
import traceback
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import Any

import torch
import torch.distributed as dist

from thinwire.lifecycle import shutdown

_to_parent: "Connection | None" = None


@dataclass(frozen=True, kw_only=True)
class Seat:
    """What a rank process needs to know to take its place in the group."""

    rank: int
    world: int
    backend: str
    threads: int
    group_timeout: float
    folder: str
    environ: dict[str, str]

    def store_file(self, generation: int) -> str:
        """Where the ranks meet. A store is used for one group only, so each generation has its own."""
        return os.path.join(self.folder, f"store-{generation}")


@dataclass(frozen=True)
class Join:
    """To a rank: form the process group anew, through the store of this generation."""

    generation: int


@dataclass(frozen=True)
class Job:
    """To a rank: run this pickled ``(function, arguments)``."""

    call: bytes


@dataclass(frozen=True)
class Report:
    """From a rank: an interim value, pickled, while its job goes on."""

    value: bytes


@dataclass(frozen=True)
class Done:
    """From a rank: the pickled result."""

    result: bytes


@dataclass(frozen=True)
class Failure:
    """From a rank, or about one: what it raised (``kind``: the exception's class), or how it died.

    Attributes:
        kind: The name of the exception's class, or of the signal, or ``exit code N``.
        text: The traceback as text, or one sentence where there is none.
    """

    kind: str
    text: str


def report(value: Any) -> None:
    """Send an interim value from inside a rank to the ``on_report`` of `RankPool.run`.

    Args:
        value: Anything that can be pickled. Outside a rank it goes nowhere.
    """
    if _to_parent is not None:
        _to_parent.send(Report(pickle.dumps(value)))


def stack_file(folder: str, rank: int) -> str:
    """Where a rank writes its Python stacks when it is sent SIGUSR1."""
    return os.path.join(folder, f"stack-{rank}.txt")


def rank_main(seat: Seat, connection: Connection) -> None:
    """Serve jobs until the other end of the connection closes.

    Args:
        seat: This rank's place.
        connection: Commands come in (`Join`, `Job`, or None for the end), answers go out.
    """
    global _to_parent
    _to_parent = connection
    _settle(seat)
    with contextlib.suppress(EOFError):
        while (command := connection.recv()) is not None:
            answer = _obey(seat, command)
            connection.send(answer)
            if isinstance(answer, Failure):
                # Peers that wait for this rank in a collective fail at once instead of at their timeout.
                shutdown()
            else:
                gc.collect()
    shutdown()


def _settle(seat: Seat) -> None:
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it stops its ranks.
    stacks = open(stack_file(seat.folder, seat.rank), "w")  # noqa: SIM115 - faulthandler keeps it for life
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    for name in set(os.environ) - set(seat.environ):
        del os.environ[name]
    os.environ.update(seat.environ)
    torch.set_num_threads(seat.threads)
    gc.freeze()  # What was preloaded never dies; without this every collection walks all of torch.


def _die_with_parent() -> None:
    """Have the kernel kill this process when the one that asked for it is gone.

    The parent by descent is the fork server, so PR_SET_PDEATHSIG cannot be used. The sentinel is a pipe
    whose other end the asking process holds: its closing raises a signal, here SIGKILL, which also ends a
    rank that hangs in C code or is stopped.
    """
    parent = parent_process()
    if parent is None or not hasattr(fcntl, "F_SETSIG"):  # pragma: no cover - not on Linux
        return
    sentinel = int(parent.sentinel)  # type: ignore[attr-defined,unused-ignore]
    fcntl.fcntl(sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(sentinel, fcntl.F_SETFL, fcntl.fcntl(sentinel, fcntl.F_GETFL) | os.O_ASYNC)
    if wait([sentinel], timeout=0):
        os._exit(1)


def _obey(seat: Seat, command: Join | Job) -> Done | Failure:
    try:
        if isinstance(command, Join):
            _join(seat, command.generation)
            return Done(pickle.dumps(None))
        function, args = pickle.loads(command.call)
        return Done(pickle.dumps(function(seat.rank, seat.world, *args)))
    except BaseException as error:  # SystemExit and pytest's outcomes are answers too.
        return Failure(type(error).__name__, traceback.format_exc())


def _join(seat: Seat, generation: int) -> None:
    shutdown()
    dist.init_process_group(
        seat.backend,
        store=dist.FileStore(seat.store_file(generation), seat.world),  # type: ignore[attr-defined]
        rank=seat.rank,
        world_size=seat.world,
        timeout=timedelta(seconds=seat.group_timeout),
    )
