"""Nothing is left behind, whoever is killed; and nobody else's lab, interface or process is touched."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lab import cycles
from tests.docs.pages import ROOT
from thinwire.lab import LabFailed, LabMissing, clean, cluster, entrance, find
from thinwire.lab.fixtures import MakeCluster

OWNER = """
import json, os, sys, time
from thinwire import lab
c = lab.cluster(2, "unlimited", check=False)
job = c.start(["sh", "-c", "sleep 600 & sleep 600"])
time.sleep(0.3)
print(json.dumps([each.keeper for each in lab.find() if each.owner == os.getpid()]), flush=True)
time.sleep(600)
"""
# A user without any rights, in a user namespace in which new ones can be made.
AS_NOBODY = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
UNPRIVILEGED = """
import os
from thinwire import lab
assert os.geteuid() == 1000
with lab.cluster(2, "delay=5ms", check=False) as c:
    c.set_link(0, rate="20mbit")
    assert c.round_trips([(0, 1)], 3)[0] >= 0.01
    assert c.lost(0, 1, 20) == 0
    assert [each.code for each in c.run(["true"])] == [0, 0]
print("done")
"""


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


@contextlib.contextmanager
def owned() -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """Another process that has a lab, and the lab's keeper."""
    why = entrance.missing()
    if why:
        pytest.skip(why)
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, env=environ())
    assert owner.stdout is not None
    with owner.stdout:
        (keeper,) = json.loads(owner.stdout.readline())
        try:
            yield owner, keeper
        finally:
            owner.kill()
            owner.wait()


def alive(*keepers: int) -> bool:
    return any(lab.keeper in keepers for lab in find())


def test_a_killed_owner_leaves_nothing() -> None:
    with owned() as (owner, keeper):
        inside = cycles.inhabitants(keeper)
        assert len(inside) >= 5, "the keeper, two shells, and their children"
        owner.kill()
        wait_until(lambda: not any(entrance.identity(pid) for pid in inside))
        assert not alive(keeper)


def test_a_lab_whose_keeper_hangs_is_cleaned_away() -> None:
    with owned() as (owner, keeper), owned() as (_, other):
        inside = cycles.inhabitants(keeper)
        os.kill(keeper, signal.SIGSTOP)
        owner.kill()
        owner.wait()
        assert [lab.orphaned for lab in find() if lab.keeper == keeper] == [True]
        assert [lab.keeper for lab in clean(find())] == [keeper]
        wait_until(lambda: not any(entrance.identity(pid) for pid in inside))
        assert alive(other), "its owner lives"


def test_a_killed_keeper_is_noticed(lab_cluster: MakeCluster) -> None:
    made = lab_cluster(2, "unlimited", check=False)
    with made.start(["sleep", "600"]) as job:
        (mine,) = [lab for lab in find() if lab.owner == os.getpid()]
        inside = cycles.inhabitants(mine.keeper)
        os.kill(mine.keeper, signal.SIGKILL)
        with pytest.raises(LabFailed, match="ended unexpectedly"):
            job.wait(20)
    wait_until(lambda: not any(entrance.identity(pid) for pid in inside))
    with pytest.raises(LabFailed):
        made.counters()


def test_a_killed_relay_is_noticed(lab_cluster: MakeCluster) -> None:
    made = lab_cluster(2, "delay=1ms", check=False)
    (mine,) = [lab for lab in find() if lab.owner == os.getpid()]
    (relay,) = cycles.inhabitants(mine.keeper) - {mine.keeper}
    with made.start(["sleep", "600"]) as job:
        assert len(cycles.inhabitants(mine.keeper)) == 4
        os.kill(relay, signal.SIGKILL)
        with pytest.raises(LabFailed, match="holds packets back"):
            job.wait(20)


def test_made_and_killed_again_and_again(lab_cluster: MakeCluster) -> None:
    lab_cluster(2, "unlimited", check=False).close()
    before = cycles.world()
    for number in range(6):
        cycles.cycle(number)
    assert cycles.settled(before) == []


def test_the_keeper_does_not_import_torch() -> None:
    program = "import sys; import thinwire.lab.keeper; assert not {'torch', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True, env=environ())


def can(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(
    not can(*AS_NOBODY, "unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--net", "true"),
    reason="no unprivileged user can make namespaces here",
)
def test_without_root_there_is_a_user_namespace(lab_cluster: MakeCluster) -> None:
    lab_cluster(2, "delay=1ms", check=False).close()
    done = subprocess.run(
        [*AS_NOBODY, sys.executable, "-c", UNPRIVILEGED], capture_output=True, text=True, env=environ(), timeout=60
    )
    assert done.stdout == "done\n", done.stderr


def tools(tmp_path: Path, *names: str) -> str:
    for name in names:
        where = entrance.shutil.which(name, path=entrance.search_path())
        (tmp_path / name).symlink_to(str(where))
    return str(tmp_path)


def test_without_tools_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance, "search_path", lambda: str(tmp_path))
    with pytest.raises(LabMissing, match=r"needs ip: install the package iproute2 .*make lab"):
        cluster(2, "lan-1g")


def test_without_iptables_there_are_rates_but_no_delay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lab_cluster: MakeCluster
) -> None:
    made: Any = lab_cluster(2, "unlimited", check=False)
    made.close()
    path = tools(tmp_path, "ip", "tc", "bridge", "unshare")
    monkeypatch.setattr(entrance, "search_path", lambda: path)
    with cluster(2, "rate=10mbit", check=False) as made:
        assert made.lost(0, 1, 5) == 0
        with pytest.raises(LabMissing, match=r"install the package iptables .*office-100m"):
            made.set_link(0, delay="5ms")
        assert made.lost(0, 1, 5) == 0
