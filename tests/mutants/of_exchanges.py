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
