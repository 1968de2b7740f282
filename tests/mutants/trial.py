"""One mutant on trial: a tree with the change in it, a run of pytest on this tree, and what follows from it."""

import contextlib
import importlib.util
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.warm import Warm
from tests.mutants.witness import REPORT, TREE
from thinwire import errors
from thinwire.lab import errors as lab_errors
from thinwire.lab import ranks

LIMIT = 100
"""Seconds after which a run of pytest is stopped; the tests have watches of their own that strike earlier."""
ON_PURPOSE = {"AssertionError", "Failed", "ThinwireError"} | {
    name
    for module in (errors, lab_errors, ranks)
    for name, what in vars(module).items()
    if isinstance(what, type) and issubclass(what, errors.ThinwireError)
}
"""Exceptions that a test, thinwire, or its runner of ranks raise because something is wrong."""
BROKEN = {
    *("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError", "UnboundLocalError"),
    *("AttributeError", "TypeError"),
}
"""A change that leads to one of these has broken the code, and shows nothing about a safeguard."""


@dataclass(frozen=True)
class Run:
    """What became of one run of pytest.

    Attributes:
        code: The exit code; None where it had to be stopped.
        seconds: How long it took.
        output: What pytest printed.
        reports: By node id, what the witness wrote about the test's body.
    """

    code: int | None
    seconds: float
    output: str
    reports: dict[str, dict[str, Any]]

    def outcome(self, test: str) -> str:
        """What became of one test's body: passed, failed, skipped, or that it did not run."""
        return str(self.reports[test]["outcome"]) if test in self.reports else "did not run"

    def kinds(self, test: str) -> set[str]:
        """The exceptions with which one test failed."""
        return set(self.reports[test]["kinds"]) if test in self.reports else set()

    def said(self, test: str) -> str:
        """The first line of what one test failed with."""
        return str(self.reports[test]["said"]).partition("\n")[0] if test in self.reports else ""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and why it is not killed; empty if it is."""

    mutant: Mutant
    why: str
    run: Run


@contextlib.contextmanager
def tree(of: Path | None = None) -> Iterator[Path]:
    """A copy of ``src`` in a folder of its own.

    Args:
        of: What to copy; by default the repository's, and the compiled kernels, if there are any, beside it.
    """
    with tempfile.TemporaryDirectory(prefix="thinwire-mutant-") as folder:
        src = Path(folder) / "src"
        shutil.copytree(of or ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__"))
        native = importlib.util.find_spec("thinwire._native") if of is None else None
        if native is not None and native.origin is not None:
            shutil.copy2(native.origin, src / "thinwire")
        yield src


def run_tests(src: Path, tests: Sequence[str], warm: Warm) -> Run:
    """Run some tests on a copy of ``src``."""
    folder = src.parent
    environ = {
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        TREE: str(src),
        REPORT: str(folder / "report"),
    }
    options = ["-q", "-rN", "-p", "no:cacheprovider", "-p", "tests.mutants.witness", "--hypothesis-seed=0"]
    places = [f"--basetemp={folder / 'tmp'}", f"--timeout={LIMIT - 20}"]
    began = time.monotonic()
    with (folder / "output").open("w+") as output:
        code = warm.pytest([*options, *places, *tests], path=src, environ=environ, output=output, limit=LIMIT)
        output.seek(0)
        text = output.read()
    seconds = time.monotonic() - began
    reports = (folder / "report").read_text().splitlines() if (folder / "report").exists() else []
    bodies = [line for line in map(json.loads, reports) if line["when"] == "call"]
    return Run(code, seconds, text, {line["test"]: line for line in bodies})


def why_survived(mutant: Mutant, run: Run) -> str:
    """Why a run does not kill a mutant; empty if it does."""
    if run.code is None:
        return f"the tests found no end within {LIMIT} s"
    if run.code != 1:
        return f"pytest ended with exit code {run.code}" if run.code else "every test passes"
    for test in mutant.tests:
        kinds = run.kinds(test)
        if (outcome := run.outcome(test)) != "failed":
            return f"{test} {outcome}"
        if run.said(test).startswith("Failed: Timeout"):
            return f"{test} was stopped by the clock"
        if bad := kinds & BROKEN:
            return f"{test} failed with {', '.join(sorted(bad))}: the change broke the code"
        if not kinds & {*ON_PURPOSE, *mutant.also}:
            return f"{test} failed with {', '.join(sorted(kinds))}, which nobody raised on purpose"
    return ""


def try_mutant(mutant: Mutant, unchanged: Path, warm: Warm) -> Verdict:
    """Make a mutant and run its tests."""
    with tree(unchanged) as src:
        mutant.apply(src)
        run = run_tests(src, mutant.tests, warm)
    return Verdict(mutant, why_survived(mutant, run), run)
