"""What the inputs of a kernel are made from: gradients of several shapes, and lists of indices."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from thinwire.types import index_dtype

_ROW = 64
_FREEDOM = 3


def _gaussian(n: int, random: torch.Generator) -> Tensor:
    return torch.randn(n, generator=random)


def _laplace(n: int, random: torch.Generator) -> Tensor:
    # The difference of two exponential numbers.
    return torch.empty(n).exponential_(generator=random).sub_(torch.empty(n).exponential_(generator=random))


def _student(n: int, random: torch.Generator) -> Tensor:
    squares = torch.zeros(n)
    for _ in range(_FREEDOM):
        squares.add_(torch.randn(n, generator=random).square_())
    return torch.randn(n, generator=random).div_(squares.div_(_FREEDOM).sqrt_())


def _mixture(n: int, random: torch.Generator) -> Tensor:
    loud = torch.rand(n, generator=random) < 0.05
    return torch.randn(n, generator=random).mul_(torch.where(loud, 1.0, 1e-3))


def _rows(n: int, random: torch.Generator) -> Tensor:
    rows = -(-n // _ROW)
    used = torch.rand(rows, 1, generator=random) < 0.1
    return torch.randn(rows, _ROW, generator=random).mul_(used).reshape(-1)[:n].contiguous()


KINDS: dict[str, Callable[[int, torch.Generator], Tensor]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "student": _student,
    "mixture": _mixture,
    "rows": _rows,
}
"""Gradients by name: normal; two-sided exponential; Student's t with 3 degrees of freedom; one element in twenty a
thousand times larger than the others; one row of 64 in ten used, the others zero, as embeddings have it."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a case makes its inputs for. Equal tasks make equal inputs.

    Attributes:
        size: Elements of the gradient.
        density: The part of them that is selected.
        data: The shape of the gradient, one of `KINDS`.
        seed: Of everything random.
    """

    size: int
    density: float
    data: str = "gaussian"
    seed: int = 0
    _random: torch.Generator = field(default_factory=torch.Generator, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._random.manual_seed(self.seed)

    @property
    def k(self) -> int:
        """How many elements are selected."""
        return max(1, round(self.size * self.density))

    def gradient(self, size: int | None = None) -> Tensor:
        """A fresh gradient.

        Args:
            size: Its length, if it is not the task's.
        """
        return KINDS[self.data](self.size if size is None else size, self._random)

    def indices(self) -> Tensor:
        """``k`` different random positions, increasing, in the type that the kernels use."""
        n, k = self.size, self.k
        if 2 * k > n:
            drawn = torch.randperm(n, generator=self._random)
        else:
            # Twice as many as needed, as some are drawn twice; a random k of them are as good as any.
            drawn = torch.unique(torch.randint(n, (2 * k + 64,), generator=self._random))
            drawn = drawn[torch.randperm(drawn.numel(), generator=self._random)]
        return drawn[:k].sort().values.to(index_dtype(n))
