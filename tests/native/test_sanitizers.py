"""The compiled kernels under the address and undefined-behaviour sanitizers, hostile bytes included."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILER = os.environ.get("CXX") or shutil.which("c++")
FLAGS = ["-std=c++20", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def compile_and_run(sources: list[Path], program: Path) -> subprocess.CompletedProcess[str]:
    assert COMPILER is not None
    command = [COMPILER, *FLAGS, f"-I{ROOT / 'native'}", *map(str, sources), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode and "sanitize" in built.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert built.returncode == 0, built.stderr
    return subprocess.run([str(program)], capture_output=True, text=True, check=False)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")
def test_no_kernel_reads_or_writes_out_of_bounds(tmp_path: Path) -> None:
    kernels = [path for path in sorted((ROOT / "native").glob("*.cc")) if path.name != "bindings.cc"]
    assert len(kernels) >= 5
    result = compile_and_run([*kernels, ROOT / "tests/native/sanitize.cc"], tmp_path / "sanitize")
    assert (result.returncode, result.stdout) == (0, "clean\n"), result.stderr
