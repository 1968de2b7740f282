"""Which parameter lies where in a group: the only thing that ties a bucket to names."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from thinwire.errors import AttachError


@dataclass(frozen=True)
class Span:
    """One parameter's place in a flat group."""

    name: str
    start: int
    stop: int


@dataclass(frozen=True)
class Layout:
    """The parameters of one group, in order and without gaps."""

    spans: tuple[Span, ...]

    @staticmethod
    def of(sizes: Mapping[str, int]) -> "Layout":
        """Parameters of these sizes, one behind the other."""
        spans, start = [], 0
        for name, size in sizes.items():
            spans.append(Span(name, start, start + size))
            start += size
        return Layout(tuple(spans))

    @property
    def numel(self) -> int:
        """Elements of the group."""
        return self.spans[-1].stop if self.spans else 0

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in order."""
        return tuple(span.name for span in self.spans)

    @cached_property
    def fingerprint(self) -> bytes:
        """Eight bytes that differ for layouts that differ in any name, size or order."""
        text = "\n".join(f"{span.name} {span.stop - span.start}" for span in self.spans)
        return hashlib.blake2b(text.encode(), digest_size=8).digest()


@dataclass(frozen=True)
class Group:
    """Some of a bucket's parameters, synchronised in one exchange.

    Attributes:
        layout: Where they lie in the group's own flat tensor.
        places: Where each of them begins in the bucket; empty where the group is the bucket.
    """

    layout: Layout
    places: tuple[int, ...] = ()

    def gather(self, bucket: Tensor) -> Tensor:
        """The group's elements; the bucket itself where the group is the whole of it."""
        if not self.places:
            return bucket
        sizes = [span.stop - span.start for span in self.layout.spans]
        return torch.cat([bucket[at : at + size] for at, size in zip(self.places, sizes, strict=True)])

    def scatter(self, values: Tensor, bucket: Tensor) -> None:
        """Write the group's elements back to their places in the bucket."""
        if not self.places:
            bucket.copy_(values)
            return
        for at, span in zip(self.places, self.layout.spans, strict=True):
            bucket[at : at + span.stop - span.start] = values[span.start : span.stop]


def layout_of(buffer: Tensor, gradients: Sequence[Tensor], names: Sequence[str]) -> Layout:
    """The layout of a DDP bucket, read off where its gradients lie in its buffer.

    Raises:
        AttachError: The gradients do not tile the buffer (no known version of DDP does this).
    """
    base = buffer.storage_offset()
    starts = [int(gradient.storage_offset() - base) for gradient in gradients]
    spans = tuple(
        Span(name, start, start + gradient.numel())
        for name, start, gradient in zip(names, starts, gradients, strict=True)
    )
    ends = [0, *(span.stop for span in spans)]
    if starts != ends[:-1] or ends[-1] != buffer.numel():
        raise AttachError(
            f"a bucket of {buffer.numel()} elements is not tiled by its gradients, which begin at {starts}"
        )
    return Layout(spans)


def split(bucket: Layout, remembered: Sequence[Sequence[str]]) -> list[Group]:
    """Cut a bucket into the groups that an earlier run ended with.

    DDP builds its final buckets only after its first step. A resumed run starts with other buckets than the run
    it continues; cut along the remembered groups it selects, codes and sums the very same way, hence bitwise
    the same. A bucket that is no union of remembered groups stays whole.

    Args:
        bucket: The bucket as DDP has it now.
        remembered: The names of each group, in order.
    """
    here = {span.name: span for span in bucket.spans}
    inside = [names for names in remembered if set(names) <= here.keys()]
    if bucket.names in [tuple(names) for names in inside] or sum(map(len, inside)) != len(here):
        return [Group(bucket)]
    return [
        Group(
            Layout.of({name: here[name].stop - here[name].start for name in names}),
            tuple(here[name].start for name in names),
        )
        for names in inside
    ]
