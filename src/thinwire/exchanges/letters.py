"""Selections as letters between two ranks, and several selections added up into one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from thinwire import kernels, message
from thinwire.codecs import Cheapest, Dense
from thinwire.message import HEADER, Expected, Kind
from thinwire.protocols import Codec
from thinwire.types import Selection, Turn, index_dtype, natural_format
from thinwire.units import is_finite


@dataclass(frozen=True, kw_only=True)
class Letters:
    """How the selections of one exchange are written and read.

    Args:
        codec: How coordinates look; `thinwire.Cheapest` may also write zeros where nothing is selected.
        turn: The exchange.
        shared: Every rank has the same coordinates, so only values travel.
        dtype: The type in which values are summed.
    """

    codec: Codec
    turn: Turn
    shared: bool
    dtype: torch.dtype

    def write(self, selection: Selection) -> Tensor:
        """A selection as a message, in the form that its density asks for; no bytes for a sum that overflowed."""
        if _is_overflow(selection):
            return torch.empty(0, dtype=torch.uint8)
        if self.shared:
            return message.encode(selection, None, self.turn, kind=Kind.VALUES)
        letter = message.encode(selection, self.codec, self.turn)
        full = HEADER.size + selection.format.size(selection.units * selection.width)
        if full < letter.numel() and isinstance(self.codec, Cheapest) and not selection.format.levels:
            # Beyond 97 % of all units (of float32), marks cost more than the zeros that they save.
            return message.encode(_filled(selection), Dense(), self.turn)
        return letter

    def read(self, letter: Tensor, like: Selection) -> Selection:
        """A letter about the tensor that ``like`` is about; with shared coordinates, about its very units."""
        if not letter.numel():
            return _overflow(like)
        expected = Expected(numel=like.numel, width=like.width, dtype=self.dtype, turn=self.turn)
        return message.decode(letter, expected, known=like if self.shared else None)


def _filled(selection: Selection) -> Selection:
    """Every unit, zeros where nothing was selected. Only for formats that can write a zero whatever the values."""
    table = torch.zeros(selection.units, selection.width, dtype=selection.values.dtype)
    table[selection.indices.long()] = selection.values.view(-1, selection.width)
    return Selection(
        None, table.view(-1), selection.numel, selection.width, format=selection.format, scale=selection.scale
    )


def in_main_memory(selection: Selection) -> Selection:
    """The selection where letters are written and read."""
    if selection.values.device.type == "cpu":
        return selection
    indices = None if selection.is_full else selection.indices.cpu()
    return Selection(
        indices, selection.values.cpu(), selection.numel, selection.width,
        format=selection.format, scale=selection.scale, levels=selection.levels,
    )  # fmt: skip


def added(parts: Sequence[Selection]) -> Selection:
    """The sum of selections of one tensor as one selection, each unit's values added in the order of the parts.

    A sum that is not finite becomes the same NaN on every rank: the step will not count, and messages hold no such
    values.
    """
    total = _merged(parts)
    return total if is_finite(total.values) else _overflow(total)


def _overflow(like: Selection) -> Selection:
    """What stands for a sum that is not finite."""
    return Selection(
        torch.zeros(1, dtype=index_dtype(like.units)), torch.full((like.width,), torch.nan, dtype=like.values.dtype),
        like.numel, like.width,
    )  # fmt: skip


def _is_overflow(selection: Selection) -> bool:
    return selection.values.numel() > 0 and bool(selection.values[0].isnan())


def _merged(parts: Sequence[Selection]) -> Selection:
    """The sum, finite or not."""
    first = parts[0]
    if all(part.is_full for part in parts):
        total = first.values.clone()
        for part in parts[1:]:
            total += part.values
        return Selection(None, total, first.numel, first.width)
    if first.width == 1:
        indices, sums = kernels.merge_sum([(part.indices, part.values) for part in parts], first.numel)
        return Selection(indices, sums, first.numel)
    union = torch.unique(torch.cat([part.indices for part in parts]))
    # As in the kernel: -0.0 is what every number may be added to without a change.
    table = torch.full((union.numel(), first.width), -0.0, dtype=first.values.dtype)
    for part in parts:
        table.index_add_(0, torch.searchsorted(union, part.indices), part.values.view(-1, first.width))
    return Selection(union, table.view(-1), first.numel, first.width, format=natural_format(table.dtype))
