"""How the implementation is chosen, each way in a fresh interpreter."""

import os
import shutil
import subprocess
import sys

import pytest

from thinwire import kernels
from thinwire.errors import KernelError

REPORT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from thinwire import kernels
    import thinwire.kernels.reference
ours = [w for w in caught if "reference kernels" in str(w.message)]
print(kernels.active(), len(ours), kernels.top_k is kernels.implementation(kernels.active()).top_k)
"""
WITHOUT_NATIVE = "import sys; sys.modules['thinwire._native'] = None\n"

needs_native = pytest.mark.skipif(kernels.available()["native"] != "yes", reason="no compiled kernels here")


def run(code: str, choice: str | None) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "THINWIRE_KERNELS"}
    if choice is not None:
        environment["THINWIRE_KERNELS"] = choice
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


@needs_native
@pytest.mark.parametrize("choice", [None, "", "native"])
def test_native_is_the_default_where_it_exists(choice: str | None) -> None:
    assert run(REPORT, choice).stdout.split() == ["native", "0", "True"]


def test_the_reference_can_be_forced_silently() -> None:
    assert run(REPORT, "reference").stdout.split() == ["reference", "0", "True"]


def test_without_the_extension_the_reference_runs_with_one_warning() -> None:
    assert run(WITHOUT_NATIVE + REPORT, None).stdout.split() == ["reference", "1", "True"]


def test_without_the_extension_native_cannot_be_forced() -> None:
    result = run(WITHOUT_NATIVE + REPORT, "native")
    assert result.returncode != 0
    assert "KernelError: the native kernels are not available here" in result.stderr
    assert "THINWIRE_KERNELS=reference" in result.stderr


def test_without_the_extension_available_says_why() -> None:
    code = WITHOUT_NATIVE + "from thinwire import kernels; print(kernels.available()['native'])"
    assert "thinwire._native" in run(code, "reference").stdout


def test_an_unknown_choice_lists_the_known_ones() -> None:
    result = run(REPORT, "triton2")
    assert result.returncode != 0
    assert "KernelError: unknown kernels 'triton2'; the known ones are native, reference" in result.stderr


def test_an_unknown_implementation_lists_the_known_ones() -> None:
    with pytest.raises(KernelError, match="unknown kernels 'cuda'; the known ones are native, reference"):
        kernels.implementation("cuda")


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler here")
def test_where_there_is_a_compiler_the_extension_was_built() -> None:
    everything = {"native": "yes", "reference": "yes"}
    assert kernels.available() == everything, "`pip install -v -e .` shows what the compiler said"
