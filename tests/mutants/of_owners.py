"""Mutants of what is added up on its way: owners, letters of sums, recursive doubling, rows."""

from tests.mutants.mutant import Mutant

FORECASTS = "tests/laws/test_forecasts.py::"
ROWS = "tests/laws/test_rows.py::"
OVERFLOW = f"{FORECASTS}test_a_sum_that_overflows_is_the_same_nan_everywhere"
EXACT = f"{FORECASTS}test_whole_numbers_add_up_exactly_at_the_forecast_cost"

OF_OWNERS = (
    Mutant(
        name="owners-without-their-last-unit",
        safeguard="The last, short block of units has owners too",
        file="exchanges/owners.py",
        old="(last + (end < self.units)) * self.width",
        new="last * self.width",
        tests=(f"{FORECASTS}test_what_owners_have_is_the_whole_tensor_and_nothing_twice",),
    ),
    Mutant(
        name="owners-with-a-long-last-unit",
        safeguard="The owner of a short last unit knows how short it is",
        file="exchanges/owners.py",
        old="spare if end == self.units - 1 else 0",
        new="0",
        tests=(f"{FORECASTS}test_what_owners_have_is_the_whole_tensor_and_nothing_twice",),
    ),
    Mutant(
        name="owners-add-their-own-last",
        safeguard="Owners add in rank order",
        file="exchanges/owner_reduce.py",
        old="for source in sorted(parts)",
        new="for source in parts",
        tests=(f"{FORECASTS}test_owners_add_in_the_order_of_the_ranks",),
    ),
    Mutant(
        name="sums-that-are-not-finite",
        safeguard="A sum that is not finite is the same NaN on every rank",
        file="exchanges/letters.py",
        old="    return total if is_finite(total.values) else _overflow(total)\n",
        new="    return total\n",
        tests=(f"{OVERFLOW}[1-4-OwnerReduce(seed=0)]", f"{OVERFLOW}[1-4-RecursiveDoubling()]"),
    ),
    Mutant(
        name="letters-of-sums-that-are-not-finite",
        safeguard="A sum that is not finite is told by a letter of no bytes, not by one that is refused",
        file="exchanges/letters.py",
        old="        if _is_overflow(selection):\n",
        new="        if False:\n",
        tests=(f"{OVERFLOW}[1-4-OwnerReduce(seed=0)]", f"{OVERFLOW}[1-4-RecursiveDoubling()]"),
    ),
    Mutant(
        name="zeros-among-levels",
        safeguard="Zeros are filled in only where the format can write them",
        file="exchanges/letters.py",
        old=" and not selection.format.levels:",
        new=":",
        tests=(f"{FORECASTS}test_narrow_values_travel_narrow_and_their_sums_in_full[0.99-int4-OwnerReduce(seed=0)]",),
    ),
    Mutant(
        name="ranks-beyond-the-power-of-two",
        safeguard="Ranks beyond the largest power of two are heard",
        file="exchanges/recursive_doubling.py",
        old="    return [*before, *doubling, *behind]\n",
        new="    return [*doubling, *behind]\n",
        tests=(f"{EXACT}[3-RecursiveDoubling()]", f"{EXACT}[5-RecursiveDoubling()]"),
    ),
    Mutant(
        name="any-codec-inside",
        safeguard="Inside of the cheapest codec there are only those that the page names",
        file="codecs/cheapest.py",
        old="_CHOICES.get(int(section[0]))",
        new="_CHOICES.get(int(section[0]), Delta())",
        tests=(
            "tests/wire/test_reasons.py::test_wrong_bytes_are_refused_for_their_own_reason"
            "[CODEC: codec 255 inside of the cheapest-reference]",
        ),
    ),
    Mutant(
        name="rows-that-overflow",
        safeguard="A step does not count if the sum of some row is not finite",
        file="rows.py",
        old="overflow=bool(roll.overflow) or not finite)",
        new="overflow=bool(roll.overflow))",
        tests=(f"{ROWS}test_rows_that_are_not_finite_or_whose_sum_is_not_do_not_count[owner-reduce]",),
    ),
)
