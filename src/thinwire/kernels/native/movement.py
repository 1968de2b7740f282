"""Movements by the compiled kernels; what they cannot take goes down to the reference."""

from collections.abc import Sequence

import torch
from torch import Tensor

import thinwire._native as _native
from thinwire.kernels.native.base import FLOATS, INDICES, OK, OnMachine, fits
from thinwire.kernels.reference import movement as checks
from thinwire.kernels.reference.movement import Message, MovementKernels, Split
from thinwire.types import MAX_NUMEL, index_dtype

_ORDER = 4  # the value of `Status` in native/core/status.h
_OWNERS = (torch.uint8, torch.int16)


class NativeMovement(OnMachine, MovementKernels):
    """Movements of float32 and float64 tensors in main memory."""

    def gather(self, values: Tensor, indices: Tensor, out: Tensor | None = None) -> Tensor:
        """The values at some indices, which may be in any order.

        Raises:
            IndexError: An index lies outside ``values``. What ``out`` holds is arbitrary.
            ValueError: ``out`` is not as long as ``indices``, or of another type than ``values``.
        """
        if not (fits(values, FLOATS) and fits(indices, INDICES) and (out is None or fits(out, FLOATS))):
            return super().gather(values, indices, out)
        checks.check_out(values, indices, out)
        found = torch.empty(indices.numel(), dtype=values.dtype) if out is None else out
        _check(_native.gather(self.machine, values, indices, found), values.numel())
        return found

    def take_at(self, values: Tensor, indices: Tensor) -> Tensor:
        """Take out the values at strictly increasing indices: return them, and leave zeros behind.

        Raises:
            ValueError: The indices do not increase strictly. Nothing was taken.
            IndexError: An index lies outside ``values``. Nothing was taken.
        """
        if not (fits(values, FLOATS) and fits(indices, INDICES)):
            return super().take_at(values, indices)
        taken = torch.empty(indices.numel(), dtype=values.dtype)
        _check(_native.take_at(self.machine, values, indices, taken), values.numel())
        return taken

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add each value at its index, in the order of the list.

        Raises:
            IndexError: An index lies outside ``out``. Nothing was added.
        """
        can = fits(out, FLOATS) and fits(indices, INDICES) and fits(values, (out.dtype,))
        if not can or indices.numel() != values.numel():
            super().scatter_add_(out, indices, values)
            return
        if _native.scatter_add(self.machine, out, indices, values) != OK:
            raise IndexError(f"an index is outside the {out.numel()} elements to be added to; nothing was added")

    def scatter_sum_(self, out: Tensor, messages: Sequence[Message]) -> None:
        """Add messages in their order.

        Raises:
            ValueError: The indices of a message do not increase strictly, or are not as many as its values, or its
                values are of another type than ``out``. Nothing was added.
            IndexError: An index lies outside ``out``. Nothing was added.
        """
        if not (fits(out, FLOATS) and _fit(messages, out.dtype)):
            super().scatter_sum_(out, messages)
            return
        _check(_native.scatter_sum(self.machine, out, *_columns(messages)), out.numel())

    def scatter_mean_(self, out: Tensor, messages: Sequence[Message], divisor: float) -> None:
        """Write the sum of messages, divided; zeros where there is none.

        Raises:
            ValueError: As `scatter_sum_`, or the divisor is not positive. Nothing was written.
            IndexError: As `scatter_sum_`. Nothing was written.
        """
        if not (fits(out, FLOATS) and _fit(messages, out.dtype)):
            super().scatter_mean_(out, messages, divisor)
            return
        checks.check_divisor(divisor)
        _check(_native.scatter_mean(self.machine, out, *_columns(messages), divisor), out.numel())

    def merge_sum(self, messages: Sequence[Message], numel: int) -> Message:
        """The sum of messages as one message, in time linear in their entries.

        Raises:
            ValueError: As `scatter_sum_`, or there is no message.
            IndexError: An index is not below ``numel``.
        """
        dtype = checks.first_of(messages).dtype
        kind = index_dtype(numel)
        if not _fit(messages, dtype) or messages[0][0].dtype != kind:
            return super().merge_sum(messages, numel)
        room = sum(indices.numel() for indices, _ in messages)
        out = torch.empty(room, dtype=kind), torch.empty(room, dtype=dtype)
        status, count = _native.merge_sum(self.machine, numel, *_columns(messages), out)
        _check(status, numel)
        return out[0][:count], out[1][:count]

    def dense_mean_(self, out: Tensor, tensors: Sequence[Tensor]) -> None:
        """Write the mean of tensors, added in their order. ``out`` may be one of them.

        Raises:
            ValueError: There is no tensor, or one is of another type or length than ``out``.
        """
        checks.check_alike(out, tensors)
        if not all(fits(tensor, FLOATS) for tensor in (out, *tensors)):
            super().dense_mean_(out, tensors)
            return
        _native.dense_mean(self.machine, out, list(tensors))

    def owner_of(self, indices: Tensor, owners: int, seed: int) -> Tensor:
        """Who owns which index: the same on every rank and every machine.

        Raises:
            ValueError: No such number of owners.
            IndexError: An index is negative or too large.
        """
        checks.check_owners(owners)
        if not fits(indices, INDICES):
            return super().owner_of(indices, owners, seed)
        out = torch.empty(indices.numel(), dtype=checks.owner_dtype(owners))
        _check(_native.owner_of(self.machine, indices, owners, seed % 2**64, out), MAX_NUMEL)
        return out

    def place_of(self, indices: Tensor, owners: int) -> Tensor:
        """The place of each index among those of its owner.

        Raises:
            ValueError: No such number of owners.
            IndexError: An index is negative or too large.
        """
        checks.check_owners(owners)
        if not fits(indices, INDICES):
            return super().place_of(indices, owners)
        out = torch.empty_like(indices)
        _check(_native.place_of(self.machine, indices, owners, out), MAX_NUMEL)
        return out

    def index_at(self, places: Tensor, owner: int, owners: int, seed: int) -> Tensor:
        """The indices that one owner has at some places.

        Raises:
            ValueError: No such number of owners, or no such owner.
            IndexError: A place is negative, or its index does not fit into the type of the places.
        """
        checks.check_owners(owners, owner)
        if not fits(places, INDICES):
            return super().index_at(places, owner, owners, seed)
        out = torch.empty_like(places)
        most = min(MAX_NUMEL, torch.iinfo(places.dtype).max + 1)
        _check(_native.index_at(self.machine, places, (owner, owners), seed % 2**64, out), most)
        return out

    def multisplit(self, indices: Tensor, values: Tensor, owner_of_each: Tensor, owners: int) -> Split:
        """Sort entries by their owner, losing none; those of one owner keep their order.

        Raises:
            ValueError: No such number of owners, or lists that differ in length.
            IndexError: An owner that is not below ``owners``.
        """
        checks.check_owners(owners)
        can = fits(indices, INDICES) and fits(values, FLOATS) and fits(owner_of_each, _OWNERS)
        if not can or not indices.numel() == values.numel() == owner_of_each.numel():
            return super().multisplit(indices, values, owner_of_each, owners)
        out = torch.empty_like(indices), torch.empty_like(values)
        counts = torch.empty(owners, dtype=torch.int64)
        _check(_native.multisplit(self.machine, (indices, values), owner_of_each, out, counts), owners)
        return Split(*out, counts)


def _fit(messages: Sequence[Message], dtype: torch.dtype) -> bool:
    """Whether the compiled code can take all messages as they lie in memory; there must be one."""
    if not messages or dtype not in FLOATS or messages[0][0].dtype not in INDICES:
        return False
    kind = (messages[0][0].dtype,)
    return all(
        indices.numel() == values.numel() and fits(indices, kind) and fits(values, (dtype,))
        for indices, values in messages
    )


def _columns(messages: Sequence[Message]) -> tuple[list[Tensor], list[Tensor]]:
    """All lists of indices, and all lists of values."""
    return [indices for indices, _ in messages], [values for _, values in messages]


def _check(status: int, numel: int) -> None:
    """Turn the status of a kernel into the error that the reference raises."""
    if status != OK:
        raise checks.unordered() if status == _ORDER else checks.outside(numel)
