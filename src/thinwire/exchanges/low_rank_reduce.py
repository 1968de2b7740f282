"""Low-rank reduce: every matrix of the gradient as a product of two thin ones, each summed over the ranks.

PowerSGD (NeurIPS 2019): of the mean M the ranks compute P = M Q for a random thin Q, make its columns orthonormal, and
Q' = M^T P; everybody delivers P Q'^T, the part of M in the space of P. What it lacks, each rank owes. The paper keeps Q
from step to step. Here it is drawn anew from a seed that all share, so there is no state to be saved, moved with DDP's
buckets, or damaged by a step that fails. Instead, both products are made twice, and in bfloat16, which pays for it:
all that rounding takes away is owed as well, since what is owed is the difference to what is delivered.

All ranks have the same bits on any hardware: P and Q' are the bytes of `DirectReduce`, what is computed of them uses
only single additions, multiplications, divisions and roots in a fixed order, which are exact by IEEE 754.

Rounds: 4 for each power, whatever the number of ranks, or 2 between two. Bytes sent by each rank: 2 (world - 1) / world
of rank * (rows + columns) values for each matrix and power, and of all other values once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from thinwire.errors import PlanError
from thinwire.exchanges.direct_reduce import DirectReduce
from thinwire.protocols import Codec, Exchange, Outgoing, Wire, whole
from thinwire.types import Delivery, Selection, Traffic

_DEPENDENT = 1e-6
"""Of a column's length: what is left of it less than this, beside the columns before it, is rounding errors."""


@dataclass(frozen=True, kw_only=True)
class LowRankReduce(Exchange):
    """Deliver an approximation of low rank of each parameter that is a matrix, and the mean of all others.

    A parameter of more dimensions is a matrix whose rows are its first one. One that would not shrink is sent as it is.

    Args:
        rank: Columns of the thin matrices.
        powers: How often both products are made: more come nearer to the best approximation of this rank.
        to: How values travel: ``"bf16"``, or ``"f32"`` (of float64 gradients, as they are).
        seed: Another seed, other random matrices.
    """

    rank: int = 4
    powers: int = 2
    to: str = "bf16"
    seed: int = 0
    needs_shared: ClassVar[bool] = True
    takes_letters: ClassVar[bool] = False
    depends_on_data: ClassVar[bool] = True
    drops: ClassVar[bool] = True
    needs_shapes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the options."""
        for name in ("rank", "powers"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise PlanError(f"LowRankReduce({name}={value!r}): {name} is a whole number from 1 on, such as 4")
        if self.to not in ("bf16", "f32"):
            raise PlanError(f"LowRankReduce(to={self.to!r}): write 'bf16' or 'f32'")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 1 << 63:
            raise PlanError(f"LowRankReduce(seed={self.seed!r}): seed is a whole number from 0 to below 2**63")

    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """The approximation, the same bits on every rank; and what this rank's values have beyond it."""
        mine = outgoing.selection
        places = self._places(outgoing.shapes, mine.numel)
        pieces = list(torch.split(mine.values, [math.prod(shape) for shape, _ in places]))
        tables = [piece.view(shape) for piece, (shape, thin) in zip(pieces, places, strict=True) if thin]
        rest = [piece for piece, (_, thin) in zip(pieces, places, strict=True) if not thin]
        right = self._drawn(tables, outgoing)
        exact: list[Tensor] = []
        left: list[Tensor] = []
        for power in range(self.powers):
            found = self._means([*map(torch.mm, tables, right), *([] if power else rest)], outgoing, wire)
            left = [orthonormal(each) for each in found[: len(tables)]]
            exact = exact or found[len(tables) :]
            right = self._means([table.T @ basis for table, basis in zip(tables, left, strict=True)], outgoing, wire)
        thins, others = iter(map(product, left, right)), iter(exact)
        means = [next(thins if thin else others).reshape(-1) for _, thin in places]
        mean = torch.cat(means) if means else mine.values.clone()
        return Delivery([mine.with_values(mean)], owed=mine.with_values(mine.values - mean))

    def _places(self, shapes: Sequence[Sequence[int]], numel: int) -> list[tuple[tuple[int, int], bool]]:
        """Each parameter as a table, and whether it is sent as two thin ones; of unknown shapes, nothing is."""
        tables = [(shape[0], math.prod(shape[1:])) if len(shape) > 1 else (math.prod(shape), 1) for shape in shapes]
        known = tables if sum(map(math.prod, tables)) == numel else [(numel, 1)]
        return [(table, self._width(table) * sum(table) < math.prod(table)) for table in known]

    def _width(self, table: tuple[int, int]) -> int:
        return min(self.rank, *table)

    def _drawn(self, tables: Sequence[Tensor], outgoing: Outgoing) -> list[Tensor]:
        """The same normal numbers on every rank; others in each step, and for each group."""
        draw = np.random.default_rng([self.seed, outgoing.turn.step, outgoing.turn.group])
        shapes = [(table.shape[1], self._width((table.shape[0], table.shape[1]))) for table in tables]
        drawn = [torch.from_numpy(draw.standard_normal(shape, dtype=np.float32)) for shape in shapes]
        return [each.to(table.device, table.dtype) for each, table in zip(drawn, tables, strict=True)]

    def _means(self, pieces: Sequence[Tensor], outgoing: Outgoing, wire: Wire) -> list[Tensor]:
        """The means of all pieces over the ranks, together in one exchange."""
        like = outgoing.selection.values
        flat = torch.cat([piece.reshape(-1) for piece in pieces]) if pieces else like[:0]
        sent = whole(flat.bfloat16() if self.to == "bf16" else flat)
        (mean,) = DirectReduce().deliver(replace(outgoing, selection=sent), wire).parts
        cut = torch.split(mean.values.to(like.dtype), [piece.numel() for piece in pieces])
        return [each.view(piece.shape) for each, piece in zip(cut, pieces, strict=True)]

    def calls(self, world: int) -> int:
        """Two sums for each power."""
        return 2 * self.powers * DirectReduce().calls(world)

    def traffic(self, world: int, payload: int, itemsize: int = 4) -> Traffic:
        """A bound for ``payload`` bytes of values: where nothing is a matrix."""
        return DirectReduce().traffic(world, payload, itemsize)

    def forecast(self, brought: Sequence[Selection], codec: Codec, *, shared: bool = True) -> Traffic:
        """As `cost`, where no shapes are known."""
        return self.cost([(brought[0].numel,)], len(brought))

    def cost(self, shapes: Sequence[Sequence[int]], world: int) -> Traffic:
        """What it costs exactly to bring parameters of these shapes together; of float64, as float32.

        Args:
            shapes: Of the parameters.
            world: The ranks.
        """
        itemsize = 2 if self.to == "bf16" else 4
        places = self._places(shapes, sum(map(math.prod, shapes)))
        left = sum(self._width(table) * table[0] for table, thin in places if thin)
        right = sum(self._width(table) * table[1] for table, thin in places if thin)
        rest = sum(math.prod(table) for table, thin in places if not thin)
        sums = [left + rest, right, *[left, right] * (self.powers - 1)]
        return reduce(Traffic.__add__, (DirectReduce().traffic(world, itemsize * each, itemsize) for each in sums))


def orthonormal(columns: Tensor) -> Tensor:
    """Columns of length 1 at right angles that span the same space, by Gram and Schmidt in float64.

    Args:
        columns: Some columns; of those that depend on the ones before, nothing remains but zeros.

    Returns:
        As many, the same bits on every machine.
    """
    rows = np.array(columns.T.double().cpu().numpy(), order="C")
    lengths = np.sqrt(_sums(rows * rows))
    for at, row in enumerate(rows):
        length = np.sqrt(_sums((row * row)[None])[0])
        row[:] = 0.0 if length <= _DEPENDENT * lengths[at] else row / length
        later = rows[at + 1 :]
        later -= _sums(later * row)[:, None] * row
    return torch.from_numpy(rows.T.copy()).to(columns.device, columns.dtype)


def _sums(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each row, by halves: a library's own sum has another order on every kind of processor."""
    while rows.shape[1] > 1:
        half = -(-rows.shape[1] // 2)
        folded = rows[:, :half].copy()
        folded[:, : rows.shape[1] - half] += rows[:, half:]
        rows = folded
    return rows[:, 0]


def product(left: Tensor, right: Tensor) -> Tensor:
    """``left @ right.T``, one column after the other: a library's own product has another order on every processor."""
    total = left[:, :1] * right[:, 0]
    for column in range(1, left.shape[1]):
        total += left[:, column : column + 1] * right[:, column]
    return total
