"""How the implementation is chosen, each way in a fresh interpreter."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.native.oracle import COMPILED, NAMES
from thinwire import kernels
from thinwire.errors import KernelError

REPORT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from thinwire import kernels
    import thinwire.kernels.reference
ours = [w for w in caught if "reference kernels" in str(w.message)]
print(kernels.active(), len(ours), type(kernels.top_k.__self__).__name__)
"""
WITHOUT_NATIVE = "import sys; sys.modules['thinwire._native'] = None\n"

needs_native = pytest.mark.skipif(not COMPILED, reason="no compiled kernels here")


def run(code: str, choice: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "THINWIRE_KERNELS"}
    if choice is not None:
        environment["THINWIRE_KERNELS"] = choice
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@needs_native
@pytest.mark.parametrize("choice", [None, "", "native"])
def test_native_is_the_default_where_it_exists(choice: str | None) -> None:
    assert run(REPORT, choice).stdout.split() == [COMPILED[0], "0", "Layered"]


def test_the_reference_can_be_forced_silently() -> None:
    assert run(REPORT, "reference").stdout.split() == ["reference", "0", "Reference"]


def test_without_the_extension_the_reference_runs_with_one_warning() -> None:
    assert run(WITHOUT_NATIVE + REPORT, None).stdout.split() == ["reference", "1", "TritonKernels"]


def test_without_the_extension_native_cannot_be_forced() -> None:
    result = run(WITHOUT_NATIVE + REPORT, "native")
    assert result.returncode != 0
    assert "KernelError: the native kernels are not available here" in result.stderr
    assert "THINWIRE_KERNELS=reference" in result.stderr


def test_without_the_extension_available_says_why() -> None:
    code = WITHOUT_NATIVE + "from thinwire import kernels; print(kernels.available()['scalar'])"
    assert "thinwire._native" in run(code, "reference").stdout


def test_an_unknown_choice_lists_the_known_ones() -> None:
    result = run(REPORT, "triton2")
    assert result.returncode != 0
    assert (
        "KernelError: unknown kernels 'triton2'; the known ones are avx512, avx2, neon, scalar, triton, reference"
        in result.stderr
    )


def test_an_unknown_implementation_lists_the_known_ones() -> None:
    with pytest.raises(
        KernelError, match="unknown kernels 'cuda'; the known ones are avx512, avx2, neon, scalar, triton, reference"
    ):
        kernels.implementation("cuda")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here")
def test_where_there_is_a_compiler_the_extension_was_built() -> None:
    assert "scalar" in NAMES, "`pip install -v -e .` shows what the compiler said"


@needs_native
@pytest.mark.parametrize("choice", COMPILED)
def test_each_instruction_set_can_be_forced(choice: str) -> None:
    assert run(REPORT, choice).stdout.split() == [choice, "0", "Layered"]


@needs_native
def test_an_instruction_set_of_another_processor_is_refused() -> None:
    absent = next(name for name, answer in kernels.available().items() if answer != "yes")
    with pytest.raises(KernelError, match=f"no '{absent}' instructions; it has {COMPILED[0]}"):
        kernels.implementation(absent)


@needs_native
@pytest.mark.parametrize("text", ["0", "65", "many"])
def test_an_impossible_number_of_threads_in_the_environment_is_refused(text: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**os.environ, "THINWIRE_THREADS": text},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "write a whole number from 1 to 64 (THINWIRE_THREADS)" in result.stderr
