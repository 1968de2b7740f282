"""Who owns which unit of a tensor, and selections cut into one part for each owner.

Units are dealt out by a hash of their block (`thinwire.kernels.owner_of`), a bijection between units and places of
owners. So what one owner has is a tensor of its own, whose units keep their order, and a part of a selection is an
ordinary selection of that tensor: every codec, and every check of a message, holds for it as it is. A bitmap over it is
the hash bitmap of Zen, without the tables of indices that a plain hash needs (4 bytes for every unit, on every rank).
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.types import Selection, index_dtype, unit_count


@dataclass(frozen=True, kw_only=True)
class Owners:
    """The owners of a tensor's units: the same on every rank.

    Args:
        numel: Elements of the tensor.
        width: Elements of one unit.
        count: How many owners there are.
        seed: Another seed, other owners.
    """

    numel: int
    width: int
    count: int
    seed: int

    @property
    def units(self) -> int:
        """Units of the whole tensor."""
        return unit_count(self.numel, self.width)

    @cached_property
    def numels(self) -> list[int]:
        """Elements of each owner's own tensor: all blocks have one unit of it, but the last block may have none."""
        if not self.units:
            return [0] * self.count
        last = (self.units - 1) // self.count
        ends = [
            int(kernels.index_at(torch.tensor([last]), owner, self.count, self.seed)) for owner in range(self.count)
        ]
        spare = -self.numel % self.width  # by which the tensor's last unit sticks out; it is its owner's last one too
        return [(last + (end < self.units)) * self.width - (spare if end == self.units - 1 else 0) for end in ends]

    def split(self, selection: Selection) -> list[Selection]:
        """One part for each owner; nothing is lost, and every part is in order."""
        indices, values = selection.indices.cpu(), selection.values.cpu()
        whose = kernels.owner_of(indices, self.count, self.seed)
        places = kernels.place_of(indices, self.count)
        if self.width == 1:
            places, values, counts = kernels.multisplit(places, values, whose, self.count)
            rows = values.view(-1, 1)
        else:
            order = torch.arange(indices.numel())
            order, _, counts = kernels.multisplit(order, values[: order.numel()], whose, self.count)
            places, rows = places[order], values.view(-1, self.width)[order]
        sizes = counts.tolist()
        cut = zip(self.numels, torch.split(places, sizes), torch.split(rows, sizes), strict=True)
        return [self._part(selection, numel, places, rows) for numel, places, rows in cut]

    def _part(self, selection: Selection, numel: int, places: Tensor, rows: Tensor) -> Selection:
        units = unit_count(numel, self.width)
        return Selection(
            places.to(index_dtype(units)), rows.reshape(-1), numel, self.width,
            format=selection.format, scale=selection.scale, levels=selection.levels,
        )  # fmt: skip

    def join(self, part: Selection, owner: int) -> Selection:
        """A part of one owner as a selection of the whole tensor."""
        places = part.indices.to(index_dtype(self.units))
        indices = kernels.index_at(places, owner, self.count, self.seed)
        return Selection(indices, part.values, self.numel, self.width)
