"""The records that travel between the parts. All of them are values: nobody changes one in place."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch import Tensor

from thinwire.errors import PlanError

MAX_NUMEL = 1 << 40
"""The most elements one tensor may have: large enough for anybody, small enough that no sum of gaps overflows."""


class ValueFormat(IntEnum):
    """How one value is written on the wire. The numbers are part of the wire format."""

    F32 = 0
    F64 = 1
    BF16 = 2
    F16 = 3
    INT8 = 4
    INT4 = 5
    INT2 = 6

    @property
    def bits(self) -> int:
        """Bits of one written value."""
        return 8 * _DTYPES[self].itemsize if self in _DTYPES else _CODES[self]

    @property
    def levels(self) -> int:
        """How many levels a value's magnitude may have, where they travel with the message; 0 where they do not."""
        return 1 << (_CODES[self] - 1) if self in _CODES else 0

    @property
    def dtype(self) -> torch.dtype:
        """The torch type of the written values; bytes where they are codes of a few bits."""
        return _DTYPES.get(self, torch.uint8)

    def size(self, values: int) -> int:
        """Bytes of a section of so many values, a table of levels included."""
        return (2 * self.levels if values else 0) + -(-values * self.bits // 8)


_DTYPES = {
    ValueFormat.F32: torch.float32,
    ValueFormat.F64: torch.float64,
    ValueFormat.BF16: torch.bfloat16,
    ValueFormat.F16: torch.float16,
    ValueFormat.INT8: torch.int8,
}
_CODES = {ValueFormat.INT4: 4, ValueFormat.INT2: 2}


def index_dtype(units: int) -> torch.dtype:
    """The narrowest index type that can name every one of ``units`` units.

    Raises:
        PlanError: There are more than ``MAX_NUMEL`` units.
    """
    if units > MAX_NUMEL:
        raise PlanError(f"a tensor of {units} units is beyond the limit of 2**40; split it into several tensors")
    return torch.int32 if units <= torch.iinfo(torch.int32).max else torch.int64


def unit_count(numel: int, width: int) -> int:
    """How many units of ``width`` neighbours cover ``numel`` elements (the last one may be short)."""
    return -(-numel // width)


class Selection:
    """Some units of a tensor: which ones, and their values.

    A unit is a run of ``width`` neighbouring elements: 1 is ordinary top-k, the row length is a row-sparse
    gradient, 64 and more is block sparsity. Where the last unit sticks out of the tensor, its values are
    padded with zeros.

    Attributes:
        values: The values, flat, ``len(indices) * width`` of them, float32 (float64 for float64 gradients),
            always exactly representable in ``format``.
        numel: Elements of the tensor they were taken from.
        width: Elements of one unit.
        format: How the values are written on the wire.
        scale: For INT8, the value of one step.
        levels: For INT4 and INT2, the magnitudes that a value may have: of the type of the values, each at least as
            large as the one before it, exactly representable in bfloat16.
    """

    __slots__ = ("_indices", "format", "levels", "numel", "scale", "values", "width")

    def __init__(  # noqa: PLR0913 - a record
        self,
        indices: Tensor | None,
        values: Tensor,
        numel: int,
        width: int = 1,
        *,
        format: ValueFormat | None = None,
        scale: float = 1.0,
        levels: Tensor | None = None,
    ) -> None:
        """Build a selection; ``indices=None`` means every unit, without paying for a list of all numbers."""
        self._indices = indices
        self.values = values
        self.numel = numel
        self.width = width
        self.format = format if format is not None else natural_format(values.dtype)
        self.scale = scale
        self.levels = levels

    @property
    def units(self) -> int:
        """Units of the whole tensor."""
        return unit_count(self.numel, self.width)

    @property
    def count(self) -> int:
        """Units selected."""
        return self.units if self._indices is None else self._indices.numel()

    @property
    def is_full(self) -> bool:
        """Whether this is every unit of the tensor."""
        return self._indices is None or self._indices.numel() == self.units

    @property
    def indices(self) -> Tensor:
        """The selected units, strictly increasing."""
        if self._indices is None:
            return torch.arange(self.units, dtype=index_dtype(self.units), device=self.values.device)
        return self._indices

    def elements(self) -> Tensor:
        """The element positions, one for each value, padding included (a position may lie beyond ``numel``)."""
        indices = self.indices
        if self.width == 1:
            return indices
        offsets = torch.arange(self.width, device=indices.device)
        return (indices.long().unsqueeze(1) * self.width + offsets).reshape(-1)

    def with_values(
        self, values: Tensor, *, format: ValueFormat | None = None, scale: float = 1.0, levels: Tensor | None = None
    ) -> "Selection":
        """The same units with other values."""
        return Selection(self._indices, values, self.numel, self.width, format=format, scale=scale, levels=levels)

    def __repr__(self) -> str:
        """Say how many of how many units."""
        return f"Selection({self.count} of {self.units} units, width={self.width}, {self.format.name})"


def natural_format(dtype: torch.dtype) -> ValueFormat:
    """The format that writes values of ``dtype`` without loss."""
    return ValueFormat.F64 if dtype == torch.float64 else ValueFormat.F32


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Where in the run an exchange stands. The same on every rank, but for ``rank``."""

    step: int
    """Synchronised steps before this one."""
    group: int
    """Which group of parameters, counted from 0 within the step."""
    rank: int
    """This rank."""
    world: int
    """All ranks."""
    generation: int = 0
    """How often this group of ranks has been formed anew."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What something costs on the wire: bytes the busiest rank sends, and rounds that wait for each other."""

    bytes_sent: int = 0
    rounds: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        """One after the other."""
        return Traffic(bytes_sent=self.bytes_sent + other.bytes_sent, rounds=self.rounds + other.rounds)


@dataclass(frozen=True)
class Delivery:
    """What an exchange brought: the same on every rank.

    Attributes:
        parts: Selections to be added up, in rank order.
        divisor: What their sum is divided by to make it the mean.
        owed: What this rank sent and must owe again, since not all of it was delivered; in general another on every
            rank. Its mean over the ranks is what the mean lacks.
    """

    parts: Sequence[Selection]
    divisor: int = 1
    owed: Selection | None = None


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What one group of parameters saw in one step: the only arrow from the data path up to control."""

    step: int
    group: int
    numel: int
    """Elements of the group."""
    sent: int = 0
    """Elements this rank sent."""
    gain: float = 1.0
    """Energy sent over energy owed, between 0 and 1."""
    bytes_sent: int = 0
    """Bytes this rank put on the wire, headers and padding included."""
    rounds: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each stage: ledger, select, encode, agree, exchange, decode."""
