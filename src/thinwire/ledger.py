"""What every parameter still owes: error feedback, kept by name, changed only by steps that succeeded.

A page holds one group of parameters in one contiguous piece. Staging a step writes *owed + gradient* into a second
buffer and takes out of it what is sent; committing swaps the two buffers, aborting forgets the second. So a
failed, skipped or non-finite step leaves every debt as it was, bit for bit, at no cost.
"""

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from thinwire.debt import Debt, Layer
from thinwire.errors import StateError
from thinwire.layout import Layout, Span
from thinwire.plans import Feedback
from thinwire.rooms import Rooms
from thinwire.types import Selection
from thinwire.units import add_, put_


class Page:
    """The debts of one group of parameters."""

    def __init__(self, layout: Layout, dtype: torch.dtype, device: torch.device) -> None:
        """Open a page on which nothing is owed."""
        self.layout = layout
        self.owed = torch.zeros(layout.numel, dtype=dtype, device=device)
        self.velocity: Tensor | None = None
        self._next_owed = torch.empty_like(self.owed)
        self._next_velocity: Tensor | None = None
        self._debt: Debt | None = None
        self._silent: tuple[Span, ...] = ()
        self._given_back = False

    def stage(
        self,
        gradient: Tensor,
        feedback: Feedback,
        silent: tuple[Span, ...] = (),
        weights: Sequence[Tensor] | None = None,
    ) -> Debt:
        """Begin a step.

        Args:
            gradient: This step's gradient of the group, flat.
            feedback: How to remember.
            silent: Parameters that send nothing this step and keep their debts: DDP would throw away what is
                delivered for a parameter that no rank used.
            weights: Of each parameter, flat, for selectors that look at them.

        Returns:
            What is owed now, old debts and new gradient. `keep` takes out of it what is sent.
        """
        self._silent = silent
        self._given_back = False
        self._next_velocity = None
        if feedback.momentum:
            before = self.velocity if self.velocity is not None else torch.zeros_like(self.owed)
            gradient = self._next_velocity = before * feedback.momentum + gradient
        self._debt = Debt(self.owed, gradient, self._next_owed, self._layers(weights))
        self._debt.hush(silent)
        return self._debt

    def _layers(self, weights: Sequence[Tensor] | None) -> list[Layer]:
        spans = self.layout.spans
        known = weights if weights is not None else [None] * len(spans)
        return [Layer(span.start, span.stop, each) for span, each in zip(spans, known, strict=True)]

    def keep(self, sent: Selection, feedback: Feedback) -> None:
        """Take what is sent out of what is owed: of values sent exactly nothing remains, of rounded ones the rest."""
        owed, velocity = self._next_owed, self._next_velocity
        self._staged.take_out(sent)
        if velocity is not None and feedback.masking:
            put_(velocity, sent, torch.zeros_like(sent.values))
        for span in self._silent:
            owed[span.start : span.stop] = self.owed[span.start : span.stop]
            if velocity is not None:
                old = self.velocity
                velocity[span.start : span.stop] = 0 if old is None else old[span.start : span.stop]

    @property
    def _staged(self) -> Debt:
        if self._debt is None:
            raise RuntimeError("this page has no staged step; this is a fault in thinwire")
        return self._debt

    @property
    def nothing_held(self) -> bool:
        """Whether the staged step holds back nothing, so that a plan which sends everything leaves no debt.

        Rounding of the mean to a narrow gradient type leaves one.
        """
        return not self._silent and not self._given_back

    def give_back(self, dropped: Selection) -> None:
        """Owe what was sent but not delivered; its mean over the ranks is what was dropped."""
        add_(self._next_owed, dropped)
        self._given_back = True

    def commit(self) -> None:
        """The step succeeded."""
        if self._debt is not None:
            self._debt.settle()
        self._debt = None
        self.owed, self._next_owed = self._next_owed, self.owed
        self.velocity = self._next_velocity

    def rescale(self, factor: float) -> None:
        """Express all debts in another loss scale. Loss scales are powers of two, so this is exact."""
        self.owed.mul_(factor)
        if self.velocity is not None:
            self.velocity.mul_(factor)


class Ledger:
    """All pages, and where each parameter's debt is.

    Keyed by parameter name and never by bucket: DDP rebuilds its buckets after the first step, in another order.

    Attributes:
        scale: The loss scale in which debts are expressed.
        steps: How many steps were carried out so far.
        rooms: Buffers that every step uses again.
    """

    def __init__(self) -> None:
        """Open an empty ledger."""
        self.scale = 1.0
        self.steps = 0
        self.rooms = Rooms()
        self._home: dict[str, tuple[Page, Span]] = {}

    def __iter__(self) -> Iterator[str]:
        """The names of all parameters that have a page."""
        return iter(self._home)

    def page(self, layout: Layout, like: Tensor) -> Page:
        """The page for a group; debts of its parameters move there from wherever they are.

        Args:
            layout: The group.
            like: A tensor of the type and on the device that debts are kept in.

        Raises:
            StateError: A parameter's debt has another size than the parameter.
        """
        homes = {self._home[name][0] for name in layout.names if name in self._home}
        if len(homes) == 1 and (page := homes.pop()).layout == layout:
            return page
        for span in layout.spans:
            self._check_size(span)
        page = Page(layout, like.dtype, like.device)
        for span in layout.spans:
            if span.name in self._home:
                self._move(span, page)
        self._home.update({span.name: (page, span) for span in layout.spans})
        return page

    def _check_size(self, span: Span) -> None:
        old = self._home[span.name][1] if span.name in self._home else span
        if old.stop - old.start != span.stop - span.start:
            raise StateError(
                f"parameter {span.name} has {span.stop - span.start} elements, its debt has {old.stop - old.start}; "
                f"the saved state belongs to another model"
            )

    def _move(self, span: Span, page: Page) -> None:
        old, place = self._home[span.name]
        page.owed[span.start : span.stop] = old.owed[place.start : place.stop]
        if old.velocity is not None:
            if page.velocity is None:
                page.velocity = torch.zeros_like(page.owed)
            page.velocity[span.start : span.stop] = old.velocity[place.start : place.stop]

    @property
    def owes_anything(self) -> bool:
        """Whether any parameter has a page (its debt may be zero)."""
        return bool(self._home)

    def close(self, names: Iterable[str]) -> None:
        """Forget the pages of parameters that owe nothing any more."""
        for name in names:
            self._home.pop(name, None)

    def rescale(self, scale: float) -> None:
        """Express all debts in another loss scale.

        Raises:
            StateError: It is no loss scale; debts are as before.
        """
        if not 0.0 < scale < float("inf"):
            raise StateError(f"a loss scale of {scale} cannot be; GradScaler.get_scale() gives a positive number")
        if scale != self.scale:
            for page in {page for page, _ in self._home.values()}:
                page.rescale(scale / self.scale)
            self.scale = scale

    def settle(self, name: str, rest: Tensor | None = None) -> None:
        """All of a parameter's debt but ``rest`` was delivered outside of a step. Its velocity, no debt, stays."""
        if name in self._home:
            page, span = self._home[name]
            page.owed[span.start : span.stop] = 0 if rest is None else rest

    def owed(self) -> dict[str, Tensor]:
        """A copy of every parameter's debt, flat, in units of the loss scale `scale`."""
        return {name: page.owed[span.start : span.stop].clone() for name, (page, span) in sorted(self._home.items())}

    def velocities(self) -> dict[str, Tensor]:
        """A copy of every parameter's velocity, for those that have one."""
        return {
            name: page.velocity[span.start : span.stop].clone()
            for name, (page, span) in sorted(self._home.items())
            if page.velocity is not None
        }

    def load(self, owed: dict[str, Tensor], velocities: dict[str, Tensor], scale: float) -> None:
        """Replace everything by saved debts."""
        self.scale = scale
        self._home = {}
        for name, debt in owed.items():
            layout = Layout.of({name: debt.numel()})
            page = Page(layout, debt.dtype, debt.device)
            page.owed.copy_(debt)
            if name in velocities:
                page.velocity = velocities[name].clone()
            self._home[name] = (page, layout.spans[0])
