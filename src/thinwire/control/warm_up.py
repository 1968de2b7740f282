"""Density warm-up: the first steps of a training run send more, less and less of it (Deep Gradient Compression)."""


def least_density(step: int, steps: int, *, first: float = 0.25, last: float = 1e-3) -> float:
    """The least density of a step: from ``first`` to ``last`` in equal ratios, then none.

    Args:
        step: From 0.
        steps: How many the warm-up has; 0 for no warm-up.
        first: In step 0.
        last: In the last step of it.
    """
    if step >= steps:
        return 0.0
    return float(first * (last / first) ** (step / max(steps - 1, 1)))
