"""One synchronised step: many groups, one outcome. Either all of it counts on every rank, or none of it anywhere."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor

from thinwire.carry import Cargo, Carried, depart
from thinwire.control.notes import Note
from thinwire.control.pilot import Pilot
from thinwire.errors import DisagreementError, PeerFailedError, SyncError
from thinwire.layout import Group
from thinwire.ledger import Ledger, Page
from thinwire.observe.stats import Counter
from thinwire.plans import Plan
from thinwire.protocols import Wire
from thinwire.roll_call import Record, What, announce, call_roll, describe, forget, hear
from thinwire.rows import depart_rows
from thinwire.types import Turn
from thinwire.units import in_memory_order, memory_shape

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A group on its way."""

    names: tuple[str, ...]
    finish: Callable[[], Carried]


@dataclass(kw_only=True)
class Step:
    """The state of one step. Its methods run on the courier's threads and never raise."""

    plan: Plan
    ledger: Ledger
    wire: Wire
    counter: Counter
    generation: int
    pilot: Pilot | None = None
    """Looks, tells and hears in this step; None between two steps."""
    failure: Exception | None = None
    """Why this step failed."""
    complete: bool = False
    """All of it is through, to its end, good or bad."""
    skipped: bool = False
    """The optimizer does not use it."""
    over: bool = False
    """All ranks know of the failure (or cannot be reached): nobody says anything more in this step."""
    overflow: bool = False
    parameters: Mapping[str, Tensor] = field(default_factory=dict)
    """By name, where the plan looks at them."""
    groups: int = 0
    names: list[tuple[str, ...]] = field(default_factory=list)
    """The parameters of each group, in order."""
    results: list[Tensor] = field(default_factory=list)
    """What DDP was given, bucket by bucket."""
    _pages: list[Page] = field(default_factory=list)
    _paid: list[str] = field(default_factory=list)

    def turn(self) -> Turn:
        """Where the next group stands."""
        return Turn(
            step=self.ledger.steps,
            group=self.groups,
            rank=self.wire.rank,
            world=self.wire.world,
            generation=self.generation,
        )

    def send(self, cargo: Cargo) -> "Sent":
        """Begin to synchronise one group: everything that waits for nobody.

        It may run on another thread than the rest, groups ahead of it. What was announced must be received.
        """
        return self._send(cargo.layout.names, lambda: cargo)

    def _send(self, names: tuple[str, ...], pack: Callable[[], Cargo]) -> "Sent":
        try:
            if self.failure is not None:
                finish = self._confess(self.failure)
            else:
                cargo = pack()
                begin = depart_rows if cargo.gradient.is_sparse else depart
                finish = begin(cargo, self.plan, self.ledger, self.wire)
        except Exception as error:
            self.failure = self.failure or error
            finish = self._confess(error)
        self.groups += 1
        self.names.append(names)
        return Sent(names=names, finish=finish)

    def receive(self, sent: "Sent") -> Tensor | None:
        """Go on with a group that was sent, in the same order.

        Returns:
            The mean, or None where there is none because the step has failed.
        """

        def attempt() -> Tensor:
            carried = sent.finish()
            self._note(sent.names, carried)
            return carried.mean

        return self._attempt(attempt)

    def group(self, cargo: Cargo) -> Tensor | None:
        """Synchronise one group: `send` and `receive`."""
        return self.receive(self.send(cargo))

    def send_bucket(self, buffer: Tensor, groups: Sequence[Group], *, hold_silent: bool) -> "list[Sent]":
        """`send` for a bucket of DDP, usually one group."""

        def pack(group: Group) -> Cargo:
            return Cargo(
                gradient=buffer if buffer.is_sparse else group.gather(buffer),
                layout=group.layout,
                turn=self.turn(),
                loss_scale=self.ledger.scale,
                weights=self._weights(group),
                shapes=[memory_shape(self.parameters[name]) for name in group.layout.names if self.parameters],
                hold_silent=hold_silent,
                look=None if self.pilot is None else self.pilot.look,
            )

        return [self._send(group.layout.names, partial(pack, group)) for group in groups]

    def receive_bucket(self, buffer: Tensor, groups: Sequence[Group], sent: "Sequence[Sent]") -> Tensor:
        """`receive` for a bucket.

        Returns:
            The mean; NaN where there is none because the step has failed.
        """
        means = [mean for mean in map(self.receive, sent) if mean is not None]
        result: Tensor | None = None
        if len(means) == len(groups) > 0:
            try:
                result = joined(buffer, groups, means)
            except Exception as error:
                self.failure = self.failure or error
        if result is None:
            result = buffer * torch.nan if buffer.is_sparse else torch.full_like(buffer, torch.nan)
        self.results.append(result)
        return result

    def _weights(self, group: Group) -> list[Tensor] | None:
        """A group's weights, without a copy where they lie in order."""
        if not self.parameters:
            return None
        return [in_memory_order(self.parameters[name]) for name in group.layout.names]

    def spoil(self) -> None:
        """Make every result of a step that does not count unusable: nobody must be able to use half of one."""
        if self.failure is not None or self.overflow:
            for result in self.results:
                result.mul_(torch.nan) if result.is_sparse else result.fill_(torch.nan)

    def apart(self, exchange: Callable[[], None]) -> None:
        """Do something between two steps, under the same rules."""
        self._attempt(exchange)

    def vote(self) -> None:
        """The last word of a step: a rank that failed behind a roll call says so now, before anybody steps on."""
        before = self.wire.traffic
        said = Note().pack() if self.pilot is None else self.pilot.note(self.counter.stats("", 0))
        note = torch.frombuffer(bytearray(said), dtype=torch.uint8)

        def attempt() -> None:
            if self.failure is not None:
                self._confess(self.failure)()
            record = replace(self._record(), letter=note.numel())
            roll = call_roll(self.wire, record, self.plan, note)
            if self.pilot is not None:
                self.pilot.hear([each.numpy().tobytes() for each in roll.came_along])

        self._attempt(attempt)
        if self.over and not self.wire.broken:
            with contextlib.suppress(SyncError):  # the failure that all know of comes first
                forget(self.wire)
        self.counter.ended(failed=self.failure is not None, overflow=self.overflow)
        after = self.wire.traffic
        self.counter.add_traffic(after.bytes_sent - before.bytes_sent, after.rounds - before.rounds)

    def _attempt(self, exchange: Callable[[], T]) -> T | None:
        """Do it, unless all ranks know that the step has failed."""
        if self.over:
            return None
        try:
            return exchange()
        except (PeerFailedError, DisagreementError) as error:
            self.failure, self.over = error, True
        except Exception as error:
            # Something here went wrong behind the roll call. What was announced will be done; the next that is
            # announced tells the others.
            self.failure, self.over = self.failure or error, bool(self.wire.broken)
        return None

    def _confess(self, failure: Exception) -> Callable[[], Carried]:
        """Announce that this rank cannot go on. What it returns hears the others and raises, on all ranks."""
        record = self._record(describe(failure))
        announce(self.wire, record)

        def finish() -> Carried:
            try:
                hear(self.wire, record, self.plan)
            except PeerFailedError as error:
                raise error from failure
            raise failure

        return finish

    def _record(self, failure: str = "") -> Record:
        turn = self.turn()
        return Record(
            what=What.VOTE, rank=turn.rank, world=turn.world, generation=turn.generation, step=turn.step,
            group=turn.group, plan=self.plan.fingerprint, failure=failure,
        )  # fmt: skip

    def _note(self, names: tuple[str, ...], carried: Carried) -> None:
        """Remember what to do when the step succeeds."""
        self.counter.add(carried.seen)
        self.overflow |= carried.overflow
        if carried.page is not None:
            self._pages.append(carried.page)
            if self.plan.keeps_nothing and carried.page.nothing_held:
                self._paid.extend(names)

    def commit(self) -> None:
        """The step counts. Debts change only if every number in it was finite: else no optimizer will use it."""
        self.ledger.steps += 1
        if self.overflow or self.skipped:
            return
        for page in self._pages:
            page.commit()
        self.ledger.close(self._paid)

    def error(self) -> SyncError | None:
        """The failure as the error to raise, the same kind on every rank."""
        if self.failure is None or isinstance(self.failure, SyncError):
            return self.failure
        error = SyncError(f"step {self.ledger.steps} failed on rank {self.wire.rank}: {describe(self.failure)}")
        error.__cause__ = self.failure
        return error


def joined(buffer: Tensor, groups: Sequence[Group], means: Sequence[Tensor]) -> Tensor:
    """The groups' means as one bucket."""
    if not groups[0].places:
        return means[0]
    result = torch.empty_like(buffer)
    for group, mean in zip(groups, means, strict=True):
        group.scatter(mean, result)
    return result
