"""One synchronised step: many groups, one outcome. Either all of it counts on every rank, or none of it anywhere."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from thinwire.carry import Cargo, Carried, carry
from thinwire.control.notes import Note
from thinwire.control.pilot import Pilot
from thinwire.errors import DisagreementError, PeerFailedError, SyncError
from thinwire.layout import Group
from thinwire.ledger import Ledger, Page
from thinwire.observe.stats import Counter
from thinwire.plans import Plan
from thinwire.protocols import Wire
from thinwire.roll_call import Record, What, call_roll, describe
from thinwire.rows import carry_rows
from thinwire.types import Turn

T = TypeVar("T")


@dataclass(kw_only=True)
class Step:
    """The state of one step. Its methods run on the courier's thread and never raise."""

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

    def bucket(self, buffer: Tensor, groups: Sequence[Group], *, hold_silent: bool) -> Tensor:
        """Synchronise a bucket of DDP, usually one group.

        Returns:
            The mean; NaN where there is none because the step has failed.
        """
        result: Tensor | None = None
        try:
            result = self._bucket(buffer, groups, hold_silent)
        except Exception as error:
            self.failure = self.failure or error
        if result is None:
            result = buffer * torch.nan if buffer.is_sparse else torch.full_like(buffer, torch.nan)
        self.results.append(result)
        return result

    def _bucket(self, buffer: Tensor, groups: Sequence[Group], hold_silent: bool) -> Tensor | None:
        result: Tensor | None = None
        for group in groups:
            cargo = Cargo(
                gradient=buffer if buffer.is_sparse else group.gather(buffer),
                layout=group.layout,
                turn=self.turn(),
                loss_scale=self.ledger.scale,
                hold_silent=hold_silent,
                look=None if self.pilot is None else self.pilot.look,
            )
            mean = self.rows(cargo) if buffer.is_sparse else self.group(cargo)
            self.groups += 1
            self.names.append(group.layout.names)
            if mean is None:
                return None
            if group.places:
                result = torch.empty_like(buffer) if result is None else result
                group.scatter(mean, result)
            else:
                result = mean
        return result

    def spoil(self) -> None:
        """Make every result of a step that does not count unusable: nobody must be able to use half of one."""
        if self.failure is not None or self.overflow:
            for result in self.results:
                result.mul_(torch.nan) if result.is_sparse else result.fill_(torch.nan)

    def group(self, cargo: Cargo) -> Tensor | None:
        """Synchronise one group.

        Returns:
            The mean, or None where there is none because the step has failed.
        """

        def attempt() -> Tensor:
            carried = carry(cargo, self.plan, self.ledger, self.wire)
            self._note(cargo, carried)
            return carried.mean

        return self._attempt(attempt)

    def rows(self, cargo: Cargo) -> Tensor | None:
        """Synchronise one row-sparse parameter."""

        def attempt() -> Tensor:
            carried = carry_rows(cargo, self.plan, self.wire)
            self._note(cargo, carried)
            return carried.mean

        return self._attempt(attempt)

    def apart(self, exchange: Callable[[], None]) -> None:
        """Do something between two steps, under the same rules."""
        self._attempt(exchange)

    def vote(self) -> None:
        """The last word of a step: a rank that failed behind a roll call says so now, before anybody steps on."""
        before = self.wire.traffic
        note = Note().pack() if self.pilot is None else self.pilot.note(self.counter.stats("", 0))

        def attempt() -> None:
            roll = call_roll(self.wire, self._record(), self.plan, note)
            if self.pilot is not None:
                self.pilot.hear(roll.asides)

        self._attempt(attempt, note)
        self.counter.ended(failed=self.failure is not None, overflow=self.overflow)
        after = self.wire.traffic
        self.counter.add_traffic(after.bytes_sent - before.bytes_sent, after.rounds - before.rounds)

    def _attempt(self, exchange: Callable[[], T], aside: bytes = b"") -> T | None:
        """Do it, or, if this rank has failed earlier, tell the others instead (with as long an ``aside``)."""
        if self.over:
            return None
        try:
            if self.failure is not None:
                self._confess(self.failure, aside)
            return exchange()
        except (PeerFailedError, DisagreementError) as error:
            self.failure, self.over = error, True
        except Exception as error:
            # Something here went wrong behind the roll call. The next roll call tells the others, if there is one.
            self.failure, self.over = error, bool(self.wire.broken)
        return None

    def _confess(self, failure: Exception, aside: bytes) -> None:
        """Take part in the others' roll call, to say that this rank cannot go on. Always raises, on all ranks."""
        try:
            call_roll(self.wire, self._record(describe(failure)), self.plan, aside)
        except PeerFailedError as error:
            raise error from failure

    def _record(self, failure: str = "") -> Record:
        turn = self.turn()
        return Record(
            what=What.VOTE, rank=turn.rank, world=turn.world, generation=turn.generation, step=turn.step,
            group=turn.group, plan=self.plan.fingerprint, failure=failure,
        )  # fmt: skip

    def _note(self, cargo: Cargo, carried: Carried) -> None:
        """Remember what to do when the step succeeds."""
        self.counter.add(carried.seen)
        self.overflow |= carried.overflow
        if carried.page is not None:
            self._pages.append(carried.page)
            if self.plan.keeps_nothing and carried.page.nothing_held:
                self._paid.extend(cargo.layout.names)

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
