"""`thinwire lab`: what it prints and returns."""

import re
import sys
from pathlib import Path

import pytest

from thinwire.cli import main
from thinwire.lab import NETWORKS
from thinwire.lab.fixtures import MakeCluster


def test_networks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "list"]) == 0
    said = capsys.readouterr().out
    for name in NETWORKS:
        assert re.search(rf"^{name} ", said, re.MULTILINE)


def test_running_labs_are_listed_and_not_cleaned(lab_cluster: MakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    lab_cluster(3, "unlimited", check=False)
    assert main(["lab", "list"]) == 0
    assert "a lab of 3 hosts, of process " in capsys.readouterr().out
    assert main(["lab", "clean"]) == 0
    assert re.search(r"removed \d+ labs; [1-9]\d* of live processes stay", capsys.readouterr().out)


def test_a_program_runs_on_every_host(
    lab_cluster: MakeCluster, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lab_cluster(2, "unlimited", check=False).close()
    schedule = tmp_path / "changes"
    schedule.write_text("0 net rate=5mbit\n")
    program = "import os, sys; print('I am', os.environ['RANK']); sys.exit(3 * (os.environ['RANK'] == '1'))"
    options = ["--hosts", "2", "--net", "rate=10mbit", "--schedule", str(schedule)]
    assert main(["lab", "run", *options, "--", sys.executable, "-c", program]) == 3
    said = capsys.readouterr()
    assert sorted(said.out.splitlines()) == ["[0] I am 0", "[1] I am 1"]
    assert "rank 1 on host 1 ended with 3" in said.err


def test_a_network_is_checked(lab_cluster: MakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    lab_cluster(2, "unlimited", check=False).close()
    assert main(["lab", "check", "--hosts", "2", "--net", "rate=10mbit", "--seconds", "0.5"]) == 0
    table = capsys.readouterr().out
    assert re.search(r"^ +0 +1 +10mbit +[\d.]+mbit +[\d.]+%", table, re.MULTILINE)
    assert re.search(r"^ +1 +0 +10mbit +[\d.]+mbit +[\d.]+%", table, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run"], "nothing to run was given"),
        (["run", "--net", "wan-100m-20m", "--", "true"], "did you mean 'wan-100m-20ms'"),
        (["run", "--hosts", "1", "--", "true"], "write 2 to 64"),
        (["run", "--schedule", "no-such-file", "--", "true"], "cannot be read"),
    ],
)
def test_mistakes_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", *words]) == 2
    assert said in capsys.readouterr().err
