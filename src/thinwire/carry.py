"""One group's whole way, from the local gradient to the global mean. Read `depart` and `arrive` first: that is it.

Everything before the roll call is local; a rank that fails there says so in the roll call, and all ranks raise.
Everything behind it is done by all ranks alike. Between the two lies the wire's delay, and there other groups depart.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from thinwire import message
from thinwire.debt import Debt
from thinwire.errors import PeerFailedError
from thinwire.layout import Layout, Span
from thinwire.ledger import Ledger, Page
from thinwire.message import Expected, Kind
from thinwire.observe.stats import Stopwatch
from thinwire.plans import Plan
from thinwire.protocols import SHORT, Outgoing, Wire, whole
from thinwire.roll_call import Record, Roll, What, announce, describe, hear, in_step
from thinwire.types import Delivery, Observation, Selection, Traffic, Turn
from thinwire.units import accumulation_dtype, add_, energy, flatten, is_finite

_DTYPE_NUMBERS = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2, torch.float16: 3}


@dataclass(frozen=True, kw_only=True)
class Cargo:
    """A group's gradient, and what is known about it."""

    gradient: Tensor
    """Flat; read, never written."""
    layout: Layout
    turn: Turn
    loss_scale: float = 1.0
    weights: Sequence[Tensor] | None = None
    """Of each parameter, flat and in the order of its memory, where the selector looks at them."""
    shapes: Sequence[Sequence[int]] = ()
    """Of each parameter, in the order of its memory, where the exchange looks at them."""
    hold_silent: bool = False
    """Parameters whose gradient here is all zeros send nothing and keep their debts."""
    look: Callable[[Tensor, Debt | None], None] | None = None
    """Looks at the gradient, and at what is owed with it, before anything is taken out."""

    def record(self, plan: Plan, what: What = What.GROUP) -> Record:
        """What the roll call must hear about it from every rank alike."""
        turn = self.turn
        return Record(
            what=what, rank=turn.rank, world=turn.world, generation=turn.generation, step=turn.step, group=turn.group,
            numel=self.layout.numel, layout=self.layout.fingerprint, plan=plan.fingerprint,
            loss_scale=self.loss_scale, dtype=_DTYPE_NUMBERS.get(self.gradient.dtype, 255),
        )  # fmt: skip


@dataclass(kw_only=True)
class Carried:
    """What came of it."""

    mean: Tensor
    """The mean over the ranks, of the gradient's type; NaN where some rank's gradient was not finite.

    It may lie in one of the ledger's rooms, and is then good until the next step's exchange of the same group.
    """
    seen: Observation
    page: Page | None = None
    """The staged page, to be committed with the step."""
    overflow: bool = False
    """The step must not count."""


@dataclass(kw_only=True)
class _Offer:
    """What this rank has prepared before it hears from the others."""

    gradient: Tensor
    """What is sent where nothing is owed."""
    room: Tensor
    """Where the mean will be made; of the type in which values are sent and summed."""
    debt: Debt | None = None
    proposal: Selection | None = None
    letter: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.uint8))
    weight: float = 0.0
    page: Page | None = None
    finite: bool = True
    failure: Exception | None = None


@dataclass(frozen=True, kw_only=True)
class Underway:
    """A group whose record is on its way; `arrive` does what was announced."""

    cargo: Cargo
    plan: Plan
    offer: _Offer
    record: Record
    watch: Stopwatch


def carry(cargo: Cargo, plan: Plan, ledger: Ledger, wire: Wire) -> Carried:
    """Bring one group's gradients together: `depart` and `arrive`."""
    return depart(cargo, plan, ledger, wire)()


def depart(cargo: Cargo, plan: Plan, ledger: Ledger, wire: Wire) -> Callable[[], Carried]:
    """Do the local half and tell the others, with the letter where all need it. Waits for nobody.

    Args:
        cargo: The gradient.
        plan: How.
        ledger: What is owed; a page of it is staged, and committed by the caller when the whole step succeeded.
        wire: The ranks.

    Returns:
        `arrive`, to be called when the groups before this one have arrived. A failure here is told to all in the roll
        call, and raised there.
    """
    watch = Stopwatch()
    offer = _prepare(cargo, plan, ledger, watch)
    record = replace(
        cargo.record(plan), coordinates=_lots(plan, offer), letter=offer.letter.numel(), weight=offer.weight,
        overflow=not offer.finite, owing=offer.page is not None, failure=describe(offer.failure),
    )  # fmt: skip
    with watch("agree"):
        announce(wire, record, offer.letter if _goes_along(plan, offer.letter) else None)
    underway = Underway(cargo=cargo, plan=plan, offer=offer, record=record, watch=watch)
    return lambda: arrive(underway, ledger, wire)


def _goes_along(plan: Plan, letter: Tensor) -> bool:
    if plan.agreement.tells:
        return plan.agreement.goes_along(letter.numel())
    return plan.exchange.early and letter.numel() <= SHORT


def arrive(underway: Underway, ledger: Ledger, wire: Wire) -> Carried:
    """Hear the others, and do what was announced.

    Args:
        underway: What has departed.
        ledger: What is owed.
        wire: The ranks.

    Returns:
        The mean, the same bits on every rank.

    Raises:
        SyncError: The same kind on every rank where the roll call found it; on this rank alone where its own
            part failed behind the roll call (the vote at the end of the step tells the others).
    """
    cargo, plan, offer, watch = underway.cargo, underway.plan, underway.offer, underway.watch
    before = wire.traffic
    with watch("agree"):
        try:
            roll = hear(wire, underway.record, plan)
        except PeerFailedError as error:
            raise error from offer.failure
    if roll.overflow:
        nothing = torch.full_like(cargo.gradient, torch.nan)
        return Carried(mean=nothing, seen=_seen(cargo, offer, watch, since(wire, before)), overflow=True)
    with in_step(wire, _calls(plan, cargo, roll)):
        if roll.owing and offer.page is None:
            # Only here nothing is owed. All ranks must sum the same type, so this one opens a page as well.
            _open_page(offer, cargo, plan, ledger)
            assert offer.debt is not None
            offer.proposal = plan.selector.at(offer.debt.total, None)
            offer.room = _room(offer, cargo, ledger)
        with watch("agree"):
            selection = _settle(cargo, plan, offer, roll, wire)
        with watch("exchange"):
            delivery = plan.exchange.deliver(_outgoing(cargo, plan, offer, selection, roll), wire)
    with watch("ledger"):
        if offer.page is not None:
            offer.page.keep(selection, plan.feedback)
    with watch("mean"):
        mean, finite = _mean(delivery, cargo, offer.page, offer.room)
    through = selection if delivery.owed is None else selection.with_values(selection.values - delivery.owed.values)
    seen = _seen(cargo, offer, watch, since(wire, before), through)
    return Carried(mean=mean, seen=seen, page=offer.page, overflow=not finite)


def _calls(plan: Plan, cargo: Cargo, roll: Roll) -> int:
    """How many calls of the wire are to come."""
    world = cargo.turn.world
    gathered = plan.exchange.early and not plan.shares_coordinates and max(roll.letters) <= SHORT
    told = plan.agreement.calls(world) if _late(plan, cargo, roll) else 0
    return told + (0 if gathered else plan.exchange.calls(world))


def _late(plan: Plan, cargo: Cargo, roll: Roll) -> list[int]:
    """The ranks whose coordinates count and have not come along with the roll call."""
    speakers = plan.agreement.speakers(cargo.turn, roll.weights) if plan.agreement.tells else ()
    return [speaker for speaker in speakers if not roll.came_along[speaker].numel()]


def _prepare(cargo: Cargo, plan: Plan, ledger: Ledger, watch: Stopwatch) -> _Offer:
    """The local half: ledger, selector, agreement, codec. What goes wrong here is told to all in the roll call."""
    offer = _Offer(gradient=cargo.gradient, room=torch.empty(0))
    try:
        with watch("ledger"):
            if ledger.owes_anything or not plan.keeps_nothing:
                _open_page(offer, cargo, plan, ledger)
            elif not plan.exchange.needs_shared:
                # Messages hold finite numbers only. (An all-reduce of everything carries NaN as plain DDP does.)
                offer.gradient = flatten(cargo.gradient)
                offer.finite = is_finite(offer.gradient)
        if cargo.look is not None:
            cargo.look(offer.gradient, offer.debt)
        with watch("select"):
            offer.room = _room(offer, cargo, ledger)
            if offer.debt is None:
                # Nothing is owed and nothing will be: the gradient itself, without a copy, in its own type.
                offer.proposal = Selection(None, offer.gradient, offer.gradient.numel())
            else:
                offer.proposal = plan.agreement.propose(plan.selector, offer.debt, cargo.turn)
                offer.finite = offer.debt.is_finite
        with watch("encode"):
            if offer.finite and offer.proposal is not None and cargo.turn.rank in plan.agreement.speakers(cargo.turn):
                offer.weight = plan.agreement.weigh(offer.proposal)
                offer.letter = _letter(offer.proposal, plan, cargo.turn)
    except Exception as error:
        offer.failure = error
    return offer


def _open_page(offer: _Offer, cargo: Cargo, plan: Plan, ledger: Ledger) -> None:
    """Add what is owed to what is new."""
    like = torch.empty(0, dtype=accumulation_dtype(cargo.gradient.dtype), device=cargo.gradient.device)
    page = ledger.page(cargo.layout, like)
    gradient = flatten(cargo.gradient)
    offer.debt = page.stage(gradient, plan.feedback, _silent(gradient, cargo), cargo.weights)
    offer.page = page


def _room(offer: _Offer, cargo: Cargo, ledger: Ledger) -> Tensor:
    """Where the mean will be made. Not in DDP's bucket: an exchange that is given up may write into it much later."""
    like = offer.gradient if offer.page is None else offer.page.owed
    return ledger.rooms.get("mean", cargo.layout, like)


def _letter(proposal: Selection, plan: Plan, turn: Turn) -> Tensor:
    """What has to be said in bytes before values can be added up: nothing, where all know the coordinates."""
    if plan.agreement.tells:
        return message.encode(proposal, plan.codec, turn, kind=Kind.COORDINATES)
    if plan.shares_coordinates or not plan.exchange.takes_letters:
        return torch.empty(0, dtype=torch.uint8)
    return message.encode(proposal, plan.codec, turn)


def _silent(gradient: Tensor, cargo: Cargo) -> tuple[Span, ...]:
    """The parameters that send nothing this step."""
    if not cargo.hold_silent:
        return ()
    return tuple(s for s in cargo.layout.spans if not bool(gradient[s.start : s.stop].any()))


def _lots(plan: Plan, offer: _Offer) -> int:
    """A checksum of coordinates drawn by lot: another version of numpy could draw others."""
    drawn = plan.agreement.shared and not plan.agreement.tells and not plan.selector.covers_everything
    if not drawn or offer.proposal is None:
        return 0
    return zlib.crc32(offer.proposal.indices.cpu().numpy().data)


def _settle(cargo: Cargo, plan: Plan, offer: _Offer, roll: Roll, wire: Wire) -> Selection:
    """What this rank sends, now that everybody's coordinates are known."""
    proposal = offer.proposal
    if plan.agreement.tells:
        speakers, late = plan.agreement.speakers(cargo.turn, roll.weights), _late(plan, cargo, roll)
        letters = dict(enumerate(roll.came_along))
        if late:
            letters |= plan.agreement.tell(offer.letter, {speaker: roll.letters[speaker] for speaker in late}, wire)
        told = []
        for speaker in speakers:
            mine = proposal is not None and speaker == cargo.turn.rank
            told.append(proposal if proposal is not None and mine else _heard(letters[speaker], cargo, plan, offer))
        agreed = plan.agreement.settle(told, cargo.turn)
        if agreed is not proposal:
            owed = offer.gradient if offer.debt is None else offer.debt.total
            return plan.selector.at(owed, None if agreed.is_full else agreed.indices.to(owed.device))
    assert proposal is not None
    return proposal


def _heard(letter: Tensor, cargo: Cargo, plan: Plan, offer: _Offer) -> Selection:
    """Another rank's coordinates."""
    dtype = offer.gradient.dtype if offer.debt is None else offer.room.dtype
    expected = Expected(numel=cargo.layout.numel, width=plan.selector.width, dtype=dtype, turn=cargo.turn)
    return message.decode(letter, expected, kind=Kind.COORDINATES)


def _outgoing(cargo: Cargo, plan: Plan, offer: _Offer, selection: Selection, roll: Roll) -> Outgoing:
    """What this rank brings to the exchange."""
    shared = plan.shares_coordinates
    return Outgoing(
        selection=selection, room=offer.room, shared=shared, letter=offer.letter, sizes=roll.letters, turn=cargo.turn,
        codec=plan.codec, shapes=cargo.shapes, rounded=lambda values: plan.selector.at(values, None),
        arrived=roll.came_along if plan.exchange.early and not shared else None,
    )  # fmt: skip


def _mean(delivery: Delivery, cargo: Cargo, page: Page | None, room: Tensor) -> tuple[Tensor, bool]:
    """Add up in rank order, divide, and write in the gradient's own type; what that rounds off stays owed."""
    first = delivery.parts[0]
    if len(delivery.parts) == 1 and first.is_full:
        total = first.values[: first.numel]
    else:
        total = room.zero_()
        for part in delivery.parts:
            add_(total, part)
    if delivery.divisor != 1:
        total.div_(delivery.divisor)
    mean = total.to(cargo.gradient.dtype)
    if page is None:
        return mean, True
    finite = is_finite(mean)
    if finite and delivery.owed is not None:
        page.give_back(delivery.owed)
    if finite and mean.dtype != total.dtype:
        page.give_back(whole(total - mean.to(total.dtype)))
    return mean, finite


def since(wire: Wire, before: Traffic) -> Traffic:
    """What has crossed the wire since."""
    now = wire.traffic
    return Traffic(bytes_sent=now.bytes_sent - before.bytes_sent, rounds=now.rounds - before.rounds)


def _seen(
    cargo: Cargo, offer: _Offer, watch: Stopwatch, traffic: Traffic, sent: Selection | None = None
) -> Observation:
    """What there is to say about it; nothing was sent where some rank's gradient was not finite."""
    gain = 1.0
    if sent is not None and offer.debt is not None and offer.debt.energy > 0.0:
        gain = min(1.0, energy(sent.values) / offer.debt.energy)
    return Observation(
        step=cargo.turn.step, group=cargo.turn.group, numel=cargo.layout.numel,
        sent=0 if sent is None else min(sent.count * sent.width, sent.numel), gain=gain,
        bytes_sent=traffic.bytes_sent, rounds=traffic.rounds, seconds=dict(watch.seconds),
    )  # fmt: skip
