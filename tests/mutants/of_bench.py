"""Mutants of what makes a measurement believable."""

from tests.mutants.mutant import Mutant

EXCHANGE = "tests/cli/test_bench_exchange.py::"

OF_BENCH = (
    Mutant(
        name="believe-every-mean",
        safeguard="A mean that a benchmark times is compared with the true one",
        file="bench/exchange/judge.py",
        old="return self._differing(delivered, self.true_mean) if self._wire.rank == 0 else 0",
        new="return 0",
        tests=(f"{EXCHANGE}test_the_judge_counts_elements_that_are_not_the_mean",),
    ),
    Mutant(
        name="what-is-not-a-number-is-right",
        safeguard="What is not a number is no mean",
        file="bench/exchange/judge.py",
        old="(~((got - expected).abs() <= allowed))",
        new="((got - expected).abs() > allowed)",
        tests=(f"{EXCHANGE}test_the_judge_counts_elements_that_are_not_the_mean",),
    ),
    Mutant(
        name="believe-every-debt",
        safeguard="What a method says it keeps, and what it delivers, make the whole",
        file="bench/exchange/judge.py",
        old="self.true_mean[picked].double() - kept",
        new="self.true_mean[picked].double() - kept * 0.0",
        tests=(f"{EXCHANGE}test_the_judge_knows_what_is_owed",),
    ),
    Mutant(
        name="quicker-is-better",
        safeguard="A plan is ahead of a peer only where it brings as much",
        file="bench/exchange/record.py",
        old="if not row.peer and _gain(row) >= _gain(peer) - _EQUAL]",
        new="if not row.peer]",
        tests=(f"{EXCHANGE}test_a_peer_is_held_against_the_quickest_plan_that_brings_as_much",),
    ),
    Mutant(
        name="look-at-one-rank-only",
        safeguard="All ranks must have got the same bits",
        file="bench/exchange/sweep.py",
        old="        tally.wrong += len(last.differing) * self._feed.message.numel\n",
        new="",
        tests=(f"{EXCHANGE}test_who_does_wrong_is_found[each-its-own]",),
    ),
)
