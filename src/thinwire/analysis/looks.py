"""How often something looks at a whole vector: passes at a threshold, and exact selections."""

from typing import Self

from torch import Tensor

from thinwire import kernels

_WATCHED = ("count_at_least", "at_least", "top_k", "corrected_threshold")


class Counting:
    """Counts, while it is entered, what goes through the functions of `thinwire.kernels`.

    Attributes:
        passes: Comparisons of a whole vector with one threshold.
        selections: Exact selections of the k largest.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.passes = 0
        self.selections = 0

    def __enter__(self) -> Self:
        """Put counters in the place of the kernels."""
        self._kernels = {name: getattr(kernels, name) for name in _WATCHED}
        counted = self._counted(kernels.implementation(kernels.active()))
        for name in _WATCHED:
            setattr(kernels, name, getattr(counted, name))
        return self

    def __exit__(self, *error: object) -> None:
        """Put the kernels back."""
        for name, kernel in self._kernels.items():
            setattr(kernels, name, kernel)

    def _counted(self, real: kernels.Kernels) -> kernels.Kernels:
        counter = self

        class Counted(type(real)):  # type: ignore[misc]
            def count_at_least(self, values: Tensor, threshold: float) -> int:
                counter.passes += 1
                return real.count_at_least(values, threshold)

            def at_least(self, values: Tensor, threshold: float) -> Tensor:
                counter.passes += 1
                return real.at_least(values, threshold)

            def top_k(self, values: Tensor, k: int) -> Tensor:
                counter.selections += 1
                return real.top_k(values, k)

        counted = Counted.__new__(Counted)
        counted.__dict__.update(real.__dict__)
        return counted
