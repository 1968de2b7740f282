"""Mutants of how sums are made by letters, and of how a leader is found and heard."""

from tests.mutants.mutant import Mutant

_UNIT = "tests/unit/test_letter_exchanges.py::"
_RECORD = "tests/wire/test_records.py::test_wrong_records_are_refused_for_their_own_reason"

OF_EXCHANGES = (
    Mutant(
        name="add-what-is-left-over",
        safeguard="Values of another length than all have agreed on are not added up",
        file="exchanges/raw_values.py",
        old="    if letter.numel() != wanted:\n",
        new="    if False:\n",
        tests=tuple(
            f"{_UNIT}test_sums_of_another_length_are_refused[{name}()]"
            for name in ("DirectReduce", "RingReduce", "DoublingReduce")
        ),
        also=("RuntimeError",),
    ),
    Mutant(
        name="sum-own-values-last",
        safeguard="An owner adds up in the order of the ranks, wherever its own values stand",
        file="exchanges/direct_reduce.py",
        old="    for rank in sorted(given):\n",
        new="    for rank in given:\n",
        tests=(f"{_UNIT}test_direct_ways_give_the_bits_of_an_all_gather[5-leader]",),
    ),
    Mutant(
        name="owners-owe-nothing",
        safeguard="What rounding a mean drops is owed",
        file="carry.py",
        old="        page.give_back(delivery.owed)\n",
        new="        pass\n",
        tests=(
            "tests/laws/test_rounded_reduce.py::test_what_rounding_a_mean_drops_comes_later[bf16-1.0-1.0078125]",
            "tests/laws/test_low_rank.py::test_delivered_and_owed_is_given_and_bytes_are_those_declared[3-1-f32]",
        ),
    ),
    Mutant(
        name="owners-owe-for-themselves-only",
        safeguard="The owner of a rounded mean owes what was dropped for all ranks",
        file="exchanges/rounded_reduce.py",
        old="(exact - told.values) * wire.world",
        new="(exact - told.values)",
        tests=(
            "tests/laws/test_rounded_reduce.py::test_what_is_told_and_what_is_owed_is_the_mean_at_the_forecast_cost[3-bf16]",
        ),
    ),
    Mutant(
        name="round-what-is-no-number",
        safeguard="A mean that is not finite is told as such, and not as the largest number of the format",
        file="exchanges/rounded_reduce.py",
        old="outgoing.rounded(exact) if bool(exact.isfinite().all()) else _part(mine, exact)",
        new="outgoing.rounded(exact.nan_to_num())",
        tests=("tests/laws/test_rounded_reduce.py::test_a_sum_that_overflows_counts_nowhere[5-bf16]",),
    ),
    Mutant(
        name="columns-of-rounding-errors",
        safeguard="A column that depends on those before it becomes zeros, and not rounding errors made large",
        file="exchanges/low_rank_reduce.py",
        old="0.0 if length <= _DEPENDENT * lengths[at] else row / length",
        new="row / max(length, 1e-300)",
        tests=("tests/laws/test_low_rank.py::test_columns_become_orthonormal_in_an_order_of_our_own",),
    ),
    Mutant(
        name="product-in-any-order",
        safeguard="Replicas compute the product of thin matrices in one order on every processor",
        file="exchanges/low_rank_reduce.py",
        old="    total = left[:, :1] * right[:, 0]\n",
        new="    return left @ right.T\n",
        tests=("tests/laws/test_low_rank.py::test_columns_become_orthonormal_in_an_order_of_our_own",),
    ),
    Mutant(
        name="hand-on-anything",
        safeguard="Parts of a leader's letter that another rank hands on have the lengths that all know",
        file="agreements/telling.py",
        old="    if bundle.numel() != sum(lengths):\n",
        new="    if False:\n",
        tests=(f"{_UNIT}test_parts_of_a_leaders_letter_of_another_length_are_refused",),
        also=("RuntimeError",),
    ),
    Mutant(
        name="weigh-nothing",
        safeguard="The rank that has most to say leads",
        file="agreements/norm_leader.py",
        old="        weight = energy(flatten(proposal.values))\n",
        new="        weight = 0.0\n",
        tests=(f"{_UNIT}test_the_rank_with_most_energy_in_its_selection_leads[2]",),
    ),
    Mutant(
        name="any-weight",
        safeguard="A weight that cannot be is refused: with a NaN among them, ranks could elect different leaders",
        file="roll_call.py",
        old=" or not 0.0 <= weight < math.inf:\n",
        new=":\n",
        tests=(
            f"{_RECORD}[VALUE: a weight that is not a number]",
            f"{_RECORD}[VALUE: an infinite weight]",
            f"{_RECORD}[VALUE: a negative weight]",
        ),
    ),
)
