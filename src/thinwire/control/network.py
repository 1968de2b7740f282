"""What the wire is like: seconds for each round, and for each byte, from what exchanges cost that were needed anyway.

Every step ends with a vote: a note of a few bytes from everybody to everybody. The rank that comes last to it waits for
nobody, so the shortest time that any rank needed is the wire's alone: that is a round. What an exchange takes
beyond its rounds, its bytes take.
"""

from dataclasses import dataclass, field, replace

from thinwire.control.track import Tracker, sensible

CLEAR = 0.2
"""The part of an exchange that bytes must take for it to say clearly how long they take."""
FAINT = (0.01, 0.1)
"""The least and the most that they must take for it to say anything; in between, as much as rounds are in doubt."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A wire in two numbers.

    Args:
        latency: Seconds of a round: a message there and its answer back.
        per_byte: Seconds of a byte that one rank sends; the inverse of the bandwidth.
    """

    latency: float
    per_byte: float

    @staticmethod
    def of(milliseconds: float, megabits: float) -> "Network":
        """A network as one speaks of it: one-way delay and rate of a link."""
        return Network(latency=2e-3 * milliseconds, per_byte=8e-6 / megabits)

    def seconds(self, rounds: float, bytes_sent: float) -> float:
        """What an exchange takes."""
        return rounds * self.latency + bytes_sent * self.per_byte

    def __str__(self) -> str:
        """As one speaks of it."""
        return f"{1e3 * self.latency:.3g} ms a round, {_rate(8 / self.per_byte)}"


def _rate(bits: float) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6)):
        if bits >= size:
            return f"{bits / size:.3g} {unit}"
    return f"{bits / 1e3:.3g} kbit/s"


@dataclass(frozen=True, kw_only=True)
class Exchanged:
    """All exchanges of one step, together.

    Args:
        rounds: Rounds that waited for each other, as a ring's rounds count.
        bytes_sent: By the busiest rank.
        seconds: On the rank that needed longest.
    """

    rounds: float
    bytes_sent: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Sense:
    """What is known of a wire. A value: `felt` and `exchanged` return another one."""

    latency: Tracker = field(default_factory=Tracker)
    per_byte: Tracker = field(default_factory=Tracker)

    @property
    def known(self) -> bool:
        """Whether both numbers are known."""
        return self.latency.known and self.per_byte.known

    @property
    def network(self) -> Network:
        """The wire as it is now."""
        return Network(latency=self.latency.value, per_byte=self.per_byte.value)

    def felt(self, round_trip: float) -> "Sense":
        """After one more round that nobody was late to."""
        return replace(self, latency=self.latency.seen(round_trip))

    def exchanged(self, done: Exchanged) -> "Sense":
        """After one more step's exchanges."""
        if not self.latency.known or not sensible(done.seconds) or not done.bytes_sent > 0:
            return self
        # A round cannot have taken longer than all of them together: what looks so is noise of the rounds.
        waiting = min(done.rounds * self.latency.value, done.seconds)
        moving = done.seconds - waiting
        least = min(max(1.5 * self.latency.doubt, FAINT[0]), FAINT[1]) * done.seconds
        if moving < least:
            # The bytes are lost in the rounds' noise. That is a bound on what they took, and speaks if it is a new one.
            if self.per_byte.known and self.per_byte.value * done.bytes_sent <= 2 * least:
                return self
            return replace(self, per_byte=self.per_byte.seen(least / done.bytes_sent))
        sample = moving / done.bytes_sent
        expected = self.per_byte.otherwise(0.0) * done.bytes_sent
        # Between faint and clear, noise makes any run of odd ones: they move the median, and are no change.
        clear = max(moving, expected / 2) >= CLEAR * done.seconds
        return replace(self, per_byte=self.per_byte.seen(sample) if clear else self.per_byte.mixed(sample))
