"""Values on their way out of and into dense tensors, and between owners, in plain torch.

Entries are indices with a value each. A message is a tuple of strictly increasing indices and their values; a sum of
messages is made in the order of their list, so that every rank gets the same bits.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from thinwire.types import MAX_NUMEL, index_dtype

MOST_OWNERS = 1 << 15

Message = tuple[Tensor, Tensor]
"""Strictly increasing indices, and a value for each."""

_FACTOR = 0xBEA225F9EB34556D
_WORD = (1 << 64) - 1


class Split(NamedTuple):
    """Entries sorted by their owner; those of one owner are in the order they came in."""

    indices: Tensor
    values: Tensor
    counts: Tensor
    """How many each owner has, int64 and in main memory."""


class MovementKernels:
    """Movements. Values are float tensors; indices are int32 or int64, on the same device."""

    def gather(self, values: Tensor, indices: Tensor, out: Tensor | None = None) -> Tensor:
        """The values at some indices, which may be in any order.

        Args:
            values: Where to read.
            indices: What to read.
            out: Where to write; None for a new tensor.

        Returns:
            A value for each index: ``out``, if it was given.

        Raises:
            IndexError: An index lies outside ``values``. What ``out`` holds is arbitrary.
            ValueError: ``out`` is not as long as ``indices``, or of another type than ``values``.
        """
        check_out(values, indices, out)
        check_inside(indices, values.numel())
        found = values.index_select(0, indices)
        return found if out is None else out.copy_(found)

    def take_at(self, values: Tensor, indices: Tensor) -> Tensor:
        """Take out the values at strictly increasing indices: return them, and leave zeros behind.

        Raises:
            ValueError: The indices do not increase strictly. Nothing was taken.
            IndexError: An index lies outside ``values``. Nothing was taken.
        """
        check_list(indices, values.numel())
        taken = values.index_select(0, indices)
        values.index_fill_(0, indices.long(), 0.0)
        return taken

    def scatter_add_(self, out: Tensor, indices: Tensor, values: Tensor) -> None:
        """Add each value at its index. Indices are unique, so the result does not depend on any order."""
        out.index_add_(0, indices, values)

    def scatter_sum_(self, out: Tensor, messages: Sequence[Message]) -> None:
        """Add messages in their order.

        Raises:
            ValueError: The indices of a message do not increase strictly, or are not as many as its values, or its
                values are of another type than ``out``. Nothing was added.
            IndexError: An index lies outside ``out``. Nothing was added.
        """
        check_messages(messages, out.numel(), out.dtype)
        for indices, values in messages:
            out.index_add_(0, indices, values)

    def scatter_mean_(self, out: Tensor, messages: Sequence[Message], divisor: float) -> None:
        """Write the sum of messages, divided; zeros where there is none. What ``out`` held before does not matter.

        Args:
            out: Where to write.
            messages: What to add up, in this order, starting from zero.
            divisor: What to divide by, a positive number.

        Raises:
            ValueError: As `scatter_sum_`, or the divisor is not positive. Nothing was written.
            IndexError: As `scatter_sum_`. Nothing was written.
        """
        check_messages(messages, out.numel(), out.dtype)
        check_divisor(divisor)
        out.zero_()
        for indices, values in messages:
            out.index_add_(0, indices, values)
        out.div_(divisor)

    def merge_sum(self, messages: Sequence[Message], numel: int) -> Message:
        """The sum of messages as one message, in time linear in their entries.

        An index that one message has keeps its value to the bit, negative zeros included; the values of an index that
        several have are added in the order of the messages.

        Args:
            messages: At least one, with values of one type.
            numel: Elements of the tensor that the messages are about.

        Returns:
            The indices, in the narrowest type that fits, and the sums.

        Raises:
            ValueError: As `scatter_sum_`, or there is no message.
            IndexError: An index is not below ``numel``.
        """
        first = first_of(messages)
        check_messages(messages, numel, first.dtype)
        union = torch.unique(torch.cat([indices.long() for indices, _ in messages]))
        # -0.0 is what every number may be added to without a change; 0.0 would turn -0.0 into itself.
        sums = torch.full((union.numel(),), -0.0, dtype=first.dtype, device=first.device)
        for indices, values in messages:
            sums.index_add_(0, torch.searchsorted(union, indices.long()), values)
        return union.to(index_dtype(numel)), sums

    def dense_mean_(self, out: Tensor, tensors: Sequence[Tensor]) -> None:
        """Write the mean of tensors, added in their order. ``out`` may be one of them.

        Raises:
            ValueError: There is no tensor, or one is of another type or length than ``out``.
        """
        check_alike(out, tensors)
        total = tensors[0].clone()
        for tensor in tensors[1:]:
            total.add_(tensor)
        out.copy_(total.div_(len(tensors)))

    def owner_of(self, indices: Tensor, owners: int, seed: int) -> Tensor:
        """Who owns which index: the same on every rank and every machine.

        Indices are cut into blocks of ``owners`` neighbours. Each block is dealt out once around, starting with an
        owner drawn by a hash of the seed and the block's number. So each owner has one index of every block, and its
        place there (`place_of`) is the block's number: owned indices keep their order when they become places, and
        `index_at` leads back. Neighbours are spread evenly, strides by the hash.

        Args:
            indices: Any indices from 0 to 2**40.
            owners: How many owners there are, 2**15 at the most.
            seed: Another seed, another map.

        Returns:
            A number below ``owners`` for each index, as `owner_dtype` says.

        Raises:
            ValueError: No such number of owners.
            IndexError: An index is negative or too large.
        """
        check_owners(owners)
        check_inside(indices, MAX_NUMEL)
        blocks = indices.long() // owners
        turned = indices.long() - blocks * owners + _draw(blocks, owners, seed)
        return (turned % owners).to(owner_dtype(owners))

    def place_of(self, indices: Tensor, owners: int) -> Tensor:
        """The place of each index among those of its owner. A tensor of n elements has ceil(n / owners) places.

        Raises:
            ValueError: No such number of owners.
            IndexError: An index is negative or too large.
        """
        check_owners(owners)
        check_inside(indices, MAX_NUMEL)
        return indices // owners

    def index_at(self, places: Tensor, owner: int, owners: int, seed: int) -> Tensor:
        """The indices that one owner has at some places: the way back from `owner_of` and `place_of`.

        The last place of a tensor whose length is no multiple of ``owners`` may lead to an index beyond its end.

        Raises:
            ValueError: No such number of owners, or no such owner.
            IndexError: A place is negative, or its index does not fit into the type of the places.
        """
        check_owners(owners, owner)
        check_inside(places, MAX_NUMEL)
        blocks = places.long()
        found = blocks * owners + (owner - _draw(blocks, owners, seed)) % owners
        check_inside(found, min(MAX_NUMEL, torch.iinfo(places.dtype).max + 1))
        return found.to(places.dtype)

    def multisplit(self, indices: Tensor, values: Tensor, owner_of_each: Tensor, owners: int) -> Split:
        """Sort entries by their owner, losing none; those of one owner keep their order.

        Args:
            indices: The indices, or places, of the entries.
            values: As many values.
            owner_of_each: As many owners, as `owner_of` returns them.
            owners: How many owners there are.

        Returns:
            The sorted entries, and how many each owner has.

        Raises:
            ValueError: No such number of owners, or lists that differ in length.
            IndexError: An owner that is not below ``owners``.
        """
        check_owners(owners)
        if not indices.numel() == values.numel() == owner_of_each.numel():
            raise ValueError(
                f"{indices.numel()} indices, {values.numel()} values and {owner_of_each.numel()} owners; "
                "every entry has one of each"
            )
        check_inside(owner_of_each, owners)
        order = torch.argsort(owner_of_each, stable=True)
        counts = torch.bincount(owner_of_each.long(), minlength=owners).cpu()
        return Split(indices[order], values[order], counts)


def owner_dtype(owners: int) -> torch.dtype:
    """The type that owners are numbered in."""
    return torch.uint8 if owners <= 1 << 8 else torch.int16


def check_owners(owners: int, owner: int = 0) -> None:
    """Refuse a number of owners that there cannot be, and an owner that is not one of them."""
    if not 1 <= owners <= MOST_OWNERS:
        raise ValueError(f"{owners} owners; write a number from 1 to {MOST_OWNERS}")
    if not 0 <= owner < owners:
        raise ValueError(f"owner {owner} of {owners}; write a number from 0 to {owners - 1}")


def check_inside(indices: Tensor, numel: int) -> None:
    """Refuse indices that are not all from 0 to ``numel`` - 1."""
    if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < numel:
        raise outside(numel)


def check_list(indices: Tensor, numel: int) -> None:
    """Refuse what is not a strictly increasing list of indices from 0 to ``numel`` - 1."""
    if not bool((indices[1:] > indices[:-1]).all()):
        raise unordered()
    check_inside(indices, numel)


def check_messages(messages: Sequence[Message], numel: int, dtype: torch.dtype) -> None:
    """Refuse messages that are not sound, before anything is done with one of them."""
    for indices, values in messages:
        if indices.numel() != values.numel() or values.dtype != dtype:
            raise ValueError(
                f"a message of {indices.numel()} indices with {values.numel()} values of {values.dtype}; "
                f"every index needs a value of {dtype}"
            )
    for indices, _ in messages:
        check_list(indices, numel)


def check_divisor(divisor: float) -> None:
    """Refuse a divisor that turns zeros into something else."""
    if not divisor > 0:
        raise ValueError(f"a sum is to be divided by {divisor}; write a positive number")


def check_out(values: Tensor, indices: Tensor, out: Tensor | None) -> None:
    """Refuse a place for gathered values that is not made for them."""
    if out is not None and (out.numel() != indices.numel() or out.dtype != values.dtype):
        raise ValueError(
            f"out has {out.numel()} elements of {out.dtype}; {indices.numel()} of {values.dtype} are to be gathered"
        )


def check_alike(out: Tensor, tensors: Sequence[Tensor]) -> None:
    """Refuse tensors that have no mean to be written to ``out``."""
    if not tensors:
        raise ValueError("no tensor has no mean; write at least one")
    for tensor in tensors:
        if tensor.dtype != out.dtype or tensor.shape != out.shape:
            raise ValueError(
                f"a mean of {tensor.dtype} {tuple(tensor.shape)} is to be written to {out.dtype} {tuple(out.shape)}; "
                "all must be alike"
            )


def first_of(messages: Sequence[Message]) -> Tensor:
    """The values of the first message."""
    if not messages:
        raise ValueError("no message has no sum; write at least one, which may be empty")
    return messages[0][1]


def outside(numel: int) -> IndexError:
    """The error for an index that does not exist."""
    return IndexError(f"an index is not from 0 to {numel - 1}; nothing was changed")


def unordered() -> ValueError:
    """The error for a list that should increase and does not."""
    return ValueError("the indices do not increase strictly; sort them, each one once; nothing was changed")


def _draw(blocks: Tensor, owners: int, seed: int) -> Tensor:
    """Which owner each block begins with: the upper half of a hash, as a fraction of the owners."""
    return (_upper(_mixed(blocks + _signed(_mixed_number((seed + 0x9E3779B97F4A7C15) & _WORD)))) * owners) >> 32


def _mixed(numbers: Tensor) -> Tensor:
    """A bijection of 64-bit words in which every upper bit depends on all bits; products wrap around."""
    factor = _signed(_FACTOR)
    numbers = (numbers ^ _upper(numbers)) * factor
    return (numbers ^ ((numbers >> 29) & (_WORD >> 29))) * factor


def _mixed_number(number: int) -> int:
    """`_mixed` of one number."""
    number = ((number ^ number >> 32) * _FACTOR) & _WORD
    return ((number ^ number >> 29) * _FACTOR) & _WORD


def _upper(numbers: Tensor) -> Tensor:
    """The upper half of each word."""
    return (numbers >> 32) & 0xFFFFFFFF


def _signed(number: int) -> int:
    """The same word as torch writes it."""
    return number - (1 << 64) if number >> 63 else number
