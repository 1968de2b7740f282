"""What each Triton program is started with: the list that is compiled, and that launches are checked against."""

import itertools
from dataclasses import dataclass, field

from thinwire.kernels.triton.selection import DIGITS

FLOAT, DOUBLE, INT, LONG, BYTE = "*fp32", "*fp64", "*i32", "*i64", "*u8"
N = "length"
LENGTHS = ("i32", "one", "i64")
"""What a length is passed as; what is 1 is compiled in. Every program is compiled with each of these."""


@dataclass(frozen=True)
class Use:
    """What a program is started with."""

    types: tuple[str, ...]
    constants: dict[str, int] = field(default_factory=dict)


def digits(size: int) -> list[dict[str, int]]:
    """The digits of a magnitude of so many bytes."""
    ends = itertools.accumulate(DIGITS[size])
    return [{"SHIFT": 8 * size - 1 - end, "BINS": 1 << width} for end, width in zip(ends, DIGITS[size], strict=True)]


def uses(*choices: str | tuple[str, ...], same: tuple[int, ...] = ()) -> list[Use]:
    """Every combination of types; the arguments numbered by ``same`` have one type in common. Lengths take turns."""
    every = itertools.product(*[(choice,) if isinstance(choice, str) else choice for choice in choices])
    found = [types for types in every if len({types[i] for i in same}) <= 1]
    turns = max(len(found), len(LENGTHS)) if N in choices else len(found)
    cases = itertools.islice(zip(itertools.cycle(found), itertools.cycle(LENGTHS), strict=False), turns)
    return [Use(tuple(length if type == N else type for type in types)) for types, length in cases]


FLOATS, INDICES = (FLOAT, DOUBLE), (INT, LONG)
USES: dict[str, list[Use]] = {
    "selection.tally": [
        Use((values, length, LONG), constants)
        for values, size in ((FLOAT, 4), (DOUBLE, 8))
        for constants, length in zip(digits(size), itertools.cycle(LENGTHS), strict=False)
    ],
    "selection.descend": [Use((LONG, LONG), constants) for size in (4, 8) for constants in digits(size)],
    "selection.count": uses(FLOATS, N, LONG, INT),
    "selection.pick": uses(FLOATS, N, LONG, LONG, INDICES),
    "selection.square": uses(FLOATS, N, DOUBLE),
    "selection.owe": uses(FLOATS, FLOATS, FLOATS, DOUBLE, N, same=(0, 1, 2)),
    "movement.lift": uses(FLOATS, INDICES, FLOATS, N, same=(0, 2)),
    "movement.drop": uses(FLOATS, INDICES, FLOATS, N, same=(0, 2)),
    "coordinates.shift_gaps": uses(INDICES, N, LONG),
    "coordinates.split_gaps": uses(INDICES, N, ("i32", "one"), LONG, LONG),
    "coordinates.mark": uses(INDICES, N, INT),
    "coordinates.count_ones": uses(BYTE, N, INT),
    "coordinates.find_ones": uses(BYTE, N, LONG, INDICES),
    "coordinates.join_gaps": uses(BYTE, N, ("i32", "one"), LONG, LONG),
}
