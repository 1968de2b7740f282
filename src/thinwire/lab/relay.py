"""Delay, jitter and loss, where the kernel has no netem: packets are held in its queue until their time has come.

A process of its own, with a high priority, so that it keeps its times while ranks compute. A packet waits once, where
it arrives, for the delay of the sender's up link and of the receiver's down link together.
"""

import ctypes
import gc
import heapq
import itertools
import json
import os
import random
import select
import shutil
import signal
import time
from collections import defaultdict
from dataclasses import dataclass

from thinwire.lab.channel import LineReader, send
from thinwire.lab.errors import LabMissing
from thinwire.lab.link import Link
from thinwire.lab.namespaces import Namespace
from thinwire.lab.nfqueue import ACCEPT, DROP, Queue
from thinwire.lab.switch import DEVICE
from thinwire.lab.urgency import be_urgent

_RULE = ["INPUT", "-i", DEVICE, "-j", "NFQUEUE", "--queue-num", "0"]
_SET_TIMER_SLACK, _SET_DEATH_SIGNAL = 29, 1
_IDLE = 1.0
_EARLY = 0.5e-3


@dataclass(frozen=True)
class Path:
    """What happens to packets between two hosts."""

    delay: float
    jitter: float
    loss: float


class Relay:
    """The holding of packets, as the keeper sees it. Begins when the first link needs it.

    Args:
        hosts: The hosts' namespaces.
    """

    def __init__(self, hosts: list[Namespace]) -> None:
        self._hosts = hosts
        self._inlet = 0
        self._engaged = False
        self.process = 0

    def set_links(self, links: dict[tuple[int, str], Link]) -> None:
        """Hold packets as these links say.

        Args:
            links: Of every host, in both directions.

        Raises:
            LabMissing: There is no iptables.
        """
        needed = any(link.held for link in links.values())
        if needed and not self.process:
            self._begin()
        if self.process:
            rows = [[link.delay, link.jitter, link.loss] for link in links.values()]
            send(self._inlet, {"links": [[*way, *row] for way, row in zip(links, rows, strict=True)]})
        if needed != self._engaged:
            for host in self._hosts:
                host.run(["iptables", "-w", "-A" if needed else "-D", *_RULE])
            self._engaged = needed

    def ended(self) -> bool:
        """Whether it broke."""
        return bool(self.process) and os.waitpid(self.process, os.WNOHANG)[0] == self.process

    def _begin(self) -> None:
        if shutil.which("iptables") is None:
            raise LabMissing(
                "delay, jitter and loss need iptables here, as this kernel has no netem: install the package iptables "
                "(in a checkout as root: make lab), or use a network of rates only, such as office-100m"
            )
        queues = [Queue(host) for host in self._hosts]
        outlet, self._inlet = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            try:
                os.close(self._inlet)
                _Holding(queues, outlet).serve()
            finally:
                os._exit(1)
        os.close(outlet)
        for queue in queues:
            queue.socket.close()


class _Holding:
    """The holding of packets, in its own process."""

    def __init__(self, queues: list[Queue], commands: int) -> None:
        self._queues = queues
        self._commands = LineReader(commands)
        self._paths: dict[tuple[int, int], Path] = {}
        self._last: dict[tuple[int, int], float] = defaultdict(float)
        self._held: list[tuple[float, int, int, int, int]] = []
        self._order = itertools.count()
        self._lots = random.Random(os.getpid())

    def serve(self) -> None:
        """Until the keeper is gone."""
        _be_punctual()
        by_descriptor = {queue.fileno(): host for host, queue in enumerate(self._queues)}
        everything = [*by_descriptor, self._commands.descriptor]
        while self._commands.open:
            for descriptor in select.select(everything, [], [], self._patience())[0]:
                if descriptor in by_descriptor:
                    self._take(by_descriptor[descriptor])
                else:
                    for line in self._commands.ready():
                        self._paths = paths(json.loads(line)["links"])
            self._release()

    def _patience(self) -> float:
        if not self._held:
            return _IDLE
        left = self._held[0][0] - time.monotonic()
        # Out of a long sleep a processor wakes late, out of a short one it does not.
        return max(0.0, left - _EARLY if left > 2 * _EARLY else left)

    def _take(self, host: int) -> None:
        now = time.monotonic()
        for number, sender in self._queues[host].arrived():
            way = (sender, host)
            path = self._paths[way]
            due, verdict = now + path.delay, ACCEPT
            if path.jitter:
                due += self._lots.uniform(-path.jitter, path.jitter)
            if path.loss and self._lots.random() < path.loss:
                verdict = DROP
            # None overtakes another, also when a delay becomes shorter.
            due = self._last[way] = max(due, self._last[way])
            heapq.heappush(self._held, (due, next(self._order), host, number, verdict))

    def _release(self) -> None:
        now = time.monotonic()
        ready: dict[int, list[tuple[int, int]]] = {}
        while self._held and self._held[0][0] <= now:
            _, _, host, number, verdict = heapq.heappop(self._held)
            ready.setdefault(host, []).append((number, verdict))
        for host, verdicts in ready.items():
            self._queues[host].judge(verdicts)


def paths(links: list[tuple[int, str, float, float, float]]) -> dict[tuple[int, int], Path]:
    """What happens between each two hosts.

    Args:
        links: Host, direction, delay, jitter and loss of every link.
    """
    up = {host: values for host, direction, *values in links if direction == "up"}
    down = {host: values for host, direction, *values in links if direction == "down"}
    return {
        (sender, receiver): Path(
            delay=up[sender][0] + down[receiver][0],
            jitter=up[sender][1] + down[receiver][1],
            loss=1.0 - (1.0 - up[sender][2]) * (1.0 - down[receiver][2]),
        )
        for sender in up
        for receiver in down
    }


def _be_punctual() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    gc.disable()
    libc = ctypes.CDLL(None)
    libc.prctl(_SET_TIMER_SLACK, 1, 0, 0, 0)
    libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    be_urgent()
