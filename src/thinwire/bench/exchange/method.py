"""What takes part: a way to bring everybody's gradients together."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from torch import Tensor

from thinwire.layout import Layout

Forecast = Callable[[int, int], float]
"""Bytes that a rank sends, from the elements of the message and the number of ranks."""


@dataclass(frozen=True)
class Message:
    """What is exchanged: the gradients of some parameters, one behind the other, in float32.

    Attributes:
        shapes: Name and shape of each parameter, in order.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...]

    @cached_property
    def layout(self) -> Layout:
        """Where each parameter lies."""
        return Layout.of({name: math.prod(shape) for name, shape in self.shapes})

    @property
    def numel(self) -> int:
        """Elements of all parameters."""
        return self.layout.numel

    def parts(self, flat: Tensor) -> list[Tensor]:
        """The parameters' pieces of a flat tensor, in their shapes, without a copy.

        Args:
            flat: The message.
        """
        spans = zip(self.layout.spans, self.shapes, strict=True)
        return [flat[span.start : span.stop].view(shape) for span, (_, shape) in spans]


class Contract(StrEnum):
    """What a method promises about the mean that it delivers."""

    EXACT = "exact"
    """It is the mean of what went in."""
    KEEPS = "keeps"
    """What is not delivered is still owed: the mean of what went in less the mean of `Method.owed`."""
    LOSSY = "lossy"
    """What is lost is lost; that all ranks have the same is all that can be checked."""


class Method(ABC):
    """One way to exchange one message. It is made for a turn, on every rank alike, and dropped behind it.

    Attributes:
        seconds: Of the last exchange: ``compress``, ``exchange`` and ``decode``, as far as they can be told apart.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @abstractmethod
    def exchange(self, gradient: Tensor) -> Tensor | Sequence[Tensor]:
        """Bring everybody's gradients together.

        Args:
            gradient: This rank's, flat; it may be overwritten.

        Returns:
            The mean, flat or parameter by parameter; good until the next exchange.
        """

    @abstractmethod
    def forget(self) -> None:
        """Owe nothing any more; keep all buffers, and what was learned."""

    def owed(self) -> Tensor | None:
        """What this rank has not sent, flat; None where nothing is kept."""
        return None


@dataclass(frozen=True, kw_only=True)
class Contestant:
    """A method with its name.

    Attributes:
        name: For the tables.
        make: Makes it, on every rank.
        contract: What it promises.
        density: The part of the elements that it sends, where it has one.
        peer: Somebody else's method, and not one of thinwire's plans.
        absent: Why it cannot take part here, and how to get it; empty if it can.
        forecast: About how many bytes a rank will send, so that nobody waits for what a thin wire cannot do.
        note: What a reader must know about it.
    """

    name: str
    make: Callable[[Message], Method]
    contract: Contract
    density: float | None = None
    peer: bool = False
    absent: str = ""
    forecast: Forecast = field(default=lambda numel, world: 0.0)
    note: str = ""


def ring_bytes(itemsize: float) -> Forecast:
    """What a ring all-reduce of every element sends.

    Args:
        itemsize: Bytes of an element.
    """
    return lambda numel, world: 2 * (world - 1) / world * numel * itemsize


def gather_bytes(itemsize: float) -> Forecast:
    """What an all-gather of every rank's elements sends.

    Args:
        itemsize: Bytes of an element of the message.
    """
    return lambda numel, world: (world - 1) * numel * itemsize
