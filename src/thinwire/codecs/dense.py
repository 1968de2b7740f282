"""Dense: every unit in its place, so no coordinates at all."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason
from thinwire.protocols import Codec
from thinwire.types import Selection


@dataclass(frozen=True, kw_only=True)
class Dense(Codec):
    """Writes nothing: the message holds every unit, in order."""

    number: ClassVar[int] = 0
    full_only: ClassVar[bool] = True

    def write(self, selection: Selection) -> Tensor:
        """An empty section."""
        return torch.empty(0, dtype=torch.uint8)

    def read(self, section: Tensor, count: int, units: int) -> None:
        """Every unit."""
        if section.numel():
            raise WireError(WireReason.COORDINATES, "a dense message has none")
        if count != units:
            raise WireError(WireReason.COUNT, f"a dense message with {count} of {units} units")

    def size(self, count: int, units: int) -> float:
        """Nothing."""
        return 0.0
