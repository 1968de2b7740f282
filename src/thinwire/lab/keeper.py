"""The keeper of a lab: a process of its own, which holds the namespaces and everything that lives in them.

It is the first process of its own pid namespace. When it ends, for whatever reason, the kernel kills everything in
there, and with it go the namespaces, which have no names. It ends when the process that made the lab does.

Neither this file nor what it imports imports torch, so that a lab is there in a fraction of a second.
"""

import heapq
import itertools
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from thinwire.errors import ThinwireError
from thinwire.lab import probes
from thinwire.lab.channel import LineReader, Message, send
from thinwire.lab.processes import Processes, Start
from thinwire.lab.relay import Relay
from thinwire.lab.switch import DIRECTIONS, Switch

COMMANDS = 0
ANSWERS = 1


class Keeper:
    """Obeys commands until there is nobody left who could give any.

    Args:
        hosts: How many hosts to make.
        congestion: TCP's congestion control on them.
    """

    def __init__(self, hosts: int, congestion: str) -> None:
        self._switch = Switch(hosts, congestion)
        self._selector = selectors.DefaultSelector()
        self._relay = Relay(self._switch.hosts)
        self._processes = Processes(self._switch, self._selector, self._tell)
        self._groups = [list(range(hosts))]
        self._cut: set[int] = set()
        self._timers: list[tuple[float, int, Message]] = []
        self._number = itertools.count()
        self._obey: dict[str, Callable[[Message], Any]] = {
            "start": self._start,
            "kill": lambda command: self._processes.kill(command.get("job"), command.get("host")),
            "links": self._links,
            "cut": self._cut_off,
            "partition": self._partition,
            "counters": lambda _: self._switch.counters(),
            "play": self._play,
            "round_trips": lambda c: probes.round_trips(self._switch, [tuple(p) for p in c["pairs"]], c["count"]),
            "lost": lambda c: probes.lost(self._switch, c["pair"], c["count"]),
            "flood": lambda c: probes.flood(self._switch, [tuple(w) for w in c["ways"]], c["seconds"]),
            "goodput": lambda c: probes.goodput(self._switch, [tuple(p) for p in c["pairs"]], c["seconds"]),
        }

    def serve(self, owner: int) -> None:
        """Obey until the commands end or the owner does.

        Args:
            owner: A file descriptor that can be read from when the owner is gone.
        """
        commands = LineReader(COMMANDS)
        wake, alarm = os.pipe()
        for end in (wake, alarm):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ, lambda: os.read(wake, 4096))
        self._selector.register(COMMANDS, selectors.EVENT_READ, lambda: self._listen(commands))
        self._selector.register(owner, selectors.EVENT_READ, lambda: os._exit(0))
        self._tell({"event": "ready"})
        while commands.open:
            wait = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            for key, _ in self._selector.select(wait):
                if key.fileobj in self._selector.get_map():
                    key.data()
            self._processes.reap()
            self._due()
            if self._relay.ended():
                self._tell({"event": "failed", "text": "what holds packets back in the lab has ended: see its output"})
                return

    def _tell(self, message: Message) -> None:
        send(ANSWERS, message)

    def _listen(self, commands: LineReader) -> None:
        for line in commands.ready():
            command = json.loads(line)
            answer: Message = {"id": command["id"]}
            try:
                answer["result"] = self._obey[command["do"]](command)
            except (ThinwireError, OSError) as error:
                answer["error"] = str(error)
                answer["kind"] = type(error).__name__
            self._tell(answer)

    def _start(self, command: Message) -> None:
        for each in command["processes"]:
            self._processes.start(Start(**each))

    def _links(self, command: Message) -> None:
        changed = {}
        for host, direction, options in command["links"]:
            for each in DIRECTIONS if direction == "both" else (direction,):
                changed[host, each] = self._switch.links[host, each].changed(**options)
        self._relay.set_links({**self._switch.links, **changed})
        self._processes.helpers = {self._relay.process}
        self._switch.set_links(changed)

    def _cut_off(self, command: Message) -> None:
        self._cut = self._cut | {command["host"]} if command["off"] else self._cut - {command["host"]}
        self._partition({"groups": self._groups})

    def _partition(self, command: Message) -> None:
        self._groups = command["groups"]
        self._switch.partition([[host for host in group if host not in self._cut] for group in self._groups])

    def _play(self, command: Message) -> None:
        """Obey other commands at their times; an empty list stops what is being played."""
        self._timers = []
        began = time.monotonic()
        for at, later in command["changes"]:
            repeated = {**later, "repeat": command["repeat"]}
            heapq.heappush(self._timers, (began + at, next(self._number), repeated))

    def _due(self) -> None:
        while self._timers and self._timers[0][0] <= time.monotonic():
            due, _, command = heapq.heappop(self._timers)
            if command["repeat"]:
                later = due + command["repeat"]
                heapq.heappush(self._timers, (later, next(self._number), command))
            try:
                self._obey[command["do"]](command)
            except (ThinwireError, OSError) as error:
                self._tell({"event": "failed", "text": f"a scheduled change failed: {error}"})


def main(arguments: list[str]) -> None:
    """Build the hosts, and obey.

    Args:
        arguments: ``[mark, owner's process, hosts, congestion control, file descriptor of the owner's process]``.
    """
    _, _, hosts, congestion, owner = arguments
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's business
    try:
        keeper = Keeper(int(hosts), congestion)
    except ThinwireError as error:
        send(ANSWERS, {"event": "failed", "text": str(error)})
        sys.exit(1)
    try:
        keeper.serve(int(owner))
    except BrokenPipeError:
        sys.exit(1)
