"""Whether the links are what they were set to be, measured before anything else runs on them."""

from dataclasses import dataclass

from thinwire.lab import quantities
from thinwire.lab.errors import LabFailed
from thinwire.lab.keeping import Line
from thinwire.lab.link import Link

_ROUNDS = (0.1, 0.2, 0.4, 0.8)
_QUESTIONS = (1, 3, 9, 27)
_SLACK = 1e-3
_SHORTFALL, _EXCESS = 0.93, 1.05
Links = dict[tuple[int, str], Link]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A link's rate as measured, beside what was set.

    Attributes:
        host: Whose link.
        direction: Up or down.
        wanted: Bits per second that were set.
        found: Bits per second that were carried.
    """

    host: int
    direction: str
    wanted: float
    found: float

    @property
    def fits(self) -> bool:
        """Whether the link is what it was set to be."""
        return _SHORTFALL * self.wanted <= self.found <= _EXCESS * self.wanted

    def __str__(self) -> str:
        wanted, found = quantities.show_rate(self.wanted), quantities.show_rate(self.found)
        return f"host {self.host}'s {self.direction} link was set to {wanted} and carries {found}"


def rates(line: Line, links: Links) -> list[Reading]:
    """Have every link carry what it was set to: first all up links at once, then all down links.

    A machine may be busy with something else for a moment, so what is too slow is tried again, for longer.

    Args:
        line: To the keeper.
        links: What is set.

    Returns:
        What was found, link by link.

    Raises:
        LabFailed: A link carries more than it was set to, or the machine carries less.
    """
    found: list[Reading] = []
    for direction in ("up", "down"):
        ways = [way for way, link in links.items() if way[1] == direction and link.rate is not None]
        readings: list[Reading] = []
        for seconds in _ROUNDS if ways else ():
            carried = line.ask("flood", ways=ways, seconds=seconds)
            readings = [
                Reading(host=host, direction=direction, wanted=links[host, direction].rate or 0.0, found=rate)
                for (host, _), rate in zip(ways, carried, strict=True)
            ]
            fits = all(reading.fits for reading in readings)
            if fits or (seconds > _ROUNDS[0] and any(reading.found > _EXCESS * reading.wanted for reading in readings)):
                break
        _judge(readings)
        found += readings
    return found


def _judge(readings: list[Reading]) -> None:
    worst = max(readings, key=lambda reading: abs(reading.found / reading.wanted - 1), default=None)
    if worst is None or worst.fits:
        return
    if worst.found > worst.wanted:
        raise LabFailed(f"{worst}: shaping did not take. Nothing was run.")
    total = quantities.show_rate(sum(reading.found for reading in readings))
    raise LabFailed(
        f"{worst} while all hosts use theirs: this machine, as busy as it is now, moves {total} in all and is too slow "
        f"for this network. Nothing was run. Use fewer hosts or a lower rate."
    )


def round_trips(line: Line, links: Links, hosts: int) -> None:
    """Have every link's delay measured, in a ring.

    Args:
        line: To the keeper.
        links: What is set.
        hosts: How many.

    Raises:
        LabFailed: A round trip is not what it was set to be.
    """
    pairs = [(host, (host + 1) % hosts) for host in range(hosts)]
    wrong: list[str] = []
    for count in _QUESTIONS:
        found = line.ask("round_trips", pairs=pairs, count=count)
        wrong = [wrong_trip(links, pair, trips) for pair, trips in zip(pairs, found, strict=True)]
        if not any(wrong):
            return
    raise LabFailed(f"{next(text for text in wrong if text)}. Nothing was run.")


def wrong_trip(links: Links, pair: tuple[int, int], trips: list[float]) -> str:
    """What is wrong with a round trip; empty if nothing is.

    Args:
        links: What is set.
        pair: Two hosts.
        trips: What was measured, in seconds. The shortest counts, as a busy machine makes some longer.
    """
    ways = [links[host, direction] for host in pair for direction in ("up", "down")]
    wanted, jitter = sum(way.delay for way in ways), sum(way.jitter for way in ways)
    found = min(trips, default=None)
    if found is not None and abs(found - wanted) <= max(_SLACK, 0.05 * wanted) + jitter:
        return ""
    was = "none came back" if found is None else f"it took {quantities.show_time(found)}"
    return f"from host {pair[0]} to {pair[1]} and back was set to {quantities.show_time(wanted)}, and {was}"
