"""Checks of options, shared by the parts: every message says the option, the value and what would do."""

import math

from thinwire.errors import PlanError


def check_density(owner: object, density: float) -> None:
    """A density is a fraction of the units, from 0 (nothing) to 1 (everything).

    Raises:
        PlanError: It is not.
    """
    number = isinstance(density, int | float) and not isinstance(density, bool)
    if not number or not 0.0 <= density <= 1.0:
        raise PlanError(
            f"{type(owner).__name__}(density={density!r}): density is a fraction of the gradient between 0 and 1; "
            f"for one percent write density=0.01"
        )


def check_width(owner: object, width: int) -> None:
    """A width is a whole number of elements, at least 1.

    Raises:
        PlanError: It is not.
    """
    if not isinstance(width, int) or isinstance(width, bool) or not 1 <= width < 2**32:
        raise PlanError(
            f"{type(owner).__name__}(width={width!r}): width is the number of neighbouring elements in one unit, "
            f"a whole number from 1; for single elements write width=1"
        )


def check_seed(owner: object, seed: int) -> None:
    """A seed is a whole number.

    Raises:
        PlanError: It is not.
    """
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise PlanError(f"{type(owner).__name__}(seed={seed!r}): a seed is a whole number, the same on every rank")


def units_of_density(density: float, units: int) -> int:
    """A density as a number of units: rounded up, so that a small tensor still says something; 0 only for 0."""
    if density == 0.0 or units == 0:
        return 0
    return min(units, max(1, math.ceil(density * units)))
