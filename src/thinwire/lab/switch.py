"""Hosts in network namespaces, joined by a bridge in a namespace of its own. Runs in the keeper, without torch.

The bridge's namespace is the keeper's. Host ``i`` has ``eth0``, whose other end is ``port<i>`` there: what leaves by
``eth0`` is its up link, what leaves by ``port<i>`` its down link.
"""

import os
from collections.abc import Collection, Sequence

from thinwire.lab.errors import LabFailed
from thinwire.lab.link import Link
from thinwire.lab.namespaces import Namespace
from thinwire.lab.shaping import rate_lines

DEVICE = "eth0"
UP, DOWN = "up", "down"
DIRECTIONS = (UP, DOWN)
CONGESTION = "cubic"
_WINDOW = "4096 131072 67108864"  # a long fat link needs more than the 4 MB that a fresh namespace allows


def address(host: int) -> str:
    """The address of a host."""
    return f"10.77.{(host + 1) >> 8}.{(host + 1) & 255}"


CENTRE = "10.77.255.254"
"""The address of the bridge itself, for measuring."""


def hardware(host: int) -> str:
    """The hardware address of a host's interface; its last two bytes are the host's number."""
    return f"02:77:00:00:{host >> 8:02x}:{host & 255:02x}"


class Switch:
    """N hosts and what joins them.

    Args:
        hosts: How many.
        congestion: TCP's congestion control on every host.
    """

    def __init__(self, hosts: int, congestion: str) -> None:
        self.centre = Namespace.here()
        self.hosts = [Namespace.new() for _ in range(hosts)]
        self.links = {(host, direction): Link() for host in range(hosts) for direction in DIRECTIONS}
        self._bridges = 1
        self.centre.run(["ip", "-batch", "-"], _switch_lines(self.hosts))
        self._settle_ports(range(hosts))
        _still(self.centre)
        for host, namespace in enumerate(self.hosts):
            _still(namespace)
            namespace.run(["ip", "-batch", "-"], _host_lines(host, hosts, congestion))

    def set_links(self, links: dict[tuple[int, str], Link]) -> None:
        """Change rates and queues. What waits in a queue stays there.

        Args:
            links: The new ones, by host and direction.
        """
        together: list[str] = []
        for (host, direction), link in links.items():
            shaped = self.links[host, direction].rate is not None
            lines = rate_lines(DEVICE if direction == UP else f"port{host}", link, shaped)
            if direction == UP and lines:
                self.hosts[host].run(["tc", "-batch", "-"], lines)
            elif lines:
                together += lines
            self.links[host, direction] = link
        if together:
            self.centre.run(["tc", "-batch", "-"], together)
        self._cut_large_packets(links)

    def _cut_large_packets(self, links: dict[tuple[int, str], Link]) -> None:
        """Where frames may be lost, let no packet stand for many of them."""
        if any(link.loss for link in links.values()):
            for host, namespace in enumerate(self.hosts):
                namespace.run(["ip", "link", "set", DEVICE, "gso_max_segs", "1"])
                self.centre.run(["ip", "link", "set", f"port{host}", "gso_max_segs", "1"])

    def partition(self, groups: Sequence[Sequence[int]]) -> None:
        """Let hosts reach only hosts of their own group. No carrier is lost: frames go nowhere.

        Args:
            groups: Of hosts. Who is in none of them reaches nobody.
        """
        lines = []
        for number in range(self._bridges, len(groups)):
            lines += [f"link add switch{number} type bridge mcast_snooping 0", f"link set switch{number} up"]
        self._bridges = max(self._bridges, len(groups))
        group_of = {host: number for number, group in enumerate(groups) for host in group}
        for host in range(len(self.hosts)):
            where = f"master switch{group_of[host]}" if host in group_of else "nomaster"
            lines.append(f"link set port{host} {where}")
        self.centre.run(["ip", "-batch", "-"], lines)
        self._settle_ports({host for group in groups for host in group})

    def _settle_ports(self, hosts: Collection[int]) -> None:
        """Tell the bridge who is where. Otherwise it sends to everybody what is for somebody it has not heard yet."""
        lines = [f"fdb replace {hardware(host)} dev port{host} master static" for host in hosts]
        if lines:
            self.centre.run(["bridge", "-batch", "-"], lines)

    def counters(self) -> list[dict[str, int]]:
        """What each host's interface has sent (up) and received (down) so far: bytes and packets."""
        found = []
        for namespace in self.hosts:
            with namespace.entered(), open("/proc/thread-self/net/dev") as listing:
                line = next(line for line in listing if line.strip().startswith(f"{DEVICE}:"))
            cells = [int(cell) for cell in line.split(":")[1].split()]
            found.append({"up": cells[8], "up_packets": cells[9], "down": cells[0], "down_packets": cells[1]})
        return found

    def members(self, host: int) -> set[int]:
        """The processes that live on a host."""
        found = set()
        for pid in everybody():
            try:
                if os.stat(f"/proc/{pid}/ns/net").st_ino == self.hosts[host].identity:
                    found.add(pid)
            except OSError:
                continue  # it ended meanwhile
        return found


def everybody() -> set[int]:
    """All processes that this one can see."""
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()}


def _switch_lines(hosts: Sequence[Namespace]) -> list[str]:
    lines = ["link set lo up", "link add switch0 type bridge mcast_snooping 0"]
    for host, namespace in enumerate(hosts):
        there = f"/proc/{os.getpid()}/fd/{namespace.descriptor}"
        lines += [
            f"link add port{host} type veth peer name {DEVICE} address {hardware(host)} netns {there}",
            f"link set port{host} master switch0 up",
        ]
    neighbours = [f"neigh add {address(h)} lladdr {hardware(h)} dev switch0 nud permanent" for h in range(len(hosts))]
    return [*lines, "link set switch0 up", f"address add {CENTRE}/16 dev switch0", *neighbours]


def _host_lines(host: int, hosts: int, congestion: str) -> list[str]:
    # Neighbours are known from the start: no ARP is counted, delayed, or forgotten during a partition.
    neighbours = [
        f"neigh add {address(peer)} lladdr {hardware(peer)} dev {DEVICE} nud permanent"
        for peer in range(hosts)
        if peer != host
    ]
    return [
        "link set lo up",
        f"link set {DEVICE} up",
        f"address add {address(host)}/16 dev {DEVICE}",
        f"route change 10.77.0.0/16 dev {DEVICE} src {address(host)} congctl {congestion}",
        *neighbours,
    ]


def _still(namespace: Namespace) -> None:
    """No IPv6, which would talk by itself, and windows wide enough for long links."""
    settings = {"ipv6/conf/all/disable_ipv6": "1", "ipv4/tcp_wmem": _WINDOW, "ipv4/tcp_rmem": _WINDOW}
    with namespace.entered():
        for name, value in settings.items():
            try:
                with open(f"/proc/sys/net/{name}", "w") as setting:
                    setting.write(value)
            except FileNotFoundError:
                continue  # a kernel without IPv6
            except OSError as error:
                raise LabFailed(f"could not set net/{name} in a namespace of the lab: {error.strerror}") from error
