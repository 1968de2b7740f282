"""Links, networks and schedules as people write them: what is meant, and what is refused. Nothing is emulated here."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinwire.lab import NETWORKS, Change, LabRefused, Link, Network, Schedule, network, quantities, read_schedule
from thinwire.lab.networks import halves
from thinwire.lab.relay import paths
from thinwire.lab.schedules import paper_c1, paper_c2, phone
from thinwire.lab.shaping import rate_lines

WAYS = ("up", "down")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (quantities.rate, "100mbit", 100e6),
        (quantities.rate, "2.5 Gbit", 2.5e9),
        (quantities.rate, 5e6, 5e6),
        (quantities.time, "20ms", 0.02),
        (quantities.time, "1s", 1.0),
        (quantities.size, "64kib", 65536.0),
        (quantities.share, "1%", 0.01),
        (quantities.share, "0.01", 0.01),
    ],
)
def test_quantities_mean_what_they_say(read, text, value):
    assert read(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "fast", "100", "100mb", "-1mbit", "1e6bit", "mbit"])
def test_what_is_no_rate_is_refused_with_an_example(text):
    with pytest.raises(LabRefused, match="100mbit"):
        quantities.rate(text)


@given(st.floats(1e4, 1e11))
def test_a_rate_is_shown_as_it_is_read(value):
    assert quantities.rate(quantities.show_rate(value)) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 100.0}, "at least 8kbit"),
        ({"delay": -1.0}, "0 to 10 s"),
        ({"delay": 0.01, "jitter": 0.02}, "no more than that"),
        ({"loss": 1.0}, "cut the host off"),
        ({"queue": 10.0}, "two frames"),
    ],
)
def test_a_link_that_cannot_be_is_refused(options, said):
    with pytest.raises(LabRefused, match=said):
        Link(**options)


def test_links_change_by_text_and_by_number():
    link = Link(rate=1e6, delay=0.01).changed(rate="5mbit", loss="1%")
    assert link == Link(rate=5e6, delay=0.01, loss=0.01)
    assert link.changed(rate=None).rate is link.changed(rate="unlimited").rate is None
    with pytest.raises(LabRefused, match="it has rate, delay, jitter, loss, queue"):
        link.changed(speed="1mbit")


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.9))
def test_two_halves_make_the_path(delay, part, loss):
    path = Link(rate=1e6, delay=delay, jitter=part * delay, loss=loss)
    rows = [(h, way, x.delay, x.jitter, x.loss) for h in (0, 1) for way, x in zip(WAYS, halves(path), strict=True)]
    found = paths(rows)[0, 1]
    assert found.delay == pytest.approx(path.delay)
    assert found.jitter == pytest.approx(path.jitter)
    assert found.loss == pytest.approx(path.loss)


def test_the_named_networks_are_what_their_names_say():
    asked = "lan-10g lan-1g office-100m campus-300m-2ms wan-100m-20ms continent-50m-50ms home-20m-10ms-jitter lte flaky"
    assert set(asked.split()) | {"c1", "c2"} <= set(NETWORKS)
    assert NETWORKS["campus-300m-2ms"].path == Link(rate=300e6, delay=0.002)
    assert NETWORKS["home-20m-10ms-jitter"].links()[0].rate == 10e6
    assert NETWORKS["home-20m-10ms-jitter"].links()[1].rate == 20e6
    assert NETWORKS["flaky"].path.loss > 0


def test_a_network_can_be_described():
    assert network("rate=5mbit, delay=2ms").path == Link(rate=5e6, delay=0.002)
    own = Network(name="own", path=Link())
    assert network(own) is own


def test_an_unknown_network_is_refused_with_a_guess():
    with pytest.raises(LabRefused, match="did you mean 'wan-100m-20ms'"):
        network("wan-100m-20")


FILE = """
0    net      rate=100mbit delay=20ms   # from host to host
10   host 2   rate=5mbit
12   host 2 up delay=40ms
20   host 1 cut
21.5 host 1 mend
30   host 3 kill
60   repeat
"""


def test_a_schedule_is_read(tmp_path: Path):
    file = tmp_path / "changes"
    file.write_text(FILE)
    assert read_schedule(file) == Schedule(
        changes=(
            Change(at=0.0, options={"rate": 100e6, "delay": 0.02}),
            Change(at=10.0, who=2, options={"rate": 5e6}),
            Change(at=12.0, who=2, direction="up", options={"delay": 0.04}),
            Change(at=20.0, who=1, cut=True),
            Change(at=21.5, who=1, cut=False),
            Change(at=30.0, who=3, kill=True),
        ),
        repeat=60.0,
    )


def test_a_trace_is_read(tmp_path: Path):
    file = tmp_path / "trace"
    file.write_text("0 10\n0.5 2.5 30\n")
    changes = read_schedule(file).changes
    assert changes[0].options == {"rate": 10e6}
    assert changes[1].options == pytest.approx({"rate": 2.5e6, "delay": 0.03})


@pytest.mark.parametrize(
    "line", ["5 host x cut", "5 host 1", "5 net", "5 nothing", "x host 1 cut", "5 net speed=1mbit"]
)
def test_a_line_that_means_nothing_is_named(tmp_path: Path, line: str):
    file = tmp_path / "changes"
    file.write_text(f"0 net rate=1mbit\n{line}\n")
    with pytest.raises(LabRefused, match="line 2"):
        read_schedule(file)


def test_a_schedule_goes_forward(tmp_path: Path):
    with pytest.raises(LabRefused, match="order of their times"):
        Schedule(changes=(Change(at=2.0), Change(at=1.0)))
    with pytest.raises(LabRefused, match="cannot repeat after 1 s"):
        Schedule(changes=(Change(at=2.0),), repeat=1.0)
    with pytest.raises(LabRefused, match="cannot be read"):
        read_schedule(tmp_path / "absent")


def test_the_papers_schedules_are_scaled_by_fifty():
    c1 = [(change.at, change.options["delay"], change.options["rate"]) for change in paper_c1().changes]
    assert c1 == [(0, 0.001, 500e6), (12, 0.001, 20e6), (24, 0.05, 20e6), (36, 0.05, 500e6)]
    c2 = paper_c2().changes
    assert [change.at for change in c2] == [4.0 * number for number in range(12)]
    assert [change.options["rate"] for change in c2] == [r * 20e6 for r in (25, 20, 15, 10, 5, 1, 1, 5, 10, 15, 20, 25)]


def test_the_telephones_walk_is_the_same_every_time():
    assert phone() == phone()
    assert phone(seed=1) != phone()
    assert all(0.4e6 <= change.options["rate"] <= 60e6 for change in phone().changes)


def test_a_class_is_changed_in_place():
    link = Link(rate=10e6)
    assert [line.split()[0] for line in rate_lines("eth0", link, shaped=False)] == ["qdisc", "class", "qdisc"]
    assert not any(" root " in f"{line} " for line in rate_lines("eth0", link, shaped=True))
    assert rate_lines("eth0", Link(), shaped=True) == ["qdisc del dev eth0 root"]
    assert rate_lines("eth0", Link(), shaped=False) == []
