"""A network as it was set, beside what TCP and a round trip find: the table of `thinwire lab check`."""

from dataclasses import dataclass

from thinwire.lab.clusters import Cluster
from thinwire.lab.networks import Network

PAYLOAD = 1448 / 1514
"""The part of a full frame that is TCP's payload."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """One path, as set and as found.

    Attributes:
        sender: A host.
        receiver: Another.
        rate: Bits per second that were set; None: no limit.
        found_rate: Bits per second of frames that carried one TCP stream, while the other pairs had theirs.
        round_trip: Seconds that were set.
        found_round_trip: Seconds, on links that carry nothing else; None where nothing came back.
    """

    sender: int
    receiver: int
    rate: float | None
    found_rate: float
    round_trip: float
    found_round_trip: float | None


def check(cluster: Cluster, seconds: float = 2.0) -> list[Checked]:
    """Measure a cluster: round trips first, then one TCP stream for each pair of hosts, then the other way.

    Args:
        cluster: One that nothing else runs on.
        seconds: Of each of the two ways.

    Returns:
        The paths of disjoint pairs of hosts, in both directions.
    """
    there = [(host, host + 1) for host in range(0, cluster.hosts - 1, 2)]
    back = [(receiver, sender) for sender, receiver in there]
    found = []
    for pairs in (there, back):
        trips = cluster.round_trips(pairs, 9)
        speeds = cluster.goodput(pairs, seconds)
        for (sender, receiver), trip, speed in zip(pairs, trips, speeds, strict=True):
            found.append(
                Checked(
                    sender=sender,
                    receiver=receiver,
                    rate=path_rate(cluster.net),
                    found_rate=speed / PAYLOAD,
                    round_trip=2 * cluster.net.path.delay,
                    found_round_trip=trip,
                )
            )
    return found


def path_rate(net: Network) -> float | None:
    """The rate from one host to another."""
    rates = [link.rate for link in net.links() if link.rate is not None]
    return min(rates, default=None)
