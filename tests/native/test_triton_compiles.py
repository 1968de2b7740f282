"""Every Triton program compiles for the GPUs named here, ahead of time and without one.

That shows that the compiler takes it, and nothing about what it does there.
"""

import importlib
import os
import pkgutil

import pytest

triton = pytest.importorskip("triton", reason="triton is not installed")
if os.environ.get("TRITON_INTERPRET", "0") == "1":
    pytest.skip("TRITON_INTERPRET=1: there is nothing to compile", allow_module_level=True)

from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402
from triton.runtime.jit import JITFunction  # noqa: E402

from tests.native.triton_uses import USES, Use  # noqa: E402
from thinwire.kernels.triton import programs  # noqa: E402
from thinwire.kernels.triton.base import OPTIONS  # noqa: E402

CAPABILITIES = (80, 90)
HELPERS = {"places", "ranks", "magnitudes", "gaps_at", "bits_at"}
"""Called by other programs, never started."""


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
        compiled = triton.compile(unit, target=target, options=OPTIONS)
        assert f".target sm_{capability}" in compiled.asm["ptx"]
        assert compiled.asm["cubin"].startswith(b"\x7fELF")


def test_every_program_is_in_the_list() -> None:
    assert set(known()) == set(USES) | {name for name in known() if name.split(".")[1] in HELPERS}
    assert len(known()) == len(USES) + len(HELPERS)
