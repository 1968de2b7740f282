"""The Pareto front, exactly: candidates that no other beats in time without losing gain, or in gain without time."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def front(times: Floats, gains: Floats) -> NDArray[np.int64]:
    """Which candidates are on the front, the fastest first. Of equal ones the first is.

    Args:
        times: Seconds; less is better.
        gains: More is better.
    """
    order = np.lexsort((-gains, times))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(gains[order])[:-1]])
    chosen: NDArray[np.int64] = order[gains[order] > best_before].astype(np.int64)
    return chosen
