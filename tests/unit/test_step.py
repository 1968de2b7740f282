"""One step, one outcome: all of it counts on every rank, or none of it anywhere. On ranks that are threads."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from thinwire import recipes
from thinwire.carry import Cargo
from thinwire.errors import PeerFailedError
from thinwire.exchanges import AllGather
from thinwire.lab import threads
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.observe.stats import Counter
from thinwire.step import Sent, Step

PLAN = recipes.topk_allgather(density=0.25).replace(exchange=AllGather())
SIZE = 20


class Fault(Exception):
    """What the tests make go wrong."""


def new_step(wire: ThreadWire, ledger: Ledger) -> Step:
    return Step(plan=PLAN, ledger=ledger, wire=wire, counter=Counter(), generation=0)


def group(step: Step, name: str, gradient: Tensor) -> Tensor | None:
    """One parameter as a group of its own."""
    return step.group(Cargo(gradient=gradient, layout=Layout.of({name: SIZE}), turn=step.turn()))


def fresh(wire: ThreadWire, number: int) -> Tensor:
    return torch.randn(SIZE, generator=torch.Generator().manual_seed(10 * number + wire.rank))


def owing(wire: ThreadWire) -> Ledger:
    """A ledger after one good step of two groups."""
    ledger = Ledger()
    step = new_step(wire, ledger)
    for number, name in enumerate("ab"):
        assert group(step, name, fresh(wire, number)) is not None
    step.vote()
    assert step.failure is None
    step.commit()
    assert all(debt.any() for debt in ledger.owed().values())
    return ledger


def same(before: dict[str, Tensor], after: dict[str, Tensor]) -> bool:
    return before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)


def breaking(wire: ThreadWire, after: bool) -> None:
    """Rank 1's next all-gather goes wrong, on its way or once it is done."""
    plain: Callable[..., list[Tensor]] = wire.all_gather

    def broken(*arguments: Any) -> list[Tensor]:
        wire.all_gather = plain  # type: ignore[method-assign]
        if after:
            plain(*arguments)
        raise Fault("no memory")

    if wire.rank == 1:
        wire.all_gather = broken  # type: ignore[assignment, method-assign]


def known(step: Step) -> str:
    """The failure, which every rank must know to be rank 1's."""
    error = step.error()
    assert isinstance(error, PeerFailedError), error
    assert error.ranks == (1,)
    return str(error)


def check(results: list[Any]) -> None:
    for result in results:
        if isinstance(result, BaseException):
            raise result


def test_debts_change_with_the_commit_and_not_before() -> None:
    def work(wire: ThreadWire) -> None:
        ledger = owing(wire)
        before = ledger.owed()
        step = new_step(wire, ledger)
        first = group(step, "a", fresh(wire, 2))
        assert first is not None
        there = first.clone()
        assert group(step, "b", fresh(wire, 3)) is not None
        assert torch.equal(first, there), "means stay where they are until the step is over"
        step.vote()
        assert same(before, ledger.owed())
        step.commit()
        assert not same(before, ledger.owed())
        assert ledger.steps == 2

    check(run_threads(work, 3))


def departing(step: Step, wire: ThreadWire, ahead: int, broken: int | None) -> list[Tensor | None]:
    """Four groups, some of them sent before the first is received; rank 1 cannot read the letters of one of them."""
    sent: list[Sent] = []
    means: list[Tensor | None] = []
    for number in range(4 + ahead):
        if number < 4:
            gradient, layout = fresh(wire, number), Layout.of({"abcd"[number]: SIZE})
            sent.append(step.send(Cargo(gradient=gradient, layout=layout, turn=step.turn())))
        if number >= ahead:
            if number - ahead == broken:
                breaking(wire, after=True)
            means.append(step.receive(sent[number - ahead]))
    step.vote()
    return means


def test_groups_that_depart_ahead_come_to_the_same() -> None:
    def work(wire: ThreadWire) -> None:
        results = []
        for ahead in (0, wire.rank, 4):
            step = new_step(wire, Ledger())
            means = departing(step, wire, ahead, None)
            assert step.failure is None
            step.commit()
            results.append([mean.clone() for mean in means if mean is not None])
            assert len(results[-1]) == 4
        assert all(
            torch.equal(mean, again) for other in results[1:] for mean, again in zip(results[0], other, strict=True)
        )

    check(run_threads(work, 3))


@pytest.mark.parametrize("broken", [0, 2, 3])
def test_a_fault_is_told_and_what_was_announced_behind_it_is_forgotten(broken: int) -> None:
    """Ranks are differently far ahead when they learn of it; afterwards all notes are those of the next step."""

    def work(wire: ThreadWire) -> None:
        ledger = Ledger()
        step = new_step(wire, ledger)
        means = departing(step, wire, (4, 0, 2)[wire.rank], broken if wire.rank == 1 else None)
        known(step)
        assert not wire.broken
        assert wire.rank == 1 or all(mean is not None for mean in means[: broken + 1])
        step = new_step(wire, ledger)
        assert all(mean is not None for mean in departing(step, wire, wire.rank, None))
        assert step.failure is None

    check(run_threads(work, 3))


def test_one_number_that_is_not_finite_undoes_the_step_in_every_group() -> None:
    def work(wire: ThreadWire) -> None:
        ledger = owing(wire)
        before = ledger.owed()
        step = new_step(wire, ledger)
        bad = fresh(wire, 2)
        if wire.rank == 2:
            bad[7] = torch.inf
        nothing, mean = group(step, "a", bad), group(step, "b", fresh(wire, 3))
        step.vote()
        assert nothing is not None
        assert nothing.isnan().all(), "all ranks must hear of it, so that a GradScaler backs off on all of them"
        assert mean is not None
        assert mean.isfinite().all()
        step.commit()
        assert step.failure is None
        assert same(before, ledger.owed()), "the other group's debts went with a gradient that nobody uses"
        assert (ledger.steps, step.counter.overflows) == (2, 1)

    check(run_threads(work, 3))


def test_a_fault_behind_the_roll_call_is_told_at_the_next_one() -> None:
    def work(wire: ThreadWire) -> str:
        step = new_step(wire, owing(wire))
        breaking(wire, after=True)
        first, second = group(step, "a", fresh(wire, 2)), group(step, "b", fresh(wire, 3))
        assert (first is None) == (wire.rank == 1)
        assert second is None
        assert not wire.broken
        return known(step)

    results = run_threads(work, 3)
    check(results)
    assert "rank 1: Fault: no memory" in results[0]
    assert results[0] == results[1] == results[2]


def test_a_fault_in_the_last_group_is_told_by_the_vote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_TIMEOUT", 3.0)

    def work(wire: ThreadWire) -> None:
        step = new_step(wire, owing(wire))
        assert group(step, "a", fresh(wire, 2)) is not None
        breaking(wire, after=True)
        assert (group(step, "b", fresh(wire, 3)) is None) == (wire.rank == 1)
        step.vote()
        assert "Fault: no memory" in known(step)
        assert not wire.broken

    check(run_threads(work, 3))


def test_a_rank_that_falls_out_of_step_says_so_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_TIMEOUT", 3.0)

    def work(wire: ThreadWire) -> None:
        step = new_step(wire, owing(wire))
        breaking(wire, after=False)
        began = time.monotonic()
        assert group(step, "a", fresh(wire, 2)) is None
        assert "Fault: no memory" in known(step)
        assert time.monotonic() - began < 2.0
        assert wire.broken
        calls = wire.calls
        assert group(step, "b", fresh(wire, 3)) is None
        step.vote()
        assert wire.calls == calls, "nobody waits for those who are gone"

    check(run_threads(work, 3))


def test_a_record_that_one_rank_cannot_read_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_TIMEOUT", 3.0)

    def work(wire: ThreadWire) -> None:
        step = new_step(wire, owing(wire))
        plain = wire.hear

        def damaged() -> list[Tensor]:
            wire.hear = plain  # type: ignore[method-assign]
            notes = plain()
            notes[0][30] ^= 1
            return notes

        if wire.rank == 1:
            wire.hear = damaged  # type: ignore[method-assign]
        began = time.monotonic()
        assert group(step, "a", fresh(wire, 2)) is None
        step.vote()
        assert "checksum" in known(step)
        assert time.monotonic() - began < 2.0

    check(run_threads(work, 3))


@pytest.mark.parametrize(("dtype", "large"), [(torch.float32, 1e38), (torch.float64, 1e300)], ids=str)
def test_large_numbers_are_no_overflow(dtype: torch.dtype, large: float) -> None:
    """Their squares do not fit their type, and the sum of the squares may fit no type at all."""

    def work(wire: ThreadWire) -> None:
        step = new_step(wire, Ledger())
        mean = group(step, "a", torch.full((SIZE,), large, dtype=dtype))
        step.vote()
        assert not step.overflow
        assert mean is not None
        assert mean.tolist() == [mean[0].item()] * 5 + [0.0] * 15
        assert mean[0].item() == pytest.approx(large)

    check(run_threads(work, 2))
