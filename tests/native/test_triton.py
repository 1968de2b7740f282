"""Triton's kernels without a GPU: interpreted, in a process of its own for each family; and how they are chosen."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.native import oracle

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "tests/native/interpreted").glob("*.py"))

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="triton is not installed")
needs_native = pytest.mark.skipif(not oracle.COMPILED, reason="no compiled kernels here")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")

USE = "import torch; from thinwire import kernels; kernels.top_k(torch.randn(10), 3); "
WITHOUT_TRITON = "import sys; sys.modules['triton'] = None\n"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """An interpreter with nothing said about kernels but what is given."""
    kept = {name: text for name, text in os.environ.items() if name not in ("THINWIRE_KERNELS", "TRITON_INTERPRET")}
    everything = {**kept, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=everything, capture_output=True, text=True, check=False
    )


@needs_triton
@needs_native
@pytest.mark.timeout(600)
@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_interpreted(file: Path) -> None:
    """Triton decides when it is imported whether it interprets, so this process cannot do both."""
    result = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout=500", str(file), TRITON_INTERPRET="1")
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout
    assert " skipped" not in result.stdout


def test_triton_is_not_imported_for_tensors_in_main_memory() -> None:
    result = run("-c", USE + "import sys; print('triton' in sys.modules)")
    assert result.stdout == "False\n", result.stderr


@needs_triton
def test_triton_can_be_forced_where_it_interprets() -> None:
    result = run("-c", USE + "print(kernels.active())", THINWIRE_KERNELS="triton", TRITON_INTERPRET="1")
    assert result.stdout == "triton\n", result.stderr


@needs_triton
@without_gpu
def test_without_a_gpu_triton_cannot_be_forced() -> None:
    result = run("-c", USE, THINWIRE_KERNELS="triton")
    assert result.returncode != 0
    assert "KernelError: the triton kernels are not available here (torch finds no GPU here" in result.stderr


def test_without_triton_it_cannot_be_forced() -> None:
    result = run("-c", WITHOUT_TRITON + USE, THINWIRE_KERNELS="triton", TRITON_INTERPRET="1")
    assert result.returncode != 0
    assert "not available here (triton is not installed; it comes with pip install 'thinwire[triton]')" in result.stderr


def test_without_triton_available_says_why() -> None:
    result = run("-c", WITHOUT_TRITON + USE + "print(kernels.available()['triton'])")
    assert "triton is not installed" in result.stdout, result.stderr


def test_without_triton_its_layer_hands_everything_on_with_one_warning() -> None:
    """As on a machine that has a GPU and no triton; interpreted tensors stand for those on the GPU."""
    code = "import torch; from thinwire.kernels.triton import TritonAnywhere as T; print(T().top_k(torch.ones(9), 2))\n"
    result = run("-c", WITHOUT_TRITON + code + code, TRITON_INTERPRET="1")
    assert result.stdout == "tensor([0, 1], dtype=torch.int32)\n" * 2, result.stderr
    assert result.stderr.count("RuntimeWarning: thinwire runs its reference kernels on cpu") == 1
    assert "triton is not installed" in result.stderr
