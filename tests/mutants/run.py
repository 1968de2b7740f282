"""Break thinwire on purpose, one safeguard at a time, and check that the tests notice.

    python tests/mutants/run.py                     # all mutants
    python tests/mutants/run.py --only keep-everything
    python tests/mutants/run.py --list
    python tests/mutants/run.py --write-readme      # renew the list in tests/README.md

Every mutant gets a copy of ``src``, in which one text is replaced, and a process of its own that imports this copy,
forked from an interpreter that has imported torch. A mutant is killed if each of its tests runs and fails, by an
assertion or an error that thinwire (or its runner of ranks) raised on purpose. An import that fails, a name that does
not exist, and a run without an end kill nothing.
"""

import argparse
import importlib.util
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.mutants.listed import MUTANTS, write_readme
from tests.mutants.mutant import ROOT, DoesNotApply, Mutant
from tests.mutants.trial import Verdict, run_tests, tree, try_mutant
from tests.mutants.warm import Warm

SAME_TREE = "tests/mutants/test_same_tree.py::test_ranks_import_what_the_tests_import"


def chosen(names: Sequence[str]) -> list[Mutant]:
    """The mutants of these names; all of them where none is given."""
    if unknown := set(names) - {mutant.name for mutant in MUTANTS}:
        sys.exit(f"there is no mutant named {', '.join(sorted(unknown))}; --list shows those there are")
    return [mutant for mutant in MUTANTS if not names or mutant.name in names]


def no_longer_applying(mutants: Sequence[Mutant]) -> Iterator[str]:
    """Mutants whose text is not there any more."""
    for mutant in mutants:
        try:
            mutant.changed((ROOT / "src" / "thinwire" / mutant.file).read_text())
        except (DoesNotApply, FileNotFoundError) as error:
            yield str(error)


def failing_without_a_change(mutants: Sequence[Mutant], unchanged: Path, warm: Warm) -> str:
    """Run all tests of these mutants on an unchanged copy; what is wrong, or nothing."""
    tests = list(dict.fromkeys([SAME_TREE, *(test for mutant in mutants for test in mutant.tests)]))
    with tree(unchanged) as src:
        run = run_tests(src, tests, warm)
    failed = [f"{test} {outcome}" for test in tests if (outcome := run.outcome(test)) != "passed"]
    if run.code == 0 and not failed:
        print(f"unchanged: {len(tests)} tests pass in {run.seconds:.0f} s", flush=True)
        return ""
    return "\n".join([run.output[-6000:], "without any change:", *failed])


def trials(mutants: Sequence[Mutant], unchanged: Path, jobs: int, warm: Warm) -> list[Verdict]:
    """Try all mutants, some at a time."""
    executor = ThreadPoolExecutor(jobs)
    futures = [executor.submit(try_mutant, mutant, unchanged, warm) for mutant in mutants]
    try:
        for number, future in enumerate(as_completed(futures), 1):
            verdict = future.result()
            state = f"SURVIVED: {verdict.why}" if verdict.why else "killed"
            print(f"{number:3}/{len(mutants)} {verdict.mutant.name}: {state}", flush=True)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    return [future.result() for future in futures]


def show(verdicts: Sequence[Verdict]) -> None:
    """The table, with rich where it is installed."""
    rows = [
        ("SURVIVED" if v.why else "killed", v.mutant.name, f"{v.run.seconds:.1f} s", v.mutant.safeguard)
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


def explain(verdict: Verdict) -> None:
    """How each test failed; the whole output where the mutant survived."""
    print(f"\n{verdict.mutant.name}: {verdict.why or 'killed'}")
    for test in verdict.mutant.tests:
        kinds = ", ".join(sorted(verdict.run.kinds(test)))
        print(f"  {test} {verdict.run.outcome(test)} ({kinds})\n    {verdict.run.said(test)}")
    if verdict.why:
        print(verdict.run.output[-4000:])


def gate(mutants: Sequence[Mutant], *, jobs: int, verbose: bool) -> int:
    """Run the gate; the exit code."""
    began = time.monotonic()
    if lost := list(no_longer_applying(mutants)):
        print("\n".join(lost))
        return 1
    with tree() as unchanged, Warm() as warm:
        if trouble := failing_without_a_change(mutants, unchanged, warm):
            print(trouble)
            return 1
        verdicts = trials(mutants, unchanged, jobs, warm)
    show(verdicts)
    for verdict in verdicts:
        if verdict.why or verbose:
            explain(verdict)
    survived = sum(bool(verdict.why) for verdict in verdicts)
    print(f"{len(verdicts) - survived} killed, {survived} survived, {time.monotonic() - began:.0f} s")
    return int(bool(survived))


def main() -> int:
    """See the top of the file."""
    parser = argparse.ArgumentParser(description="Break thinwire on purpose and check that the tests notice.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one mutant; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    parser.add_argument("--write-readme", action="store_true", help="renew the list in tests/README.md and end")
    parser.add_argument("--verbose", action="store_true", help="show how every test failed")
    options = parser.parse_args()
    mutants = chosen(options.only)
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name:34} {mutant.safeguard}")
        return 0
    if options.write_readme:
        write_readme()
        return 0
    return gate(mutants, jobs=options.jobs, verbose=options.verbose)


if __name__ == "__main__":
    sys.exit(main())
