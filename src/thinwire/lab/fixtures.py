"""Labs in tests: write ``pytest_plugins = ["thinwire.lab.fixtures"]`` and take the fixture `lab_cluster`."""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

import pytest

from thinwire.lab.clusters import Cluster, cluster
from thinwire.lab.entrance import missing
from thinwire.lab.errors import LabMissing


class MakeCluster(Protocol):
    """The type of the fixture `lab_cluster`: `thinwire.lab.cluster`."""

    def __call__(self, hosts: int, net: str = "lan-1g", **options: Any) -> Cluster:
        """Make a cluster that lives until the test ends.

        Args:
            hosts: How many.
            net: A network's name, or a description.
            **options: As of `thinwire.lab.cluster`.
        """


@pytest.fixture
def lab_cluster() -> Iterator[MakeCluster]:
    """Makes clusters that are gone when the test ends; skips it, and says why, where this machine has no labs."""
    why = missing()
    if why:
        pytest.skip(why)
    with contextlib.ExitStack() as stack:

        def make(hosts: int, net: str = "lan-1g", **options: Any) -> Cluster:
            try:
                return stack.enter_context(cluster(hosts, net, **options))
            except LabMissing as error:
                pytest.skip(str(error))

        yield make


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known that tests of the lab get."""
    config.addinivalue_line("markers", "emulated: runs on emulated hosts (given to every test that takes lab_cluster)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that take the fixture."""
    for item in items:
        if "lab_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker("emulated")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many tests ran on emulated hosts, and why others did not."""
    stats = terminalreporter.stats
    reports = {
        outcome: [report for report in stats.get(outcome, ()) if "emulated" in getattr(report, "keywords", ())]
        for outcome in ("passed", "failed", "skipped")
    }
    if not any(reports.values()):
        return
    ran = len(reports["passed"]) + len(reports["failed"])
    terminalreporter.write_line(f"lab tests: {ran} ran on emulated hosts, {len(reports['skipped'])} skipped")
    for why in sorted({str(each.longrepr[2]) for each in reports["skipped"] if isinstance(each.longrepr, tuple)}):
        terminalreporter.write_line(f"  {why}")
