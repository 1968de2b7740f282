"""The compiled kernels under the address and undefined-behaviour sanitizers, hostile bytes included."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "tests/native/sanitize").glob("*.cc"))
COMPILER = os.environ.get("CXX") or shutil.which("c++")
FLAGS = ["-std=c++20", "-O1", "-g", "-ffp-contract=off", "-pthread"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here")


@pytest.fixture(scope="module", autouse=True)
def _sanitizers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A program that does nothing builds with them; whatever then fails to build is a fault, and no reason to skip."""
    nothing = tmp_path_factory.mktemp("nothing") / "nothing.cc"
    nothing.write_text("int main() {}\n")
    command = [str(COMPILER), *FLAGS, *SANITIZERS, "-o", str(nothing.with_suffix("")), str(nothing)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this compiler has no sanitizers")


def build(program: Path, directory: Path) -> Path:
    """Compile one program together with the kernels of its family."""
    families = ["core", program.stem]
    sources = [path for family in families for path in sorted((ROOT / "native" / family).glob("*.cc"))]
    assert len(sources) >= 3
    binary = directory / program.stem
    command = [str(COMPILER), *FLAGS, *SANITIZERS, f"-I{ROOT / 'native'}", "-o", str(binary)]
    everything = [*command, *map(str, [*sources, program])]
    built = subprocess.run(everything, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return binary


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_no_kernel_reads_or_writes_out_of_bounds(program: Path, tmp_path: Path) -> None:
    result = subprocess.run([str(build(program, tmp_path))], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "clean\n"), result.stderr


def test_every_family_of_kernels_has_a_program() -> None:
    families = {path.parent.name for path in (ROOT / "native").glob("*/*.cc")} - {"core", "bindings"}
    assert {program.stem for program in PROGRAMS} == families
