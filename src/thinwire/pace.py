"""How long an exchange may take: from its bytes and rounds, and from how fast earlier ones were."""

from collections import deque
from collections.abc import Callable

_SMALL = 4096
"""Below so many bytes an exchange says more about latency than about bandwidth."""


class Pace:
    """A cautious memory of speeds, and the deadlines that follow from it.

    A deadline is ``floor + COLLAPSE x (bytes / slow speed + rounds x slow round)``, where slow is the slowest of the
    last exchanges, and never more than ``patience``, which it is before anything was measured. Too early a deadline
    kills a healthy run on a wire that has become thin; too late a one only delays the bad news, and a rank that
    dies or gives up is noticed long before. So a wire may become COLLAPSE times slower and is not taken for dead.
    """

    COLLAPSE = 100.0

    def __init__(self, *, floor: float = 30.0, patience: float = 1800.0, memory: int = 64) -> None:
        """Set the bounds.

        Args:
            floor: Seconds every exchange gets in any case.
            patience: Seconds to wait for a rank to show up, and for exchanges before any speed is known.
            memory: How many exchanges are remembered.
        """
        self.floor = floor
        self.patience = patience
        self.listener: Callable[[int, int, float, bool], None] | None = None
        self._speeds: deque[float] = deque(maxlen=memory)
        self._rounds: deque[float] = deque(maxlen=memory)

    def observe(self, bytes_sent: int, rounds: int, seconds: float, *, patient: bool = False) -> None:
        """Remember one exchange that ended well; of a patient one, which waits for late ranks, only tell listeners."""
        if self.listener is not None:
            self.listener(bytes_sent, rounds, seconds, patient)
        if patient or seconds <= 0 or rounds <= 0:
            return
        if bytes_sent > _SMALL:
            self._speeds.append(bytes_sent / seconds)
        else:
            self._rounds.append(seconds / rounds)

    def allowance(self, bytes_sent: int, rounds: int) -> float:
        """Seconds that an exchange of so many bytes and rounds may take."""
        if not self._speeds:
            return self.patience
        expected = bytes_sent / min(self._speeds) + rounds * max(self._rounds, default=0.0)
        return min(self.floor + self.COLLAPSE * expected, max(self.patience, self.floor))
