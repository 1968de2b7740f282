"""A cluster of emulated hosts on this machine, from the outside.

with lab.cluster(hosts=4, net="wan-100m-20ms") as c:
    job = c.start([sys.executable, "train.py"])
    c.set_link(2, rate="5mbit")
    print([ended.code for ended in job.wait()])
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import TracebackType
from typing import Any, Self

from thinwire.lab import verify
from thinwire.lab.channel import Message
from thinwire.lab.errors import LabRefused
from thinwire.lab.jobs import Ended, Job, OnLine, Program, processes
from thinwire.lab.keeping import Line
from thinwire.lab.link import Link
from thinwire.lab.networks import Network, halves, network
from thinwire.lab.schedules import Schedule
from thinwire.lab.switch import CONGESTION

_MOST = 64


@dataclass(frozen=True, kw_only=True)
class Count:
    """What a host's interface has counted.

    Attributes:
        up: Bytes sent.
        down: Bytes received.
        up_packets: Packets sent. A packet may stand for many frames, with one header counted.
        down_packets: Packets received.
    """

    up: int
    down: int
    up_packets: int
    down_packets: int

    def __sub__(self, earlier: "Count") -> "Count":
        return Count(
            up=self.up - earlier.up,
            down=self.down - earlier.down,
            up_packets=self.up_packets - earlier.up_packets,
            down_packets=self.down_packets - earlier.down_packets,
        )


class Cluster:
    """Hosts in network namespaces, each with its own access link. Made by `cluster`; gone when closed.

    Everything can be called from any thread, while jobs run.

    Args:
        hosts: How many.
        net: The network that they have in the beginning.
        congestion: TCP's congestion control.
    """

    def __init__(self, hosts: int, net: Network, congestion: str = CONGESTION) -> None:
        if not 2 <= hosts <= _MOST:
            raise LabRefused(f"asked for {hosts} hosts; write 2 to {_MOST}")
        self.hosts = hosts
        self.net = net
        self._jobs: list[Job] = []
        self._line = Line(hosts, congestion, self._on_event)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill what runs and take everything down."""
        self._line.close()

    # The network -------------------------------------------------------------------------------------------------

    def set_link(self, host: int, direction: str = "both", **options: str | float | None) -> None:
        """Change a host's access link, while it is in use. What is under way stays under way.

        Args:
            host: Whose.
            direction: ``up`` (from the host), ``down`` (to it), or ``both``.
            **options: What changes: see `Link`. A path has the delay of the sender's up link and of the receiver's
                down link.

        Raises:
            LabRefused: There is no such host, direction or option.
        """
        self._check(host)
        if direction not in ("up", "down", "both"):
            raise LabRefused(f"a link has no direction {direction!r}; write up, down or both")
        plain = Link().changed(**options)
        self._line.ask("links", links=[[host, direction, {name: getattr(plain, name) for name in options}]])

    def set_net(self, net: str | Network) -> None:
        """Change every host's access link to that of another network. Schedules are not touched.

        Args:
            net: Its name, or a description.
        """
        self.net = network(net)
        self._line.ask("links", links=_all_links(self.hosts, *self.net.links()))

    def cut(self, host: int) -> None:
        """Cut a host off. Its frames go nowhere, and none reach it; its interface does not notice."""
        self._check(host)
        self._line.ask("cut", host=host, off=True)

    def mend(self, host: int) -> None:
        """Let a host back that was cut off."""
        self._check(host)
        self._line.ask("cut", host=host, off=False)

    def flap(self, host: int, seconds: float, times: int = 1, between: float = 1.0) -> None:
        """Cut a host off for a while, perhaps again and again. Returns when it is back for good.

        Args:
            host: Which one.
            seconds: How long each time.
            times: How often.
            between: Seconds from one time to the next.
        """
        for number in range(times):
            time.sleep(between if number else 0.0)
            self.cut(host)
            time.sleep(seconds)
            self.mend(host)

    def partition(self, *groups: Sequence[int]) -> None:
        """Let hosts reach only their own group.

        Args:
            *groups: Of hosts. Who is in none of them reaches nobody. None at all: everybody reaches everybody.
        """
        for host in (host for group in groups for host in group):
            self._check(host)
        self._line.ask("partition", groups=[list(group) for group in groups] or [list(range(self.hosts))])

    def kill(self, host: int) -> int:
        """Kill every process on a host with SIGKILL, as a power cut would. The host itself stays.

        Returns:
            How many processes there were.
        """
        self._check(host)
        return int(self._line.ask("kill", host=host))

    def play(self, schedule: Schedule | None) -> None:
        """Change the network by a schedule, from now on.

        Args:
            schedule: The changes; None: stop the one that is being played.
        """
        changes = [] if schedule is None else _commands(schedule, self.hosts, self.net)
        self._line.ask("play", changes=changes, repeat=schedule.repeat if schedule else None)

    def counters(self) -> list[Count]:
        """What each host's interface has counted so far."""
        return [Count(**found) for found in self._line.ask("counters")]

    # Programs ----------------------------------------------------------------------------------------------------

    def start(
        self,
        argv: Sequence[str],
        *,
        ranks_per_host: int = 1,
        env: Mapping[str, str] | None = None,
        on_line: OnLine | None = None,
    ) -> Job:
        """Start a program on every host, with the environment that torchrun would give it.

        Args:
            argv: Its words.
            ranks_per_host: How many of it on each host.
            env: More of the environment.
            on_line: Called with ``(rank, "out" or "err", line)`` while somebody waits for the job.

        Returns:
            The running job.
        """
        program = Program(argv=argv, env=env or {}, ranks_per_host=ranks_per_host, network=self.net.name)
        number = len(self._jobs)
        job = Job(number, program.places(self.hosts), lambda: self._line.ask("kill", job=number), on_line)
        self._jobs.append(job)
        self._line.ask("start", processes=processes(number, program, self.hosts))
        return job

    def run(self, argv: Sequence[str], *, timeout: float | None = None, **options: Any) -> list[Ended]:
        """Start a program on every host, and wait for it.

        Args:
            argv: Its words.
            timeout: Seconds; None: for ever.
            **options: As of `start`.

        Returns:
            What became of each rank.
        """
        with self.start(argv, **options) as job:
            return job.wait(timeout)

    # Measuring ---------------------------------------------------------------------------------------------------

    def goodput(self, pairs: Sequence[tuple[int, int]], seconds: float = 1.0) -> list[float]:
        """Bits of payload per second that one TCP stream carries from host to host, for all pairs at the same time.

        Args:
            pairs: From whom to whom.
            seconds: How long.
        """
        return list(self._line.ask("goodput", timeout=60.0 + seconds, pairs=list(pairs), seconds=seconds))

    def round_trips(self, pairs: Sequence[tuple[int, int]], count: int = 5) -> list[float | None]:
        """The median round trip of a small datagram, in seconds; None where none came back.

        Args:
            pairs: Who asks whom.
            count: How often.
        """
        found = self._line.ask("round_trips", pairs=list(pairs), count=count)
        return [median(trips) if trips else None for trips in found]

    def lost(self, sender: int, receiver: int, count: int = 10_000) -> int:
        """How many of so many small datagrams do not arrive.

        Args:
            sender: A host.
            receiver: Another.
            count: Datagrams.
        """
        return int(self._line.ask("lost", timeout=60.0 + 1e-3 * count, pair=[sender, receiver], count=count))

    # -------------------------------------------------------------------------------------------------------------

    def open(self, check: bool = True) -> None:
        """Set the network, and see that it is what it should be. `cluster` has done it.

        Args:
            check: Measure.
        """
        up, down = self.net.links()
        links = {(host, way): link for host in range(self.hosts) for way, link in (("up", up), ("down", down))}
        if check and any(link.rate is not None for link in links.values()):
            fast = [replace(link, delay=0.0, jitter=0.0, loss=0.0) for link in (up, down)]
            self._line.ask("links", links=_all_links(self.hosts, *fast))
            verify.rates(self._line, links)
        self.set_net(self.net)
        if check:
            verify.round_trips(self._line, links, self.hosts)

    def _check(self, host: int) -> None:
        if not 0 <= host < self.hosts:
            raise LabRefused(f"there is no host {host}; this cluster has 0 to {self.hosts - 1}")

    def _on_event(self, event: Message) -> None:
        if "job" in event:
            self._jobs[event["job"]].events.put(event)
        else:
            for job in self._jobs:
                job.events.put(event)


def cluster(hosts: int, net: str | Network = "lan-1g", *, check: bool = True, congestion: str = CONGESTION) -> Cluster:
    """Make a cluster: N hosts with access links as in a network, each link measured before it is used.

    Args:
        hosts: How many.
        net: A network's name, or a description such as ``rate=100mbit delay=20ms``.
        check: Measure first, and fail if a link is not what it was set to be.
        congestion: TCP's congestion control on the hosts.

    Returns:
        The cluster: close it, or use it in a ``with``.

    Raises:
        LabRefused: The request has no meaning, or cannot be emulated faithfully.
        LabMissing: This machine lacks rights or tools.
        LabFailed: A link is not what it was set to be.
    """
    made = Cluster(hosts, network(net), congestion)
    try:
        made.open(check)
    except BaseException:
        made.close()
        raise
    return made


def run_in(net: str | Network, hosts: int, argv: Sequence[str], **options: Any) -> list[Ended]:
    """Run a program on fresh hosts of a network, with the network's schedule, and take everything down again.

    Args:
        net: A network's name, or a description.
        hosts: How many.
        argv: The program's words.
        **options: ``schedule`` (instead of the network's own), ``env``, ``on_line``, ``ranks_per_host``, ``timeout``
            as of `Cluster.run`; ``check`` as of `cluster`.

    Returns:
        What became of each rank.
    """
    schedule = options.pop("schedule", None)
    with cluster(hosts, net, check=options.pop("check", True)) as made:
        timeout = options.pop("timeout", None)
        with made.start(argv, **options) as job:
            made.play(schedule or made.net.schedule)
            return job.wait(timeout)


def _all_links(hosts: int, up: Link, down: Link) -> list[list[Any]]:
    return [[host, way, vars(link)] for host in range(hosts) for way, link in (("up", up), ("down", down))]


def _commands(schedule: Schedule, hosts: int, net: Network) -> list[list[Any]]:
    """A schedule as commands of the keeper with their times."""
    path, commands = net.path, []
    for change in schedule.changes:
        if change.who >= hosts:
            raise LabRefused(f"the schedule speaks of host {change.who}; this cluster has 0 to {hosts - 1}")
        command: Message
        if change.kill:
            command = {"do": "kill", "host": change.who}
        elif change.cut is not None:
            command = {"do": "cut", "host": change.who, "off": change.cut}
        elif change.who >= 0:
            command = {"do": "links", "links": [[change.who, change.direction, dict(change.options)]]}
        else:
            path = path.changed(**change.options)
            ways = dict(zip(("up", "down"), halves(path), strict=True))
            chosen = ways if change.direction == "both" else {change.direction: ways[change.direction]}
            new = {way: {name: getattr(link, name) for name in change.options} for way, link in chosen.items()}
            command = {"do": "links", "links": [[host, way, new[way]] for host in range(hosts) for way in new]}
        commands.append([change.at, command])
    return commands
