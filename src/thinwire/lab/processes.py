"""The processes that run on the hosts, and what they say. Runs in the keeper, without torch."""

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from thinwire.lab.channel import LineReader, Message
from thinwire.lab.switch import Switch, everybody

_STREAMS = ("out", "err")


@dataclass(frozen=True, kw_only=True)
class Start:
    """A process to be started.

    Attributes:
        job: The number of the job it belongs to.
        rank: Its number in the job.
        host: Where it runs.
        argv: Its words.
        env: Its whole environment.
        cwd: Its folder.
    """

    job: int
    rank: int
    host: int
    argv: list[str]
    env: dict[str, str]
    cwd: str


class Processes:
    """All processes of a lab.

    Args:
        switch: Where they live.
        selector: What the keeper waits on; readers are registered with a function to call.
        tell: Sends an event to the cluster.
    """

    def __init__(self, switch: Switch, selector: selectors.BaseSelector, tell: Callable[[Message], None]) -> None:
        self._switch = switch
        self._selector = selector
        self._tell = tell
        self._running: dict[int, tuple[Start, subprocess.Popen[bytes]]] = {}
        self.helpers: set[int] = set()
        """Processes of the keeper's own, which nobody is told about."""

    def start(self, start: Start) -> None:
        """Start one. Failing to is an exit with status 127, as in a shell."""
        try:
            with self._switch.hosts[start.host].entered():
                process = subprocess.Popen(
                    start.argv,
                    env=start.env,
                    cwd=start.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
        except OSError as error:
            text = f"{start.argv[0]}: {error.strerror}"
            self._tell({"event": "line", "job": start.job, "rank": start.rank, "stream": "err", "text": text})
            self._tell({"event": "exit", "job": start.job, "rank": start.rank, "code": 127})
            return
        self._running[process.pid] = (start, process)
        for name, pipe in zip(_STREAMS, (process.stdout, process.stderr), strict=True):
            assert pipe is not None
            self._selector.register(pipe, selectors.EVENT_READ, self._listener(start, name, pipe))

    def _listener(self, start: Start, stream: str, pipe: IO[bytes]) -> Callable[[], bool]:
        reader = LineReader(pipe.fileno())

        def listen() -> bool:
            for text in reader.ready():
                self._tell({"event": "line", "job": start.job, "rank": start.rank, "stream": stream, "text": text})
            if not reader.open and pipe in self._selector.get_map():
                self._selector.unregister(pipe)
                pipe.close()
            return reader.open

        return listen

    def reap(self) -> None:
        """Report those that ended; adopted orphans are only cleared away."""
        for pid, (start, process) in list(self._running.items()):
            code = process.poll()
            if code is not None:
                self._drain(pid)
                del self._running[pid]
                self._tell({"event": "exit", "job": start.job, "rank": start.rank, "code": code})
        self._adopted()

    def _adopted(self) -> None:
        """Clear away ended orphans: the keeper is the first process of its world, so they become its children."""
        mine = self.helpers | set(self._running)
        with contextlib.suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in mine:
                    return  # next time
                os.waitpid(found.si_pid, 0)

    def _drain(self, pid: int) -> None:
        """Pass on what an ended process has said. A child of it may keep the pipes open for ever."""
        for pipe in (self._running[pid][1].stdout, self._running[pid][1].stderr):
            assert pipe is not None
            if not pipe.closed:
                os.set_blocking(pipe.fileno(), False)
                listen = self._selector.get_key(pipe).data
                self._selector.unregister(pipe)
                with contextlib.suppress(BlockingIOError):
                    while listen():
                        pass
                pipe.close()

    def kill(self, job: int | None = None, host: int | None = None) -> int:
        """Kill, at once and without asking, the processes of a job or everything that lives on a host.

        Returns:
            How many.
        """
        killed: set[int] = set()
        while victims := self._victims(job, host) - killed - {os.getpid()} - self.helpers:
            for pid in victims:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= victims  # and again: some may have started others meanwhile
        return len(killed)

    def _victims(self, job: int | None, host: int | None) -> set[int]:
        if host is not None:
            return self._switch.members(host)
        leaders = {pid for pid, (start, _) in self._running.items() if start.job == job}
        return leaders | {pid for pid in everybody() if _session(pid) in leaders}


def _session(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return 0
