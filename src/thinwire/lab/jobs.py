"""Programs on the hosts of a lab: one rank or several on each, with the environment that torchrun would give them."""

import contextlib
import os
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from thinwire.lab.channel import Message
from thinwire.lab.errors import LabFailed, LabRefused
from thinwire.lab.switch import DEVICE, address

_PORT = 29500
OnLine = Callable[[int, str, str], None]
"""Called with the rank, ``out`` or ``err``, and a line."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What became of one rank.

    Attributes:
        rank: Its number.
        host: Where it ran.
        code: Its exit status; minus the number of the signal that ended it.
        output: What it said, both streams, line by line as it came.
        seconds: From the start of the job to its end.
    """

    rank: int
    host: int
    code: int
    output: str
    seconds: float


class Job:
    """A program that runs on the hosts. `Cluster.start` makes it.

    Args:
        number: Of the job in its cluster.
        places: The host of each rank.
        kill: Kills its processes.
        on_line: Called with each line while somebody waits for the job.
    """

    def __init__(
        self, number: int, places: Sequence[int], kill: Callable[[], Any], on_line: OnLine | None = None
    ) -> None:
        self.number = number
        self.events: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._places = places
        self._kill = kill
        self._on_line = on_line
        self._said: list[list[str]] = [[] for _ in places]
        self._ended: dict[int, Ended] = {}
        self._began = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether a rank is, as far as was heard by now."""
        while not self.events.empty():
            self._hear(self.events.get())
        return len(self._ended) < len(self._places)

    def wait(self, timeout: float | None = None) -> list[Ended]:
        """Wait for every rank to end, calling ``on_line`` meanwhile.

        Args:
            timeout: Seconds; None: for ever.

        Returns:
            The ranks in order.

        Raises:
            LabFailed: The time is over (the ranks are killed), or the lab broke.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while len(self._ended) < len(self._places):
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                self._hear(self.events.get(timeout=left))
            except queue.Empty:
                self.stop()
                raise LabFailed(self._overdue(timeout or 0.0)) from None
        return [self._ended[rank] for rank in range(len(self._places))]

    def stop(self) -> None:
        """Kill what still runs. Where the lab is gone, nothing does."""
        if len(self._ended) < len(self._places):
            with contextlib.suppress(LabFailed):
                self._kill()

    def _hear(self, event: Message) -> None:
        if event["event"] == "failed":
            raise LabFailed(event["text"])
        rank = event["rank"]
        if event["event"] == "line":
            self._said[rank].append(event["text"] + "\n")
            if self._on_line is not None:
                self._on_line(rank, event["stream"], event["text"])
        else:
            self._ended[rank] = Ended(
                rank=rank,
                host=self._places[rank],
                code=event["code"],
                output="".join(self._said[rank]),
                seconds=time.monotonic() - self._began,
            )

    def _overdue(self, timeout: float) -> str:
        late = [rank for rank in range(len(self._places)) if rank not in self._ended]
        last = [f"--- rank {rank} ---\n{''.join(self._said[rank][-20:])}" for rank in late]
        return "\n".join([f"ranks {late} did not end within {timeout:g} s and were killed", *last])


@dataclass(frozen=True, kw_only=True)
class Program:
    """What runs on the hosts.

    Attributes:
        argv: Its words, the same for every rank.
        env: What stands in every rank's environment beside this process's own and what torchrun would say.
        ranks_per_host: How many of it on each host.
        network: What the network is called.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    ranks_per_host: int
    network: str

    def places(self, hosts: int) -> list[int]:
        """The host of each rank: neighbours in rank are neighbours on a host, as with torchrun."""
        if self.ranks_per_host < 1:
            raise LabRefused(f"asked for {self.ranks_per_host} ranks on each host; write 1 or more")
        return [host for host in range(hosts) for _ in range(self.ranks_per_host)]


def processes(job: int, program: Program, hosts: int) -> list[Message]:
    """What a keeper has to be told to start a program.

    Args:
        job: The number of the job. Each has a port of its own, so that one never meets the remains of another.
        program: What to run.
        hosts: On how many hosts.
    """
    places = program.places(hosts)
    usual = {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // len(places))), "TORCH_CPP_LOG_LEVEL": "ERROR"}
    shared = {
        **usual,
        **os.environ,
        "MASTER_ADDR": address(0),
        "MASTER_PORT": str(_PORT + job),
        "WORLD_SIZE": str(len(places)),
        "LOCAL_WORLD_SIZE": str(program.ranks_per_host),
        "GROUP_WORLD_SIZE": str(hosts),
        "GLOO_SOCKET_IFNAME": DEVICE,
        "NCCL_SOCKET_IFNAME": DEVICE,
        "TP_SOCKET_IFNAME": DEVICE,
        "PYTHONUNBUFFERED": "1",
        "THINWIRE_LAB": program.network,
    }
    return [
        {
            "job": job,
            "rank": rank,
            "host": host,
            "argv": [str(word) for word in program.argv],
            "cwd": os.getcwd(),
            "env": {
                **shared,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank % program.ranks_per_host),
                "GROUP_RANK": str(host),
                "NCCL_HOSTID": f"thinwire-host-{host}",
                **program.env,
            },
        }
        for rank, host in enumerate(places)
    ]
