"""What a controller decided in one step and why: for people, and for the log of events."""

from dataclasses import asdict, dataclass
from typing import Any

from thinwire.control.menu import Choice
from thinwire.control.network import Network


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One step's decision.

    Args:
        step: Steps whose notes were read.
        choice: What is in force from now on.
        before: What was in force.
        reason: Why, in a few words.
        network: The wire as it seems, if it is known.
        gain: The share of the energy that is expected to go through.
        step_seconds: Predicted for the next step.
        exchange_seconds: Predicted for its exchanges.
        second: The best candidate of another family.
        lead: The score over that of the second; 1.1 is ten percent better.
        predicted: Seconds of the exchanges of the step that is over, as they had been predicted; 0 if they were not.
        measured: What they took; 0 if that is not known.
    """

    step: int
    choice: Choice
    before: Choice
    reason: str
    network: Network | None = None
    gain: float = 1.0
    step_seconds: float = 0.0
    exchange_seconds: float = 0.0
    second: Choice | None = None
    lead: float = 1.0
    predicted: float = 0.0
    measured: float = 0.0

    @property
    def switched(self) -> bool:
        """Whether another plan is in force from now on."""
        return self.choice != self.before

    @property
    def explanation(self) -> str:
        """The decision in a few sentences."""
        if self.network is None:
            return f"step {self.step}: {self.choice}, {self.reason}."
        kept = "switched to" if self.switched else "staying with"
        text = (
            f"step {self.step}: {kept} {self.choice}, {self.reason}. The wire: {self.network}. Predicted: "
            f"{_time(self.step_seconds)} a step, {_time(self.exchange_seconds)} of it exchanges, with "
            f"{100 * self.gain:.3g} % of the energy."
        )
        if self.second is not None:
            text += f" Second is {self.second}, {_lead(self.lead)}."
        if self.measured and self.predicted:
            text += f" The last exchanges took {_time(self.measured)}, predicted were {_time(self.predicted)}."
        return text

    def record(self) -> dict[str, Any]:
        """The decision as plain data."""
        plain = asdict(self)
        for name in ("choice", "before", "second", "network"):
            value = getattr(self, name)
            plain[name] = None if value is None else str(value)
        wire = None if self.network is None else asdict(self.network)
        return {"kind": "decision", **plain, "wire": wire, "switched": self.switched, "density": self.choice.density}


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def _lead(lead: float) -> str:
    if lead >= 1.0:
        return f"{100 * (lead - 1):.2g} % behind"
    return f"{100 * (1 / lead - 1):.2g} % ahead, which is not enough to switch"
