"""Emulated hosts for real: links, live changes, programs. No test asks how fast this machine is."""

import json
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from tests.docs.pages import ROOT
from thinwire.lab import Change, LabFailed, LabRefused, Schedule, run_in, verify
from thinwire.lab.checking import check
from thinwire.lab.fixtures import MakeCluster

ENV = {"PYTHONPATH": ":".join([str(ROOT), *sys.path])}


def test_links_carry_no_more_than_they_were_set_to(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(4, "rate=10mbit")
    for path in check(cluster, seconds=0.6):
        assert 0 < path.found_rate <= 1.25 * 10e6  # a queue that empties can give a little more


def test_interfaces_count_to_the_byte(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(4, "rate=10mbit", check=False)
    before = cluster.counters()
    assert cluster.lost(0, 1, 100) == 0
    after = [now - then for now, then in zip(cluster.counters(), before, strict=True)]
    assert after[0].up == after[1].down == 100 * (14 + 20 + 8 + len("thinwire"))
    assert after[0].up_packets == after[1].down_packets == 100
    assert after[2].up == after[3].down == 0


def test_delay_is_a_path_of_two_links(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(3, "rate=10mbit delay=10ms")
    cluster.set_link(2, "down", delay="35ms")
    near, far = cluster.round_trips([(0, 1), (0, 2)], 5)
    assert near >= 0.02
    assert far >= 0.05
    cluster.set_net("rate=10mbit")
    assert cluster.round_trips([(0, 2)], 15)[0] < 0.02


def test_what_is_lost_is_lost(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(2, "loss=10%")
    assert 0.06 < cluster.lost(0, 1, 4000) / 4000 < 0.14  # eight standard deviations


def test_a_host_can_be_cut_off_and_let_back(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(4, "unlimited", check=False)
    assert cluster.lost(0, 1, 10) == 0
    cluster.cut(1)
    assert cluster.lost(0, 1, 10) == 10
    assert cluster.lost(2, 3, 10) == 0
    cluster.partition([0, 1], [2, 3])
    assert cluster.lost(0, 1, 10) == 10, "it is still cut off"
    cluster.mend(1)
    assert cluster.lost(0, 1, 10) == cluster.lost(2, 3, 10) == 0
    assert cluster.lost(0, 2, 10) == cluster.lost(3, 1, 10) == 10
    cluster.partition()
    assert cluster.lost(0, 2, 10) == 0
    flapping = threading.Thread(target=cluster.flap, args=(0, 0.2, 2, 0.2))
    flapping.start()
    flapping.join()
    assert cluster.lost(0, 2, 10) == 0


def test_a_schedule_is_played_and_repeated(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(2, "unlimited", check=False)
    cluster.play(
        Schedule(
            changes=(Change(at=0.0, who=1, cut=True), Change(at=0.4, who=1, cut=False)),
            repeat=0.8,
        )
    )
    time.sleep(0.1)
    assert cluster.lost(0, 1, 5) == 5  # takes half a second of silence, so the host is back when it returns
    time.sleep(0.35)
    assert cluster.lost(0, 1, 5) == 5, "it is cut off again"
    cluster.play(None)
    cluster.mend(1)
    time.sleep(0.5)
    assert cluster.lost(0, 1, 5) == 0


PRINT = """
import os, sys
print({name: os.environ.get(name) for name in ('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'MASTER_ADDR')})
print("oops", file=sys.stderr)
sys.exit(int(os.environ["RANK"]))
"""


def test_ranks_get_the_environment_of_torchrun(lab_cluster: MakeCluster) -> None:
    lines: list[tuple[int, str, str]] = []
    ended = lab_cluster(2, "unlimited", check=False).run(
        [sys.executable, "-c", PRINT],
        ranks_per_host=2,
        on_line=lambda *line: lines.append(line),
    )
    assert [(each.rank, each.host, each.code) for each in ended] == [(0, 0, 0), (1, 0, 1), (2, 1, 2), (3, 1, 3)]
    for each in ended:
        expected = {
            "RANK": str(each.rank),
            "LOCAL_RANK": str(each.rank % 2),
            "WORLD_SIZE": "4",
            "MASTER_ADDR": "10.77.0.1",
        }
        assert str(expected) in each.output
        assert (each.rank, "out", str(expected)) in lines
        assert (each.rank, "err", "oops") in lines


def test_a_program_that_is_not_there(lab_cluster: MakeCluster) -> None:
    ended = lab_cluster(2, "unlimited", check=False).run(["no-such-program"])
    assert [each.code for each in ended] == [127, 127]
    assert "No such file" in ended[0].output


def test_a_host_is_killed_with_all_that_runs_on_it(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(2, "unlimited", check=False)
    said: list[int] = []
    program = ["sh", "-c", "setsid sleep 300 & echo here; sleep 300"]
    with cluster.start(program, on_line=lambda rank, stream, line: said.append(rank)) as job:
        while job.running and set(said) != {0, 1}:
            time.sleep(0.02)
        assert cluster.kill(1) >= 2, "the shell, and what it started in a session of its own"
        assert job.running, "host 0 lives"
        job.stop()
        assert [each.code for each in job.wait(10)] == [-9, -9]


def test_ranks_that_do_not_end_are_killed(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(2, "unlimited", check=False)
    with pytest.raises(LabFailed, match=r"ranks \[0, 1\] did not end within 0.5 s(?s:.*)last words"):
        cluster.run(["sh", "-c", "echo last words; sleep 300"], timeout=0.5)
    assert cluster.run(["true"])[0].code == 0


def test_a_line_too_long_for_one_read_comes_whole(lab_cluster: MakeCluster) -> None:
    ended = lab_cluster(2, "unlimited", check=False).run([sys.executable, "-c", "print('x' * 300_000, end='')"])
    assert [each.output for each in ended] == ["x" * 300_000 + "\n"] * 2


UNSHAPED = "qdisc del dev eth0 root", "shaping did not take"
TOO_SLOW = "class change dev eth0 parent 1: classid 1:1 htb rate 1mbit", "too slow"


@pytest.mark.parametrize(("change", "said"), [UNSHAPED, TOO_SLOW], ids=["unshaped", "too slow"])
def test_shaping_that_did_not_take_is_found(lab_cluster: MakeCluster, change: str, said: str) -> None:
    cluster = lab_cluster(2, "rate=10mbit", check=False)
    links = {(host, way): cluster.net.path for host in range(2) for way in ("up", "down")}
    verify.rates(cluster._line, links)
    assert [each.code for each in cluster.run(["tc", *change.split()])] == [0, 0]
    with pytest.raises(LabFailed, match=said):
        verify.rates(cluster._line, links)


def test_a_delay_that_did_not_take_is_found(lab_cluster: MakeCluster) -> None:
    cluster = lab_cluster(2, "delay=20ms", check=False)
    links = {
        (host, way): link for host in range(2) for way, link in zip(("up", "down"), cluster.net.links(), strict=True)
    }
    verify.round_trips(cluster._line, links, 2)
    assert [each.code for each in cluster.run(["iptables", "-F"])] == [0, 0]
    with pytest.raises(LabFailed, match=r"was set to 40ms, and it took \d"):
        verify.round_trips(cluster._line, links, 2)


def test_mistakes_are_refused_and_nothing_breaks(lab_cluster: MakeCluster) -> None:
    with pytest.raises(LabRefused, match="write 2 to 64"):
        lab_cluster(1)
    cluster = lab_cluster(2, "unlimited", check=False)
    with pytest.raises(LabRefused, match="there is no host 2"):
        cluster.cut(2)
    with pytest.raises(LabRefused, match="up, down or both"):
        cluster.set_link(0, "sideways", rate="1mbit")
    with pytest.raises(LabRefused, match="no rate"):
        cluster.set_link(0, rate="quick")
    with pytest.raises(LabRefused, match="1 or more"):
        cluster.start(["true"], ranks_per_host=0)
    with pytest.raises(LabRefused, match="speaks of host 5"):
        cluster.play(Schedule(changes=(Change(at=0.0, who=5, cut=True),)))
    assert cluster.lost(0, 1, 5) == 0


def test_gloo_and_thinwire_over_a_wide_area(lab_cluster: MakeCluster) -> None:
    """And byte truth: what `stats` says is what the host's interface has sent, within the protocols' overhead."""
    lab_cluster(2, "unlimited", check=False).close()  # skips where there are no labs
    program = [sys.executable, str(Path(__file__).with_name("rank.py"))]
    ended = run_in("rate=50mbit delay=2ms", 2, program, env=ENV, timeout=100)
    assert [each.code for each in ended] == [0, 0], ended
    found = [json.loads(each.output.splitlines()[-1]) for each in ended]
    for rank in found:
        # The interface also counts the headers of TCP, and acknowledgements.
        assert 0.98 * rank["ours"] <= rank["kernel"] <= 1.10 * rank["ours"] + 20_000
        assert rank["mean"] == 0.5
    assert found[0]["gradient"] == found[1]["gradient"]
    assert torch.isfinite(torch.tensor(found[0]["gradient"]))
