"""When the statistics say that this is no time to save bytes.

Gradients that suddenly grow, or a loss that does, mark phases in which what is left out hurts for good (Accordion,
GraVAC): then more goes through for a while. And debts that are far larger than a gradient are old: then they are paid.
"""

import math
from dataclasses import dataclass, replace
from statistics import median


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What was seen of the training lately. A value: `after` returns another one.

    Args:
        energies: Logarithms of the gradient's energy.
        losses: As the user told them.
        odd: Steps in a row that were far off.
        critical: So many steps more are critical.
        stale: Debts are old, and are being paid.
        memory: Steps that are remembered.
        calm: Steps that a critical phase lasts beyond the last sign of it.
        age: Debts this many times as long as a gradient are old.
    """

    energies: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    odd: int = 0
    critical: int = 0
    stale: bool = False
    memory: int = 16
    calm: int = 10
    age: float = 64.0

    def after(self, fresh: float, owed: float, loss: float) -> "Guard":
        """After one more step.

        Args:
            fresh: Energy of its gradient.
            owed: Energy of what was owed with it.
            loss: Its loss. Each of them NaN where it is not known.
        """
        known = math.isfinite(fresh) and fresh > 0.0
        energy = math.log(fresh) if known else math.nan
        odd = (known and _jumped(self.energies, energy, math.log(4.0))) or (
            math.isfinite(loss) and _jumped(self.losses, loss, 0.2 * abs(median(self.losses or (loss,))))
        )
        count = self.odd + 1 if odd else 0
        # One odd step is chance; the second one in a row is a phase.
        critical = self.calm if count >= 2 else max(0, self.critical - 1)
        return replace(
            self,
            energies=(*self.energies, energy)[-self.memory :] if known else self.energies,
            losses=(*self.losses, loss)[-self.memory :] if math.isfinite(loss) else self.losses,
            odd=count,
            critical=critical,
            stale=self._is_stale(fresh, owed),
        )

    def _is_stale(self, fresh: float, owed: float) -> bool:
        if not (math.isfinite(fresh) and math.isfinite(owed)) or fresh <= 0.0:
            return self.stale
        limit = self.age / 2 if self.stale else self.age
        return owed > limit * limit * fresh

    @property
    def floor(self) -> float:
        """The least gain that is allowed now."""
        return 0.8 if self.stale else 0.5 if self.critical else 0.0

    @property
    def reason(self) -> str:
        """Why, in words; empty if all is well."""
        if self.stale:
            return "debts have grown old and are being paid"
        return "gradients or loss have jumped, so more goes through for a while" if self.critical else ""


def _jumped(before: tuple[float, ...], now: float, least: float) -> bool:
    """Whether a value lies far above those before it; falling is no jump."""
    if len(before) < 4:
        return False
    middle = median(before)
    usual = median(abs(each - middle) for each in before)
    return now > middle + max(least, 6.0 * usual)
