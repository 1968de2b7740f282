"""A plan: one part from each of the four kinds, and how the ledger remembers. The only arrow from control to data."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from thinwire.agreements import AGREEMENTS, Own
from thinwire.codecs import CODECS, Delta
from thinwire.errors import PlanError
from thinwire.exchanges import EXCHANGES, AllGather
from thinwire.protocols import Agreement, Codec, Exchange, Selector
from thinwire.registry import Table, unknown
from thinwire.selectors import SELECTORS


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """How the ledger remembers what was not sent.

    Args:
        momentum: 0 for plain error feedback; otherwise each rank keeps a velocity of its own and owes that instead of
            the gradient (momentum correction of Deep Gradient Compression). The optimizer must then have no
            first moment of its own: SGD without momentum, AdamW with beta1 = 0.
        masking: With momentum, also forget the velocity of what was sent, so that old directions are not sent twice.
    """

    momentum: float = 0.0
    masking: bool = True

    def __post_init__(self) -> None:
        """Check the options."""
        if not isinstance(self.momentum, int | float) or not 0.0 <= self.momentum < 1.0:
            raise PlanError(f"Feedback(momentum={self.momentum!r}): momentum is a number from 0 to below 1")
        if not isinstance(self.masking, bool):
            raise PlanError(f"Feedback(masking={self.masking!r}): masking is True or False")


_TABLES: dict[str, Table[Any]] = {
    "selector": SELECTORS,
    "agreement": AGREEMENTS,
    "codec": CODECS,
    "exchange": EXCHANGES,
}
_KINDS: dict[str, type] = {"selector": Selector, "agreement": Agreement, "codec": Codec, "exchange": Exchange}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One answer to each of the four questions.

    Args:
        selector: What is worth sending.
        agreement: Whose coordinates.
        codec: How coordinates look on the wire.
        exchange: How messages meet.
        feedback: How the ledger remembers the rest.

    Raises:
        PlanError: The parts do not fit together; the message says which would.
    """

    selector: Selector
    agreement: Agreement = field(default_factory=Own)
    codec: Codec = field(default_factory=Delta)
    exchange: Exchange = field(default_factory=AllGather)
    feedback: Feedback = field(default_factory=Feedback)

    def __post_init__(self) -> None:
        """Check that every part is of its kind, and that the parts fit together."""
        for name, table in _TABLES.items():
            part = getattr(self, name)
            if not isinstance(part, _KINDS[name]):
                raise PlanError(f"Plan({name}={part!r}): this is no {name}; known: {', '.join(sorted(table))}")
            table.name_of(part)
        if not isinstance(self.feedback, Feedback):
            raise PlanError(f"Plan(feedback={self.feedback!r}): write feedback=thinwire.Feedback(momentum=0.9)")
        self._check_fit()

    def _check_fit(self) -> None:
        """Refuse combinations that cannot mean anything."""
        selector, agreement = type(self.selector).__name__, type(self.agreement).__name__
        if agreement == "Seeded" and not self.selector.ignores_data:
            raise PlanError(
                f"Seeded() gives every rank the same lots, but {selector} looks at the data; "
                f"use RandomK(density=...), or Leader() to share one rank's coordinates"
            )
        if self.exchange.needs_shared and not self.shares_coordinates:
            raise PlanError(
                f"{type(self.exchange).__name__} adds up position by position, but with {agreement}() every rank has "
                f"coordinates of its own; use Leader() or Seeded(), or the exchange AllGather()"
            )
        if self.exchange.needs_shared and self.selector.rounds_values and not self.exchange.drops:
            raise PlanError(
                f"{type(self.exchange).__name__} carries sums, which do not fit the rounded format, so rounding would "
                f"save nothing; use RoundedReduce() or AllGather(), or do not round"
            )
        if self.exchange.needs_shapes and (not self.selector.covers_everything or self.selector.rounds_values):
            raise PlanError(
                f"{type(self.exchange).__name__} takes whole parameters for matrices, but {selector} sends less than "
                f"that; use Everything()"
            )
        if self.codec.full_only and not self.selector.covers_everything:
            raise PlanError(
                f"Dense() has no coordinates and so needs Everything(), but {selector} picks some units; "
                f"use Delta(), Bitmap() or IndexValue()"
            )

    @property
    def shares_coordinates(self) -> bool:
        """Every rank sends the same units."""
        return self.agreement.shared or self.selector.covers_everything

    @property
    def keeps_nothing(self) -> bool:
        """Everything is sent and delivered exactly, so this plan alone never leaves a debt."""
        exact = not self.selector.rounds_values and not self.exchange.drops
        return self.selector.covers_everything and exact and not self.feedback.momentum

    @property
    def looks_at_parameters(self) -> bool:
        """The parameters, not only their gradients, must be known."""
        return self.selector.looks_at_weights or self.exchange.needs_shapes

    def replace(self, **parts: Any) -> "Plan":
        """The same plan with other parts."""
        return dataclasses.replace(self, **parts)

    def describe(self) -> dict[str, Any]:
        """The plan as plain data, every option of every part."""
        parts: dict[str, Any] = {name: table.describe(getattr(self, name)) for name, table in _TABLES.items()}
        return {**parts, "feedback": dataclasses.asdict(self.feedback)}

    @staticmethod
    def build(description: Mapping[str, Any]) -> "Plan":
        """The inverse of `describe`.

        Raises:
            PlanError: A name or an option is unknown, or the parts do not fit.
        """
        known = {*_TABLES, "feedback"}
        for key in description:
            if key not in known:
                raise PlanError(unknown("part of a plan", str(key), known))
        parts = {name: table.build(description[name]) for name, table in _TABLES.items() if name in description}
        return Plan(**parts, feedback=Feedback(**description.get("feedback", {})))

    @cached_property
    def text(self) -> str:
        """The description in one canonical line."""
        return json.dumps(self.describe(), sort_keys=True, separators=(",", ":"))

    @cached_property
    def fingerprint(self) -> bytes:
        """Eight bytes that differ for plans that differ in anything."""
        return hashlib.blake2b(self.text.encode(), digest_size=8).digest()

    def __str__(self) -> str:
        """The plan as one would say it."""
        parts = (repr(getattr(self, name)) for name in _TABLES)
        memory = f" + {self.feedback!r}" if self.feedback != Feedback() else ""
        return " -> ".join(parts) + memory
