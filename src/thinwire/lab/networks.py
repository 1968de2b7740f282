"""Networks with names, and networks described in a line."""

import difflib
from dataclasses import dataclass, replace

from thinwire.lab.errors import LabRefused
from thinwire.lab.link import Link, read_options
from thinwire.lab.schedules import Change, Schedule, paper_c1, paper_c2, phone


@dataclass(frozen=True, kw_only=True)
class Network:
    """What every host's access link is like, and how that changes.

    Attributes:
        name: What to call it.
        path: From one host to another. Its delay and loss come half from the sender's up link and half from the
            receiver's down link.
        up: The rate of the up links where it is not the path's; None: it is.
        schedule: Changes while something runs.
        about: In a line.
    """

    name: str
    path: Link
    up: float | None = None
    schedule: Schedule | None = None
    about: str = ""

    def links(self) -> tuple[Link, Link]:
        """The up link and the down link of every host."""
        return halves(self.path, self.up)


def halves(path: Link, up_rate: float | None = None) -> tuple[Link, Link]:
    """Up and down link which, one behind the other, are like a path.

    Args:
        path: From host to host.
        up_rate: The rate of the up link, where it differs.
    """
    loss = 1.0 - (1.0 - path.loss) ** 0.5
    half = replace(path, delay=path.delay / 2, jitter=path.jitter / 2, loss=loss)
    return replace(half, rate=up_rate or path.rate), half


def network(net: "str | Network") -> Network:
    """The network of a name, or of a description such as ``rate=100mbit delay=20ms loss=1%``.

    Args:
        net: Either; a network is returned as it is.

    Returns:
        The network.

    Raises:
        LabRefused: There is none.
    """
    if isinstance(net, Network):
        return net
    if net in NETWORKS:
        return NETWORKS[net]
    if "=" in net:
        return Network(name=net, path=Link().changed(**read_options(net)), about="described")
    near = difflib.get_close_matches(net, NETWORKS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(NETWORKS)}"
    raise LabRefused(f"there is no network {net!r}; {hint} Or describe one: 'rate=100mbit delay=20ms loss=1%'")


def _named(name: str, path: str, about: str, schedule: Schedule | None = None, up: float | None = None) -> Network:
    return Network(name=name, path=Link().changed(**read_options(path)), about=about, schedule=schedule, up=up)


_FLAPS = Schedule(
    changes=(
        Change(at=8.0, who=1, cut=True),
        Change(at=9.5, who=1, cut=False),
        Change(at=16.0, options={"rate": 5e6}),
        Change(at=20.0, options={"rate": 50e6}),
    ),
    repeat=24.0,
)

NETWORKS: dict[str, Network] = {
    each.name: each
    for each in (
        _named("unlimited", "rate=unlimited", "as fast as this machine moves bytes"),
        _named("lan-10g", "rate=10gbit", "a good cluster; most machines cannot carry it for many hosts"),
        _named("lan-1g", "rate=1gbit", "a rack with plain Ethernet"),
        _named("office-100m", "rate=100mbit", "desktops on an old switch"),
        _named("campus-300m-2ms", "rate=300mbit delay=2ms", "buildings of one campus"),
        _named("wan-100m-20ms", "rate=100mbit delay=20ms", "two cities"),
        _named("continent-50m-50ms", "rate=50mbit delay=50ms", "two continents' ends"),
        _named("home-20m-10ms-jitter", "rate=20mbit delay=10ms jitter=5ms", "homes on cable, half as fast up", up=10e6),
        _named("lte", "rate=20mbit delay=25ms jitter=8ms", "telephones that move (made up, seeded)", phone(), up=8e6),
        _named("flaky", "rate=50mbit delay=15ms loss=0.5%", "loses frames; host 1 vanishes now and then", _FLAPS),
        _named("c1", "rate=500mbit delay=1ms", "flexible communication, C1: rates / 50, an epoch a second", paper_c1()),
        _named("c2", "rate=500mbit delay=1ms", "flexible communication, C2: rates / 50, an epoch a second", paper_c2()),
    )
}
