"""The values of a message as bytes and back: see the value formats in ``docs/wire-format.md``."""

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.errors import WireError, WireReason
from thinwire.types import Selection, ValueFormat

_INFINITY = 0x7F80
"""The lowest pattern of bfloat16 that is no finite number without a sign."""


def write_values(selection: Selection, out: Tensor) -> None:
    """Write a selection's values.

    Args:
        selection: Its values are such that its format can write them.
        out: Bytes: exactly the section.
    """
    format, table = selection.format, _table_bytes(selection.format, selection.values.numel())
    if not format.levels:
        kernels.pack_values(selection.values, format, selection.scale, out=out)
    elif table:
        assert selection.levels is not None
        out[:table].copy_(selection.levels.cpu().to(torch.bfloat16).view(torch.uint8))
        kernels.pack_levels(selection.values, selection.levels.cpu(), out=out[table:])


def read_values(section: Tensor, format: ValueFormat, scale: float, count: int, dtype: torch.dtype) -> Selection:
    """Read a section of values, trusting nothing but its length.

    Args:
        section: Bytes: exactly the section.
        format: How they are written.
        scale: The value of one step.
        count: How many there are.
        dtype: The type in which they are summed.

    Returns:
        The values, as a selection of everything there is.

    Raises:
        WireError: VALUE or PADDING.
    """
    if not 0.0 < scale < float("inf") or (scale != 1.0 and format is not ValueFormat.INT8):
        raise WireError(WireReason.VALUE, f"a step of {scale}")
    if not format.levels:
        values = kernels.unpack_values(section, format, scale, dtype)
        return Selection(None, values, count, format=format, scale=scale)
    table = _table_bytes(format, count)
    if not table:
        return Selection(None, torch.empty(0, dtype=dtype), 0, format=format)
    levels = _read_levels(section[:table], dtype)
    values = kernels.unpack_levels(section[table:], count, levels)
    return Selection(None, values, count, format=format, levels=levels)


def _table_bytes(format: ValueFormat, count: int) -> int:
    """Bytes of the table of levels: one of BF16 for each, and none where there are no values."""
    return 2 * format.levels if count else 0


def _read_levels(table: Tensor, dtype: torch.dtype) -> Tensor:
    """The levels, if they are finite, have no sign, and do not fall."""
    written = table.clone().view(torch.bfloat16)
    patterns = written.view(torch.uint16).tolist()
    if patterns != sorted(patterns) or patterns[-1] >= _INFINITY:
        raise WireError(WireReason.VALUE, "levels that fall, or are no magnitudes")
    return written.to(dtype)
