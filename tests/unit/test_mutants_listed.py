"""The mutants can be made, their tests are there, and tests/README.md has them all."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.listed import BEGIN, END, MUTANTS, README, renewed
from tests.mutants.mutant import ROOT, DoesNotApply, Mutant
from tests.mutants.trial import Run, run_tests, tree, why_survived
from tests.mutants.warm import Warm
from tests.mutants.witness import REPORT, TREE

ids = [mutant.name for mutant in MUTANTS]


def source(mutant: Mutant) -> str:
    return (ROOT / "src" / "thinwire" / mutant.file).read_text()


def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_mutant_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=ids)
def test_a_mutant_can_be_made(mutant: Mutant) -> None:
    """Its text is there exactly once, and what it becomes is Python that does something else."""
    before, after = source(mutant), mutant.changed(source(mutant))
    assert ast.dump(ast.parse(before)) != ast.dump(ast.parse(after))


@pytest.mark.parametrize("mutant", MUTANTS, ids=ids)
def test_the_tests_of_a_mutant_exist(mutant: Mutant) -> None:
    assert mutant.tests
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions(file), test


def test_the_readme_lists_the_mutants() -> None:
    text = README.read_text()
    assert text.count(BEGIN) == text.count(END) == 1
    assert renewed(text) == text, "write: python tests/mutants/run.py --write-readme"


# The gate itself: what does not show that a test noticed must not count as a mutant killed.

ONE = Mutant(name="one", safeguard="", file="units.py", old="import torch\n", new="", tests=("t.py::a", "t.py::b"))


def run_of(code: int | None, **tests: tuple[str, str]) -> Run:
    """A run in which these tests came to these outcomes, with an exception each."""
    reports = {
        f"t.py::{name}": {
            "outcome": outcome,
            "kinds": [kind] if kind else [],
            "said": f"{kind}: Timeout" * (kind == "Failed"),
        }
        for name, (outcome, kind) in tests.items()
    }
    return Run(code, 1.0, "", reports)


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (run_of(1, a=("failed", "AssertionError"), b=("failed", "RanksHung")), ""),
        (run_of(1, a=("failed", "AssertionError"), b=("passed", "")), "t.py::b passed"),
        (run_of(1, a=("failed", "AssertionError")), "t.py::b did not run"),
        (run_of(1, a=("failed", "AssertionError"), b=("failed", "NameError")), "broke the code"),
        (run_of(1, a=("failed", "AssertionError"), b=("failed", "ImportError")), "broke the code"),
        (run_of(1, a=("failed", "ZeroDivisionError"), b=("failed", "AssertionError")), "nobody raised on purpose"),
        (run_of(1, a=("failed", "Failed"), b=("failed", "AssertionError")), "stopped by the clock"),
        (run_of(0, a=("passed", ""), b=("passed", "")), "every test passes"),
        (run_of(2, a=("failed", "AssertionError"), b=("failed", "AssertionError")), "exit code 2"),
        (run_of(None), "no end within"),
    ],
)
def test_only_what_a_test_noticed_kills_a_mutant(run: Run, why: str) -> None:
    found = why_survived(ONE, run)
    assert why in found
    assert bool(why) == bool(found)


@pytest.mark.parametrize("old", ["no such text", "import"])
def test_a_mutant_that_does_not_apply_says_so(old: str) -> None:
    mutant = Mutant(name="lost", safeguard="", file="units.py", old=old, new="", tests=("t.py::a",))
    with pytest.raises(DoesNotApply, match="this mutant no longer applies: lost"):
        mutant.changed(source(mutant))


_TEST = """
import thinwire
def test_a():
    assert thinwire.__file__ == "nowhere"
def test_b():
    raise ImportError("on purpose")
"""


def test_the_witness_writes_down_how_tests_fail(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_TEST)
    with tree() as src, Warm() as warm:
        run = run_tests(src, [str(tmp_path / "test_it.py")], warm)
    assert run.code == pytest.ExitCode.TESTS_FAILED, run.output
    found = {test.partition("::")[2]: (run.outcome(test), run.kinds(test)) for test in run.reports}
    assert found == {"test_a": ("failed", {"AssertionError"}), "test_b": ("failed", {"ImportError"})}


def test_the_witness_stops_at_another_tree(tmp_path: Path) -> None:
    """Here the installed thinwire is imported, and the mutant would be somewhere else."""
    paths = {"PYTHONPATH": str(ROOT), TREE: str(tmp_path), REPORT: str(tmp_path / "report")}
    options = ["-q", "-p", "no:cacheprovider", "-p", "tests.mutants.witness"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests/unit/test_pace.py"],
        cwd=ROOT, env={**os.environ, **paths}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == pytest.ExitCode.INTERNAL_ERROR
    assert f"and not of {tmp_path}" in done.stdout + done.stderr
    assert not (tmp_path / "report").exists()
