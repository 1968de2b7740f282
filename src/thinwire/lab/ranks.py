"""Run a function on N real ranks of this machine, quickly, and hear of everything that goes wrong.

    results = run_ranks(work, 4, "argument")          # work(rank, world, "argument") on each

A fork server with torch and thinwire already imported hands out processes, so four ranks are up in a
fraction of a second. Whatever happens inside comes out as a typed error with every rank's traceback,
and no process outlives its parent.
"""

import contextlib
import os
import pickle
import signal
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

from thinwire.errors import ThinwireError
from thinwire.lab._rank import Done, Failure, Job, Join, Report, Seat, report, stack_file
from thinwire.lab._server import environment, preload, start

__all__ = ["Failure", "RankFailed", "RankPool", "RanksHung", "RanksRefused", "preload", "report", "run_ranks"]

_GRACE = 5.0  # seconds that the others have to end after one rank failed, or to leave after the last job
_JOIN = 60.0  # seconds to form a process group, on however busy a machine

Answer = Done | Failure


class RankFailed(ThinwireError):
    """At least one rank raised an exception or died.

    Attributes:
        failures: What went wrong, by rank, in the order in which it became known: the first is usually the
            cause and the rest are peers that lost their partner.
    """

    def __init__(self, failures: dict[int, Failure], stopped: dict[int, str]) -> None:
        """Compose the message.

        Args:
            failures: By rank, first known first.
            stopped: The stacks of ranks that had to be stopped because they went on waiting.
        """
        self.failures = failures
        heads = ", ".join(f"rank {rank}: {failure.kind}" for rank, failure in failures.items())
        parts = [f"{_ranks(failures)} failed ({heads}; first known first)"]
        parts += [f"--- rank {rank} ---\n{failure.text}" for rank, failure in failures.items()]
        parts += [f"--- rank {rank}, still waiting, stopped ---\n{text}" for rank, text in stopped.items()]
        super().__init__("\n".join(parts))


class RanksHung(ThinwireError):
    """Ranks did not answer in time; they were stopped.

    Attributes:
        stacks: By rank, the Python stacks of all its threads at that moment.
    """

    def __init__(self, stacks: dict[int, str], seconds: float) -> None:
        """Compose the message.

        Args:
            stacks: By rank.
            seconds: How long was waited.
        """
        self.stacks = stacks
        parts = [f"{_ranks(stacks)} gave no answer within {seconds:g} s and {_were(stacks)} stopped"]
        parts += [f"--- rank {rank} ---\n{text}" for rank, text in stacks.items()]
        super().__init__("\n".join(parts))


class RanksRefused(ThinwireError, ValueError):
    """The ranks were asked for something that cannot be done; nothing was run."""


def run_ranks(
    fn: Callable[..., Any],
    world: int,
    *args: Any,
    backend: str = "gloo",
    timeout: float = 60.0,
    threads: int = 1,
) -> list[Any]:
    """Run ``fn(rank, world, *args)`` on fresh ranks, each a process in one process group.

    Args:
        fn: A function that can be imported: defined at the top of a module.
        world: The number of ranks.
        *args: Passed on to every rank by pickling.
        backend: Of the process group.
        timeout: Seconds for the function, start-up not counted.
        threads: Torch's intra-op threads in each rank.

    Returns:
        The results in the order of the ranks.

    Raises:
        RankFailed: A rank raised or died. All of them are gone.
        RanksHung: A rank gave no answer in time. All of them are gone.
        RanksRefused: The function cannot be sent to another process.
    """
    with RankPool(world, backend=backend, timeout=timeout, threads=threads) as pool:
        return pool.run(fn, *args)


class RankPool:
    """N ranks that stay: one process group, many functions one after the other.

    A function that raises leaves the pool usable: the ranks form a new process group, so that no
    half-finished collective reaches the next function. A rank that dies or hangs ends the pool.

    Args:
        world: The number of ranks.
        backend: Of the process group.
        timeout: Seconds for one `run`, unless it says otherwise.
        threads: Torch's intra-op threads in each rank.
    """

    def __init__(self, world: int, *, backend: str = "gloo", timeout: float = 60.0, threads: int = 1) -> None:
        if world < 1:
            raise RanksRefused(f"asked for {world} ranks; write 1 or more")
        self.world = world
        self._timeout = timeout
        self._generation = 0
        self._over = ""
        self._folder = tempfile.TemporaryDirectory(prefix="thinwire-ranks-")
        self._members: list[tuple[BaseProcess, Connection]] = []
        try:
            for rank in range(world):
                seat = Seat(
                    rank=rank,
                    world=world,
                    backend=backend,
                    threads=threads,
                    # A collective must not give up before this pool does, which has the stacks to show.
                    group_timeout=timeout + _JOIN,
                    folder=self._folder.name,
                    environ=environment(),
                )
                self._members.append(start(seat))
            self._join()
        except BaseException:
            self._end("it did not start")
            raise

    @property
    def usable(self) -> bool:
        """Whether another `run` is possible."""
        return not self._over

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids, by rank."""
        return tuple(process.pid or 0 for process, _ in self._members)

    def run(
        self,
        fn: Callable[..., Any],
        *args: Any,
        timeout: float | None = None,
        on_report: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Run ``fn(rank, world, *args)`` on every rank of the pool.

        Args:
            fn: A function that can be imported: defined at the top of a module.
            *args: Passed on to every rank by pickling.
            timeout: Seconds, instead of the pool's.
            on_report: Called here with ``(rank, value)`` for every `report` of a rank.

        Returns:
            The results in the order of the ranks.

        Raises:
            RankFailed: A rank raised (the pool goes on) or died (it does not).
            RanksHung: A rank gave no answer in time. The pool is over.
            RanksRefused: The pool is over already, or the function cannot be sent to another process.
        """
        if self._over:
            raise RanksRefused(f"this pool of {self.world} ranks is over: {self._over}; make a new RankPool")
        job = Job(_pickled(fn, args))
        try:
            results = self._ask(job, self._timeout if timeout is None else timeout, on_report)
        except RankFailed:
            self._rejoin()
            raise
        return [pickle.loads(result) for result in results]

    def close(self) -> None:
        """Let the ranks leave, and hear of any that cannot.

        Raises:
            RankFailed: A rank died while leaving.
            RanksHung: A rank did not leave.
        """
        if self._over:
            return
        self._send(None)
        deadline = time.monotonic() + _GRACE
        for process, _ in self._members:
            process.join(max(0.0, deadline - time.monotonic()))
        codes = {rank: process.exitcode for rank, (process, _) in enumerate(self._members)}
        stacks = self._stacks([rank for rank, code in codes.items() if code is None])
        self._end("it was closed")
        if stacks:
            raise RanksHung(stacks, _GRACE)
        if any(codes.values()):
            raise RankFailed({rank: _death(code) for rank, code in codes.items() if code}, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._end("a block that used it raised")

    def _join(self) -> None:
        self._generation += 1
        self._ask(Join(self._generation), _JOIN, None)

    def _rejoin(self) -> None:
        """After a failure: a new process group where every rank is still there to form one."""
        if self.usable:
            try:
                self._join()
            except ThinwireError as error:
                self._end(f"its ranks could not form a new process group after a failure ({error})")

    def _ask(self, command: Join | Job, seconds: float, on_report: Callable[[int, Any], None] | None) -> list[bytes]:
        """Send one command to every rank and sort the answers."""
        try:
            # A dead rank is found, with its exit code, by the listening.
            self._send(command)
            answers = self._listen(seconds, on_report)
            silent = [rank for rank in range(self.world) if rank not in answers]
            stacks = self._stacks(silent)
        except BaseException as error:
            self._end(f"{type(error).__name__} interrupted it")
            raise
        failures = {rank: answer for rank, answer in answers.items() if isinstance(answer, Failure)}
        dead = [rank for rank in failures if self._members[rank][0].exitcode is not None]
        if silent or dead:
            reasons = [f"rank {rank} died" for rank in dead] + [f"rank {rank} hung" for rank in silent]
            self._end(" and ".join(reasons))
        if failures:
            raise RankFailed(failures, stacks)
        if silent:
            raise RanksHung(stacks, seconds)
        return [answer.result for _, answer in sorted(answers.items()) if isinstance(answer, Done)]

    def _send(self, command: Join | Job | None) -> None:
        for _, connection in self._members:
            with contextlib.suppress(OSError):
                connection.send(command)

    def _listen(self, seconds: float, on_report: Callable[[int, Any], None] | None) -> dict[int, Answer]:
        """Collect one answer from each rank, in order of arrival, until the time is up."""
        deadline = time.monotonic() + seconds
        answers: dict[int, Answer] = {}
        open_ends = {connection: rank for rank, (_, connection) in enumerate(self._members)}
        while open_ends:
            ready = wait(list(open_ends), timeout=max(0.0, deadline - time.monotonic()))
            if not ready:
                break
            for connection in ready:
                assert isinstance(connection, Connection)
                rank = open_ends[connection]
                message = self._receive(rank)
                if isinstance(message, Report):
                    if on_report is not None:
                        on_report(rank, pickle.loads(message.value))
                    continue
                del open_ends[connection]
                answers[rank] = message
                if isinstance(message, Failure):
                    deadline = min(deadline, time.monotonic() + _GRACE)
        return answers

    def _receive(self, rank: int) -> Report | Done | Failure:
        process, connection = self._members[rank]
        try:
            message: Report | Done | Failure = connection.recv()
        except (EOFError, OSError):
            process.join(_GRACE)
            return _death(process.exitcode)
        return message

    def _stacks(self, ranks: list[int]) -> dict[int, str]:
        """Ask these ranks for their Python stacks. A rank that cannot answer gets its process state shown."""
        for rank in ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[rank], signal.SIGUSR1)
        deadline = time.monotonic() + 1.0
        paths = [stack_file(self._folder.name, rank) for rank in ranks]
        while time.monotonic() < deadline and not all(map(_read, paths)):
            time.sleep(0.02)
        time.sleep(0.05 if ranks else 0.0)  # faulthandler writes line by line
        nothing = "no stack; process state: {}"
        return {
            rank: _read(path) or nothing.format(_state(self.pids[rank]))
            for rank, path in zip(ranks, paths, strict=True)
        }

    def _end(self, reason: str) -> None:
        self._over = self._over or reason
        for process, _ in self._members:
            process.kill()
        for process, connection in self._members:
            process.join()
            connection.close()
        self._folder.cleanup()


def _pickled(fn: Callable[..., Any], args: tuple[Any, ...]) -> bytes:
    try:
        return pickle.dumps((fn, args))
    except Exception as error:
        raise RanksRefused(
            f"{fn!r} with its arguments cannot be sent to another process ({error}); "
            "write a function at the top of a module and pass arguments that pickle"
        ) from error


def _death(code: int | None) -> Failure:
    if code is None:
        return Failure("closed its pipe", "closed its pipe but is still running")
    if code < 0:
        name = signal.Signals(-code).name
        return Failure(name, f"killed by signal {-code} ({name})")
    return Failure(f"exit code {code}", f"ended with exit code {code} before it answered")


def _state(pid: int) -> str:
    return (_read(f"/proc/{pid}/stat").rpartition(")")[2].split() or ["unknown"])[0]


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _ranks(ranks: dict[int, Any]) -> str:
    return ("rank " if len(ranks) == 1 else "ranks ") + ", ".join(str(rank) for rank in sorted(ranks))


def _were(ranks: dict[int, Any]) -> str:
    return "was" if len(ranks) == 1 else "were"
