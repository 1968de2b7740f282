"""How many elements of a result are wrong.

A result is a tensor, a number, None, or a tuple of results. Every check takes the arguments as they were before the
call, the reference's result and the contestant's, and counts.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Check = Callable[[tuple[Any, ...], Any, Any], int]
"""Counts the wrong elements: arguments, expected, got."""

_CLOSE = 1e-5


def same(arguments: tuple[Any, ...], expected: Any, got: Any) -> int:
    """Equal tensors, whatever their types; numbers only nearly, as the order of sums is free."""
    del arguments
    return differences(expected, got)


def as_sets(arguments: tuple[Any, ...], expected: Any, got: Any) -> int:
    """As `same`, with the elements of every tensor in any order."""
    del arguments
    return differences(_in_order(expected), _in_order(got))


def nearly(arguments: tuple[Any, ...], expected: Any, got: Any) -> int:
    """As `same`, but elements of tensors may differ in the last places, as sums in another order do."""
    del arguments
    return differences(expected, got, tolerance=_CLOSE)


def of_the_same_form(arguments: tuple[Any, ...], expected: Any, got: Any) -> int:
    """For results that chance has a part in: a number for a number, a tensor as long for a tensor."""
    del arguments
    if isinstance(expected, Tensor):
        return abs(expected.numel() - got.numel()) if isinstance(got, Tensor) else max(1, expected.numel())
    return int(type(expected) is not type(got))


def differences(expected: Any, got: Any, *, tolerance: float = 0.0) -> int:
    """How many elements differ; of tensors of different lengths also those that one has more than the other.

    Args:
        expected: The reference's result.
        got: Of the same structure, or everything is wrong.
        tolerance: How far elements of tensors may be apart, as a part of the largest one expected.
    """
    if isinstance(expected, Tensor):
        return _different(expected, got, tolerance) if isinstance(got, Tensor) else max(1, expected.numel())
    if isinstance(expected, tuple):
        if not isinstance(got, tuple) or len(got) != len(expected):
            return sum(differences(part, None) for part in expected) or 1
        return sum(differences(one, other, tolerance=tolerance) for one, other in zip(expected, got, strict=True))
    if isinstance(expected, int | float) and isinstance(got, int | float):
        return int(not math.isclose(expected, got, rel_tol=_CLOSE))
    return int(expected != got)


def _different(expected: Tensor, got: Tensor, tolerance: float) -> int:
    expected, got = expected.reshape(-1), got.reshape(-1)
    common = min(expected.numel(), got.numel())
    longer = max(expected.numel(), got.numel()) - common
    expected, got = expected[:common], got[:common]
    if not tolerance or not common or not expected.is_floating_point():
        return longer + int((expected != got).sum())
    return longer + int((~((expected - got).abs() <= tolerance * expected.abs().max())).sum())


def _in_order(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_in_order(part) for part in result)
    return result.sort().values if isinstance(result, Tensor) else result


def largest(arguments: tuple[Any, ...], expected: Tensor, got: Tensor) -> int:
    """Some indices of the largest magnitudes: in any order, and any of those whose magnitudes are equal."""
    values = arguments[0]
    twice: int = got.numel() - torch.unique(got).numel()
    return twice + differences(_magnitudes(values, expected), _magnitudes(values, got))


def taken(arguments: tuple[Any, ...], expected: Any, got: Any) -> int:
    """What `largest` allows, taken out of a debt: ``((indices, values), debt left)``, from (owed, gradient, ...)."""
    (indices, values), left = got
    total = arguments[0] + arguments[1]
    sound = largest((total,), expected[0][0], indices) + differences(total[indices.long()], values)
    total[indices.long()] = 0.0
    return sound + differences(total, left)


def _magnitudes(values: Tensor, indices: Tensor) -> Tensor:
    return values[indices.long()].abs().sort().values
