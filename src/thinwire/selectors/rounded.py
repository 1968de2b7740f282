"""Rounded: another selector's choice, its values written more coarsely. The rounding error stays in the ledger."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.debt import Debt
from thinwire.errors import PlanError
from thinwire.protocols import Selector
from thinwire.registry import unknown
from thinwire.selectors.levels import best_levels
from thinwire.types import Selection, ValueFormat

_FORMATS = {
    "bf16": ValueFormat.BF16,
    "f16": ValueFormat.F16,
    "int8": ValueFormat.INT8,
    "int4": ValueFormat.INT4,
    "int2": ValueFormat.INT2,
}


@dataclass(frozen=True)
class Rounded(Selector):
    """Round the values of another selector.

    Args:
        selector: Who chooses the units.
        to: ``"bf16"`` (range of float32, 8 bits of precision), ``"f16"`` (11 bits, saturates at 65504), ``"int8"``
            (one scale for each message, 127 steps of either sign), ``"int4"`` or ``"int2"`` (a sign and one of 8 or 2
            magnitudes, chosen anew for each message).
    """

    selector: Selector
    to: str = field(kw_only=True)

    def __post_init__(self) -> None:
        """Check the options."""
        if not isinstance(self.selector, Selector) or self.selector.rounds_values:
            raise PlanError(
                f"Rounded({self.selector!r}): give it a selector that does not round, such as TopK(density=0.01)"
            )
        if self.to not in _FORMATS:
            raise PlanError(unknown("value format to round", str(self.to), _FORMATS))

    @property
    def rounds_values(self) -> bool:
        """Yes."""
        return True

    @property
    def covers_everything(self) -> bool:
        """As the selector it rounds."""
        return self.selector.covers_everything

    @property
    def ignores_data(self) -> bool:
        """As the selector it rounds."""
        return self.selector.ignores_data

    @property
    def looks_at_weights(self) -> bool:
        """As the selector it rounds."""
        return self.selector.looks_at_weights

    @property
    def width(self) -> int:
        """As the selector it rounds."""
        return self.selector.width

    def budget(self, units: int) -> int:
        """As the selector it rounds."""
        return self.selector.budget(units)

    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """As the selector it rounds."""
        return self.selector.choose(gradient, k, seed)

    def select_from(self, debt: Debt, *, seed: int = 0) -> Selection:
        """What the selector it rounds selects, rounded."""
        return rounded(self.selector.select_from(debt, seed=seed), _FORMATS[self.to])

    def at(self, gradient: Tensor, indices: Tensor | None) -> Selection:
        """The values of the given units, rounded."""
        return rounded(self.selector.at(gradient, indices), _FORMATS[self.to])


def rounded(selection: Selection, format: ValueFormat) -> Selection:
    """The nearest values that ``format`` can write; what is beyond its range becomes the end of its range."""
    exact = selection.values
    if format is ValueFormat.INT8:
        return _stepped(selection)
    if format.levels:
        return _levelled(selection, format)
    limit = torch.finfo(format.dtype).max
    nearest = exact.clamp(-limit, limit).to(format.dtype).to(exact.dtype)
    return selection.with_values(nearest, format=format)


def _levelled(selection: Selection, format: ValueFormat) -> Selection:
    """The nearest of a few levels, with the sign; what is beyond the largest becomes the largest."""
    exact = selection.values
    levels = best_levels(exact, format.levels)
    codes = torch.empty(-(-exact.numel() * format.bits // 8), dtype=torch.uint8)
    kernels.pack_levels(exact, levels, out=codes)
    nearest = kernels.unpack_levels(codes, exact.numel(), levels).to(exact.device)
    return selection.with_values(nearest, format=format, levels=levels)


def _stepped(selection: Selection) -> Selection:
    """Whole multiples of one step, the largest magnitude being 127 of them."""
    exact = selection.values
    largest = float(exact.abs().max()) if exact.numel() else 0.0
    # The step travels as float32. One float below largest / 127, so that 127 steps never pass the largest
    # float, and a step that float32 cannot hold is not infinity but its largest; a step of zero (nothing but
    # denormals) sends zeros and keeps everything.
    step = torch.tensor(largest / 127.0, dtype=torch.float32)
    scale = float(torch.nextafter(step, torch.tensor(0.0)))
    if scale == 0.0:
        return selection.with_values(torch.zeros_like(exact), format=ValueFormat.INT8, scale=1.0)
    steps = torch.round(exact / scale).clamp(-127, 127)
    # No step at all is plus zero, whatever it was before: the wire has no minus zero.
    return selection.with_values(steps * scale + 0.0, format=ValueFormat.INT8, scale=scale)
