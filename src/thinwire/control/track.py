"""One quantity through time: the median of what was seen since it last changed.

A single odd measurement moves a median little. A step of the network moves many measurements to one side, one behind
the other: then everything older is forgotten. How far off is odd is learnt from how far apart measurements usually are.
"""

import math
from dataclasses import dataclass, replace
from statistics import median

SMALLEST, LARGEST = 1e-12, 1e6
"""What a measurement may be. It is in seconds, or in seconds for each byte or element; anything else says nothing."""


def sensible(value: float) -> bool:
    """Whether a number can be a measurement."""
    return isinstance(value, int | float) and math.isfinite(value) and SMALLEST <= value <= LARGEST


@dataclass(frozen=True, kw_only=True)
class Tracker:
    """A robust memory of one positive quantity. A value: `seen` returns another one.

    Args:
        logs: Logarithms of what was seen since the last change, the newest last.
        memory: How many of them are remembered.
        run: So many in a row, all far off to the same side, are a change.
        step: The least factor that is far off.
        spread: So many times the usual distance from the median is far off, too.
    """

    logs: tuple[float, ...] = ()
    memory: int = 16
    run: int = 3
    step: float = 1.25
    spread: float = 4.0

    @property
    def known(self) -> bool:
        """Whether anything was seen."""
        return bool(self.logs)

    @property
    def value(self) -> float:
        """The quantity.

        Raises:
            ValueError: Nothing was seen yet.
        """
        if not self.logs:
            raise ValueError("nothing was measured yet; ask whether it is known first")
        return math.exp(median(self.logs))

    def otherwise(self, value: float) -> float:
        """The quantity, or ``value`` where nothing was seen."""
        return self.value if self.logs else value

    @property
    def doubt(self) -> float:
        """The usual relative distance of a measurement from the quantity: half of them are nearer."""
        if len(self.logs) < 2:
            return math.inf
        middle = median(self.logs)
        return math.expm1(median(abs(each - middle) for each in self.logs))

    def seen(self, value: float) -> "Tracker":
        """What is known after one more measurement; one that makes no sense is as none."""
        if not sensible(value):
            return self
        logs = (*self.logs, math.log(value))
        older, newest = logs[: -self.run], logs[-self.run :]
        if older and self._changed(older, newest):
            return replace(self, logs=newest)
        return replace(self, logs=logs[-self.memory :])

    def mixed(self, value: float) -> "Tracker":
        """What is known after a measurement too vague to tell a change."""
        return replace(self, logs=(*self.logs, math.log(value))[-self.memory :]) if sensible(value) else self

    def began_anew(self, before: "Tracker") -> bool:
        """Whether the measurement behind ``before`` was the last of a change."""
        return self is not before and len(self.logs) < min(len(before.logs) + 1, self.memory)

    def _changed(self, older: tuple[float, ...], newest: tuple[float, ...]) -> bool:
        middle = median(older)
        usual = median(abs(each - middle) for each in older)
        far = max(math.log(self.step), self.spread * usual)
        return all(each > middle + far for each in newest) or all(each < middle - far for each in newest)
