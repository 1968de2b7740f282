"""A plugin for pytest: sees to it that the mutant's tree is what is tested, and writes down how tests fail."""

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

import thinwire
from thinwire.errors import ThinwireError
from thinwire.lab.ranks import RankFailed

TREE, REPORT = "THINWIRE_MUTANT_TREE", "THINWIRE_MUTANT_REPORT"


def pytest_configure(config: pytest.Config) -> None:
    """Stop at once if another thinwire than the mutant's was imported."""
    tree = Path(os.environ[TREE])
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.split(".")[0] == "thinwire" and file is not None and not Path(file).is_relative_to(tree):
            pytest.exit(f"{name} is {file} and not of {tree}", returncode=pytest.ExitCode.INTERNAL_ERROR)
    assert Path(thinwire.__file__).is_relative_to(tree)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be collected is no mutant killed."""
    if report.failed:
        _write({"test": report.nodeid, "when": "collect", "outcome": "failed", "kinds": [], "said": _said(report)})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write down each test's outcome, and of a failure which exceptions there were."""
    report = yield
    kinds = [] if call.excinfo is None else sorted(set(kinds_of(call.excinfo.value)))
    said = _said(report) if report.failed else ""
    _write({"test": item.nodeid, "when": report.when, "outcome": report.outcome, "kinds": kinds, "said": said})
    return report


def kinds_of(error: BaseException) -> list[str]:
    """The names of the exceptions behind a failure: of each rank where ranks failed, of each part of a group."""
    if isinstance(error, BaseExceptionGroup):
        return [kind for part in error.exceptions for kind in kinds_of(part)]
    if isinstance(error, RankFailed):
        return [failure.kind for failure in error.failures.values()]
    if isinstance(error, ThinwireError):
        return ["ThinwireError"]
    return [type(error).__name__]


def _said(report: pytest.TestReport | pytest.CollectReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash is not None else str(report.longrepr))[:300]


def _write(line: dict[str, object]) -> None:
    with open(os.environ[REPORT], "a") as file:
        file.write(json.dumps(line) + "\n")
