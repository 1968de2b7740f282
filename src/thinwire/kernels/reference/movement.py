"""Values on their way out of and into dense tensors, in plain torch."""

from torch import Tensor


class MovementKernels:
    """Movements. Sums are made in the order of the messages, so that every rank gets the same bits."""

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add each value at its index. Indices are unique, so the result does not depend on any order."""
        out.index_add_(0, indices, values)
