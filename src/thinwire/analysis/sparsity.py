"""What sparse gradients of several ranks have in common, and how evenly a map deals them out: the measures of Zen.

Index lists are strictly increasing. They say which units ranks send: rows of embeddings, or what a selector chose.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from thinwire import kernels
from thinwire.exchanges.volumes import Profile
from thinwire.types import index_dtype

Map = Callable[[Tensor], Tensor]
"""From indices to the numbers of their owners."""


def overlap(one: Tensor, other: Tensor) -> float:
    """What two ranks have in common, over what the one with fewer units has; 0 where one has nothing."""
    least = min(one.numel(), other.numel())
    if not least:
        return 0.0
    both = _union([one, other]).numel()
    return (one.numel() + other.numel() - both) / least


def _union(indices: Sequence[Tensor]) -> Tensor:
    """Every unit that is in any of some lists."""
    found: Tensor = torch.unique(torch.cat(list(indices)))
    return found


def densification(indices: Sequence[Tensor]) -> list[float]:
    """How many times more units the first k ranks have together than one of them on average, for every k."""
    mean = sum(each.numel() for each in indices) / len(indices)
    union, found = indices[0][:0], []
    for each in indices:
        union = _union([union, each])
        found.append(union.numel() / mean if mean else 1.0)
    return found


def skewness(indices: Tensor, units: int, ranges: int) -> float:
    """The density of the densest of so many equal ranges of units, over that of the whole; 1 where there is nothing."""
    if not indices.numel():
        return 1.0
    edges = range_starts(units, ranges)
    counts = torch.diff(torch.searchsorted(indices, edges.to(indices.dtype))).double()
    lengths = torch.diff(edges).double()
    densest = float((counts / lengths.clamp(min=1)).max())
    return densest / (indices.numel() / units)


def range_starts(units: int, ranges: int) -> Tensor:
    """Where each of so many equal ranges begins, and the end of the last one."""
    return torch.arange(ranges + 1) * units // ranges


@dataclass(frozen=True)
class Imbalance:
    """The busiest owner's load over the mean one. 1 is even.

    Attributes:
        push: Of what one rank sends to its owners, the worst rank's.
        pull: Of what owners have when all ranks have sent.
    """

    push: float
    pull: float


def imbalance(indices: Sequence[Tensor], owner_of: Map, owners: int) -> Imbalance:
    """How unevenly a map deals out what ranks send."""
    union = _union(indices)
    return Imbalance(push=max(_worst(each, owner_of, owners) for each in indices), pull=_worst(union, owner_of, owners))


def _worst(indices: Tensor, owner_of: Map, owners: int) -> float:
    if not indices.numel():
        return 1.0
    counts = torch.bincount(owner_of(indices).long(), minlength=owners)
    return float(counts.max()) * owners / indices.numel()


def hashed(owners: int, seed: int = 0) -> Map:
    """The map of `thinwire.OwnerReduce`."""
    return lambda indices: kernels.owner_of(indices, owners, seed)


def striped(owners: int) -> Map:
    """Index modulo owners, as parameter servers of embeddings have it."""
    return lambda indices: indices % owners


def cut(units: int, owners: int) -> Map:
    """Equal ranges of neighbours, as OmniReduce and sharded optimizers have it."""
    edges = range_starts(units, owners)[1:]
    return lambda indices: torch.bucketize(indices.long(), edges, right=True)


@dataclass(frozen=True, kw_only=True)
class Sparsity:
    """What the gradients of one step are like.

    Attributes:
        units: Of the whole tensor.
        density: Of one rank's units, on average.
        overlap: Of all pairs of ranks, on average.
        overlaps: Of every pair.
        densification: Over the first k ranks, for every k.
        skewness: Over as many ranges as owners, the mean over ranks.
        hashed: How evenly owner-reduce deals units out.
        striped: How evenly the remainder of the index would.
        cut: How evenly equal ranges would.
    """

    units: int
    density: float
    overlap: float
    overlaps: tuple[float, ...]
    densification: tuple[float, ...]
    skewness: float
    hashed: Imbalance
    striped: Imbalance
    cut: Imbalance

    @property
    def profile(self) -> Profile:
        """What a chooser needs to know: the overlap that explains the densification."""
        return Profile.of(self.density, self.densification[-1], len(self.densification))


def characterise(indices: Sequence[Tensor], units: int, owners: int | None = None) -> Sparsity:
    """Measure the units of all ranks.

    Args:
        indices: Of each rank.
        units: Of the whole tensor.
        owners: How many owners to deal them out to; as many as ranks if not given.

    Returns:
        The measures.
    """
    lists = [each.cpu().to(index_dtype(units)) for each in indices]
    count = len(lists) if owners is None else owners
    pairs = tuple(overlap(one, other) for one, other in combinations(lists, 2))
    return Sparsity(
        units=units,
        density=sum(each.numel() for each in lists) / len(lists) / max(units, 1),
        overlap=sum(pairs) / len(pairs) if pairs else 1.0,
        overlaps=pairs,
        densification=tuple(densification(lists)),
        skewness=sum(skewness(each, units, count) for each in lists) / len(lists),
        hashed=imbalance(lists, hashed(count), count),
        striped=imbalance(lists, striped(count), count),
        cut=imbalance(lists, cut(units, count), count),
    )
