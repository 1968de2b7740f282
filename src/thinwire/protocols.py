"""The four kinds of part, each an answer to one question, each with its law.

Every part is a frozen dataclass of options without state: what changes from step to step comes in by argument.
`tests/laws` holds every registered part to the laws named here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from torch import Tensor

from thinwire.debt import Debt, none_of
from thinwire.types import Delivery, Selection, Traffic, Turn, unit_count
from thinwire.units import flatten, take

SHORT = 1 << 16
"""Bytes of a short letter, for which delays matter more than bandwidth."""


class Wire(Protocol):
    """The few ways in which ranks meet. Every call is made by all ranks in the same order.

    Tensors of bytes are uint8 on the CPU. Each call returns, or raises a typed error by its deadline.
    """

    @property
    def rank(self) -> int:
        """This rank."""

    @property
    def world(self) -> int:
        """All ranks."""

    @property
    def broken(self) -> str | None:
        """Why this wire is not used any more, if so."""

    @property
    def calls(self) -> int:
        """How many of the calls below were begun: how far this rank is in the common sequence."""

    @property
    def traffic(self) -> Traffic:
        """What has crossed the wire so far, seen from this rank."""

    def abandon(self, why: str) -> None:
        """Tell the others that this rank cannot make the next call of the common sequence; the wire is broken."""

    def announce(self, note: Tensor) -> None:
        """Send everybody a note of any length, to be heard by `hear`; it must not change before.

        It is on its way at once. Another thread may call it, also between the calls of an exchange: it is no call of
        the common sequence. What goes wrong is raised by `hear`.
        """

    def hear(self) -> list[Tensor]:
        """Everybody's oldest note that was not heard yet, in rank order: one round.

        Waits for ranks that still compute.
        """

    def resync(self, mark: bytes) -> None:
        """Forget all notes that were announced and not heard, by all ranks. The mark is a note like no other."""

    def post(self, letters: Mapping[int, Tensor]) -> None:
        """Send each of some ranks a letter. Every `post` has its `collect`; they go by different letters, in order.

        A letter must not change before it was collected. It is on its way at once, and arrives after one one-way delay
        if it is not much longer than the last ones. What goes wrong is raised by `collect`.
        """

    def collect(self, sources: Collection[int]) -> dict[int, Tensor]:
        """The next letter, of any length, of each of some ranks, when those that were posted are sent: one round."""

    def all_gather(self, message: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """Everybody's message, in rank order; ``sizes`` are their lengths, known to all."""

    def broadcast(self, message: Tensor, size: int, root: int) -> Tensor:
        """The root's message of ``size`` bytes; the others' ``message`` is not looked at."""

    def all_reduce(self, values: Tensor) -> Tensor:
        """The sum over all ranks, bitwise the same on each; ``values`` is used up."""


class Selector(ABC):
    """What is worth sending?

    Law (conservation): the gradient is what was selected plus what was kept, element by element, exactly.
    """

    @property
    def width(self) -> int:
        """Elements of one unit."""
        return 1

    @property
    def covers_everything(self) -> bool:
        """Selects every unit, whatever the data."""
        return False

    @property
    def ignores_data(self) -> bool:
        """Which units it selects follows from the seed and the size alone."""
        return self.covers_everything

    @property
    def looks_at_weights(self) -> bool:
        """Compares gradients with the weights they belong to, if a debt has them."""
        return False

    @property
    def rounds_values(self) -> bool:
        """May give other values than it was given."""
        return False

    def budget(self, units: int) -> int:
        """How many of ``units`` units it selects at the most when nobody says a number."""
        return units

    @abstractmethod
    def choose(self, gradient: Tensor, k: int, seed: int) -> Tensor | None:
        """The units, strictly increasing, at most ``k`` of them; None for all of them.

        Args:
            gradient: Flat, contiguous, finite, float32 or float64.
            k: Between 0 and the number of units.
            seed: For a selector that draws lots.
        """

    def at(self, gradient: Tensor, indices: Tensor | None) -> Selection:
        """What this selector would send of the given units: their values, rounded if it rounds."""
        return Selection(indices, take(gradient, indices, self.width), gradient.numel(), self.width)

    def select(self, gradient: Tensor, k: int | None = None, *, seed: int = 0) -> Selection:
        """Select units of a gradient.

        Args:
            gradient: Any shape and layout, finite numbers.
            k: At most so many units, the largest first; None leaves it to the selector's own rule.
            seed: For a selector that draws lots.

        Returns:
            The selected units with their values; at equal magnitude the lowest index goes first.
        """
        flat = flatten(gradient)
        units = unit_count(flat.numel(), self.width)
        wanted = self.budget(units) if k is None else k
        return self.at(flat, self.choose(flat, min(max(wanted, 0), units), seed))

    def select_from(self, debt: Debt, *, seed: int = 0) -> Selection:
        """Select from a debt by the selector's own rule; nothing, where it is not all finite numbers.

        A selector that can select while it adds up overrides this (see `thinwire.TopK`).
        """
        return self.select(debt.total, seed=seed) if debt.is_finite else none_of(debt, self.width)


class Agreement(ABC):
    """Whose coordinates?

    Law: with a shared agreement every rank sends the same units.
    """

    shared: ClassVar[bool]
    """Every rank ends up with the same coordinates."""
    tells: ClassVar[bool] = False
    """One rank has to tell the others its coordinates (a letter without values)."""

    @abstractmethod
    def propose(self, selector: Selector, debt: Debt, turn: Turn) -> Selection | None:
        """What this rank would send before it has heard anybody; None where another rank decides.

        Usually `selector.select_from` of the debt.
        """

    def weigh(self, proposal: Selection) -> float:
        """What this rank says about its proposal in the roll call, for all to decide whose coordinates count."""
        return 0.0

    def speakers(self, turn: Turn, weights: Sequence[float] = ()) -> tuple[int, ...]:
        """The ranks whose coordinates count, in rank order; without everybody's weights, those whose may count."""
        return (turn.rank,)

    def tell(self, letter: Tensor, sizes: Mapping[int, int], wire: Wire) -> Mapping[int, Tensor]:
        """Make the speakers' letters known to all.

        Args:
            letter: This rank's own; not looked at where it is no speaker.
            sizes: How long each speaker's letter is.
            wire: The ranks.

        Returns:
            The letter of each speaker; a speaker may find its own there, or not.
        """
        return {speaker: wire.broadcast(letter, size, speaker) for speaker, size in sizes.items()}

    def goes_along(self, letter: int) -> bool:
        """Whether a letter of so many bytes is told to all at once, along with the roll call, in no round of its own.

        A short one: a long one would leave its sender ``world - 1`` times.
        """
        return self.tells and letter <= SHORT

    def settle(self, told: Sequence[Selection], turn: Turn) -> Selection:
        """The common units, from those of every speaker; of what was heard from others, the values are empty."""
        return told[0]

    def calls(self, world: int) -> int:
        """How many calls of the wire it makes to tell a letter that does not go along."""
        return int(self.tells)

    def traffic(self, world: int, letter: int) -> Traffic:
        """What it costs, beside the roll call, to make the speakers' letters known to all; the longest is given."""
        return Traffic()


class Codec(ABC):
    """How do coordinates look on the wire?

    Law (round trip): ``read(write(indices)) == indices``, for every strictly increasing list.
    """

    number: ClassVar[int]
    """Its number in the wire format."""
    full_only: ClassVar[bool] = False
    """Can only write 'every unit'."""

    @abstractmethod
    def write(self, selection: Selection) -> Tensor:
        """The coordinate section, uint8 on the CPU."""

    @abstractmethod
    def read(self, section: Tensor, count: int, units: int) -> Tensor | None:
        """The indices in a coordinate section (None for every unit), trusting nothing.

        Raises:
            WireError: The bytes are not what `write` writes for ``count`` of ``units`` units.
        """

    @abstractmethod
    def size(self, count: int, units: int) -> float:
        """Bytes of the section; the expectation for uniformly spread indices where it depends on them."""


def whole(values: Tensor) -> Selection:
    """All of a tensor, exactly."""
    return Selection(None, values, values.numel())


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """What one rank brings to an exchange."""

    selection: Selection
    room: Tensor
    """A flat buffer as large as the group, of the values' type. The mean is made in it, unless it comes in it."""
    shared: bool
    """Every rank's selection has these coordinates."""
    letter: Tensor
    """The selection as a message, where ranks have coordinates of their own; empty otherwise."""
    sizes: Sequence[int]
    """The lengths of everybody's letters."""
    turn: Turn
    codec: Codec
    """How coordinates look, for an exchange that writes its own letters."""
    shapes: Sequence[Sequence[int]] = ()
    """Of each parameter, in the order of its memory, for an exchange that needs them; none where nobody knows them."""
    rounded: Callable[[Tensor], Selection] = whole
    """All of a flat tensor as the plan's selector would write it, for an exchange that rounds what it adds up."""
    arrived: Sequence[Tensor] | None = None
    """Everybody's letters, empty where one is not `SHORT` and has not come with the roll call; if it is `early`."""


class Exchange(ABC):
    """How do messages meet?

    Laws: delivery (every rank gets the same bits, and they are the mean of what was sent and is not owed again) and
    honest cost
    (bytes and rounds declared are bytes and rounds counted).
    """

    needs_shared: ClassVar[bool]
    """Adds up values position by position, so all ranks must send the same coordinates."""
    takes_letters: ClassVar[bool] = True
    """Sends the whole selection as one letter, which is then written before the roll call."""
    depends_on_data: ClassVar[bool] = False
    """What it costs depends on what is sent: `traffic` is a bound or nearly so, and `forecast` is exact."""
    drops: ClassVar[bool] = False
    """May deliver less than was sent, and says then what is to be owed again."""
    needs_shapes: ClassVar[bool] = False
    """Takes parameters for matrices, so all of them must be sent, exactly, and their shapes be known."""

    @property
    def early(self) -> bool:
        """Everybody needs everybody's letter, so short ones come along with the roll call, one round earlier."""
        return False

    @abstractmethod
    def deliver(self, outgoing: Outgoing, wire: Wire) -> Delivery:
        """Bring everybody's selections together."""

    def calls(self, world: int) -> int:
        """How many calls of the wire it makes, whatever the data."""
        return 1

    @abstractmethod
    def traffic(self, world: int, payload: int, itemsize: int) -> Traffic:
        """Declared cost. See each exchange for what ``payload`` counts."""

    def forecast(self, brought: Sequence[Selection], codec: Codec, *, shared: bool = False) -> Traffic:
        """What it costs exactly to bring these selections together, one of each rank, if that depends on the data.

        Bytes are those of the busiest rank of each round, added up.
        """
        raise NotImplementedError(f"what {type(self).__name__} costs follows from sizes alone; see its traffic")
