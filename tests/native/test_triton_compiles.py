"""Every Triton program compiles for the GPUs named here, ahead of time and without one.

That shows that the compiler takes it, and nothing about what it does there.
"""

import importlib
import itertools
import os
import pkgutil
from dataclasses import dataclass, field

import pytest

triton = pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET", "0") == "1":
    pytest.skip("TRITON_INTERPRET=1: there is nothing to compile", allow_module_level=True)

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

from thinwire.kernels.triton import programs  # noqa: E402
from thinwire.kernels.triton.selection import DIGITS  # noqa: E402

CAPABILITIES = (80, 90)
FLOAT, DOUBLE, INT, LONG, BYTE = "*fp32", "*fp64", "*i32", "*i64", "*u8"
N = "length"
LENGTHS = ("i32", "one", "i64")
"""What a length is passed as; what is 1 is compiled in. Every program is compiled with each of these."""

HELPERS = {"places", "ranks", "magnitudes", "gaps_at", "bits_at"}
"""Called by other programs, never started."""


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


def known() -> dict[str, JITFunction]:
    """Every program of the package, by module and name."""
    found = {}
    for module in pkgutil.iter_modules(programs.__path__):
        inside = importlib.import_module(f"{programs.__name__}.{module.name}")
        for name, value in vars(inside).items():
            if isinstance(value, JITFunction) and value.__module__ == inside.__name__:
                found[f"{module.name}.{name}"] = value
    return found


def source(program: JITFunction, use: Use, aligned: bool) -> ASTSource:
    """A program with the types of its arguments, pointers and lengths divisible by 16 or not."""
    types = dict(zip(program.arg_names, use.types, strict=False))
    assert len(program.arg_names) == len(types) + len(use.constants)
    ones = {name: 1 for name, type in types.items() if type == "one"}
    signature = types | dict.fromkeys((*use.constants, *ones), "constexpr")
    divisible = {(i,): [["tt.divisibility", 16]] for i, type in enumerate(use.types) if type != "one"}
    return ASTSource(program, signature, use.constants | ones, divisible if aligned else None)


@pytest.fixture(autouse=True)
def _fresh_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("name", USES)
def test_every_use_compiles(name: str, capability: int) -> None:
    target = GPUTarget("cuda", capability, 32)
    for number, use in enumerate(USES[name]):
        # Alignment changes how memory is read, not what is computed: it is enough to see both now and then.
        unit = source(known()[name], use, aligned=number % 2 == 0)
        compiled = triton.compile(unit, target=target, options={"num_warps": 8})
        assert f".target sm_{capability}" in compiled.asm["ptx"]
        assert compiled.asm["cubin"].startswith(b"\x7fELF")


def test_every_program_is_in_the_list() -> None:
    assert set(known()) == set(USES) | {name for name in known() if name.split(".")[1] in HELPERS}
    assert len(known()) == len(USES) + len(HELPERS)
