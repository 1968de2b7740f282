"""Break thinwire on purpose, one safeguard at a time, and check that the tests notice.

    python tests/mutants/run.py                     # all mutants
    python tests/mutants/run.py --only keep-nothing
    python tests/mutants/run.py --list
    python tests/mutants/run.py --write-readme      # renew the list in tests/README.md

Every mutant gets a copy of ``src``, in which one text is replaced, and an interpreter of its own that imports this
copy. A mutant is killed if each of its tests runs and fails, by an assertion or an error that thinwire (or its runner
of ranks) raised on purpose. An import that fails, a name that does not exist, and a run without an end kill nothing.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutants.listed import MUTANTS, write_readme
from tests.mutants.mutant import ROOT, DoesNotApply, Mutant

LIMIT = 100
"""Seconds after which a run of pytest is stopped; the tests have watches of their own that strike earlier."""
SAME_TREE = "tests/mutants/test_same_tree.py::test_ranks_import_what_the_tests_import"
ON_PURPOSE = {"AssertionError", "Failed", "ThinwireError"}
BROKEN = {
    *("ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "NameError", "UnboundLocalError"),
    *("AttributeError", "TypeError"),
}
"""A change that leads to one of these has broken the code, and shows nothing about a safeguard."""


@dataclass
class Run:
    """What became of one run of pytest."""

    code: int | None
    """The exit code; None where it had to be stopped."""
    seconds: float
    output: str
    reports: list[dict[str, object]] = field(default_factory=list)

    def outcome(self, test: str) -> str:
        """What became of one test's body: passed, failed, skipped, or that it did not run."""
        found = [
            str(report["outcome"]) for report in self.reports if report["test"] == test and report["when"] == "call"
        ]
        return found[0] if found else "did not run"

    def kinds(self, test: str) -> set[str]:
        """The exceptions with which one test failed."""
        return {
            str(kind)
            for report in self.reports
            if report["test"] == test and report["when"] == "call"
            for kind in report["kinds"]  # type: ignore[attr-defined]
        }

    def timed_out(self, test: str) -> bool:
        """Whether a test was stopped by the clock of pytest, which says nothing about what is wrong."""
        return any(
            report["test"] == test and str(report["said"]).startswith("Failed: Timeout") for report in self.reports
        )


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    why: str
    """Why it is not killed; empty if it is."""
    run: Run | None = None


def known_names() -> set[str]:
    """The names under which ranks report errors that were raised on purpose."""
    from thinwire import errors
    from thinwire.lab import ranks

    classes = [*vars(errors).values(), *vars(ranks).values()]
    return ON_PURPOSE | {c.__name__ for c in classes if isinstance(c, type) and issubclass(c, errors.ThinwireError)}


@contextlib.contextmanager
def tree() -> Iterator[Path]:
    """A copy of ``src`` with the compiled kernels, if there are any, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="thinwire-mutant-") as folder:
        src = Path(folder) / "src"
        shutil.copytree(ROOT / "src", src, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        native = importlib.util.find_spec("thinwire._native")
        if native is not None and native.origin is not None:
            shutil.copy2(native.origin, src / "thinwire")
        yield src


def run_tests(src: Path, tests: Sequence[str]) -> Run:
    """Run some tests on a copy of ``src``.

    Without its ``site`` module Python reads no ``.pth`` files, so that an editable install of thinwire does not get in
    the way, here or in the processes of ranks, which inherit the flag.
    """
    folder = src.parent
    report = folder / "report.jsonl"
    packages = dict.fromkeys(sysconfig.get_paths()[kind] for kind in ("purelib", "platlib"))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(src), *packages, str(ROOT)]),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
        "THINWIRE_MUTANT_TREE": str(src),
        "THINWIRE_MUTANT_REPORT": str(report),
    }
    options = ["-q", "-rN", "-p", "no:cacheprovider", "-p", "tests.mutants.witness", "--hypothesis-seed=0"]
    command = [sys.executable, "-S", "-m", "pytest", *options, f"--basetemp={folder / 'tmp'}", *tests]
    began = time.monotonic()
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code: int | None = process.wait(LIMIT)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
        output.seek(0)
        text = output.read()
    lines = report.read_text().splitlines() if report.exists() else []
    return Run(code, time.monotonic() - began, text, [json.loads(line) for line in lines])


def why_survived(mutant: Mutant, run: Run, known: set[str]) -> str:
    """Why a run does not kill a mutant; empty if it does."""
    if run.code is None:
        return f"the tests found no end within {LIMIT} s"
    if run.code != 1:
        return f"pytest ended with exit code {run.code} instead of 1" if run.code else "every test passes"
    for test in mutant.tests:
        if (outcome := run.outcome(test)) != "failed":
            return f"{test} {outcome}"
        kinds = run.kinds(test)
        if run.timed_out(test):
            return f"{test} was stopped by the clock"
        if bad := kinds & BROKEN:
            return f"{test} failed with {', '.join(sorted(bad))}: the change broke the code"
        if not kinds & (known | set(mutant.also)):
            return f"{test} failed with {', '.join(sorted(kinds))}, which nobody raised on purpose"
    return ""


def try_mutant(mutant: Mutant, known: set[str]) -> Verdict:
    """Make a mutant and run its tests."""
    with tree() as src:
        try:
            mutant.apply(src)
        except DoesNotApply as error:
            return Verdict(mutant, str(error))
        run = run_tests(src, mutant.tests)
    return Verdict(mutant, why_survived(mutant, run, known), run)


def try_without(mutants: Sequence[Mutant]) -> str:
    """Run all tests of these mutants on an unchanged copy; what is wrong, or nothing."""
    tests = list(dict.fromkeys([SAME_TREE, *(test for mutant in mutants for test in mutant.tests)]))
    with tree() as src:
        run = run_tests(src, tests)
    failed = [f"{test} {outcome}" for test in tests if (outcome := run.outcome(test)) != "passed"]
    if run.code == 0 and not failed:
        print(f"unchanged: {len(tests)} tests pass in {run.seconds:.0f} s")
        return ""
    return "\n".join([run.output[-6000:], "without any change:", *failed])


def show(verdicts: Sequence[Verdict]) -> None:
    """The table, with rich where it is installed."""
    rows = [
        (
            "SURVIVED" if v.why else "killed",
            v.mutant.name,
            f"{v.run.seconds:.1f} s" if v.run else "",
            v.mutant.safeguard,
        )
        for v in verdicts
    ]
    if importlib.util.find_spec("rich") is None or not sys.stdout.isatty():
        for row in rows:
            print("{:8}  {:34} {:>7}  {}".format(*row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("", "mutant", "time", "the safeguard that was taken out")
    for row in rows:
        table.add_row(*row, style="" if row[0] == "killed" else "bold red")
    Console().print(table)


def chosen(names: Sequence[str]) -> list[Mutant]:
    """The mutants of these names; all of them where none is given."""
    unknown = set(names) - {mutant.name for mutant in MUTANTS}
    if unknown:
        sys.exit(f"there is no mutant named {', '.join(sorted(unknown))}; --list shows those there are")
    return [mutant for mutant in MUTANTS if not names or mutant.name in names]


def main() -> int:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description="Break thinwire on purpose and check that the tests notice.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one mutant; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    parser.add_argument("--write-readme", action="store_true", help="renew the list in tests/README.md and end")
    parser.add_argument("--verbose", action="store_true", help="show what pytest said about every mutant")
    options = parser.parse_args()
    mutants = chosen(options.only)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:34} {mutant.safeguard}")
        return 0
    if options.write_readme:
        write_readme()
        return 0
    began, known = time.monotonic(), known_names()
    if trouble := try_without(mutants):
        print(trouble)
        return 1
    with ThreadPoolExecutor(options.jobs) as executor:
        verdicts = []
        for verdict in executor.map(lambda mutant: try_mutant(mutant, known), mutants):
            verdicts.append(verdict)
            print(f"{len(verdicts):3}/{len(mutants)} {verdict.mutant.name}", end="\r", flush=True)
    show(verdicts)
    for verdict in verdicts:
        if verdict.run is not None and (verdict.why or options.verbose):
            print(f"\n--- {verdict.mutant.name} ---\n{verdict.run.output[-4000:]}")
        if verdict.why:
            print(f"{verdict.mutant.name}: {verdict.why}")
    survived = sum(bool(verdict.why) for verdict in verdicts)
    print(f"{len(verdicts) - survived} killed, {survived} survived, {time.monotonic() - began:.0f} s")
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main())
