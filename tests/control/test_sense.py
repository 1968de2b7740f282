"""Trackers and the sense of the wire: odd measurements do not move them, changes do, nonsense does nothing."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thinwire.control.network import Exchanged, Network, Sense
from thinwire.control.track import Tracker

NONSENSE = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e18, -1e18, 5e-324]


def after(values, tracker=None):
    tracker = Tracker() if tracker is None else tracker
    for value in values:
        tracker = tracker.seen(value)
    return tracker


def noisy(value, count, seed=0, sigma=0.1):
    chance = random.Random(seed)
    return [value * math.exp(chance.gauss(0, sigma)) for _ in range(count)]


def test_it_comes_to_what_it_sees():
    assert after(noisy(0.01, 50)).value == pytest.approx(0.01, rel=0.1)


def test_odd_ones_do_not_flip_it():
    tracker = after(noisy(0.01, 20))
    for _ in range(10):
        for value in (1.0, 1.0, *noisy(0.01, 3)):
            tracker = tracker.seen(value)
            assert tracker.value == pytest.approx(0.01, rel=0.5)


@pytest.mark.parametrize("factor", [0.02, 0.5, 2.0, 50.0])
def test_a_change_is_known_after_three_steps(factor):
    tracker = after(noisy(0.01, 30, sigma=0.05))
    before = tracker
    for value in noisy(0.01 * factor, 3, seed=1, sigma=0.05):
        assert tracker.value == pytest.approx(0.01, rel=0.1)
        before, tracker = tracker, tracker.seen(value)
    assert tracker.value == pytest.approx(0.01 * factor, rel=0.15)
    assert tracker.began_anew(before)


@given(st.lists(st.one_of(st.sampled_from(NONSENSE), st.floats()), max_size=60))
def test_nonsense_is_survived(values):
    tracker = after(values)
    if tracker.known:
        assert math.isfinite(tracker.value)
        assert tracker.value > 0.0
    assert after(NONSENSE, tracker) == tracker


def test_bytes_and_rounds_are_told_apart():
    chance, sense = random.Random(2), Sense()
    true = Network.of(10, 100)
    for step in range(40):
        size = 1e5 * (1 + step % 5)
        odd = 20.0 if chance.random() < 0.05 else 1.0
        sense = sense.felt(true.latency * math.exp(chance.gauss(0, 0.05)))
        seconds = true.seconds(3, size) * math.exp(chance.gauss(0, 0.05)) * odd
        sense = sense.exchanged(Exchanged(rounds=3, bytes_sent=size, seconds=seconds))
    assert sense.network.latency == pytest.approx(true.latency, rel=0.1)
    assert sense.network.per_byte == pytest.approx(true.per_byte, rel=0.35)


def test_bytes_hidden_in_rounds_say_no_more_than_a_bound():
    sense = Sense(latency=after([0.1] * 5))
    sense = sense.exchanged(Exchanged(rounds=6, bytes_sent=1000, seconds=0.6))
    assert sense.network.per_byte <= 0.05 * 0.6 / 1000
    known = sense
    for _ in range(20):
        sense = sense.exchanged(Exchanged(rounds=6, bytes_sent=10, seconds=0.6))
    assert sense == known, "fewer bytes say less"


@given(st.floats(), st.floats(), st.floats(), st.floats())
def test_no_exchange_harms_the_sense(trip, rounds, sent, seconds):
    sense = Sense().felt(trip).exchanged(Exchanged(rounds=rounds, bytes_sent=sent, seconds=seconds))
    if sense.known:
        assert 0.0 < sense.network.seconds(1, 1) < math.inf


def test_a_network_is_said_as_people_say_it():
    assert str(Network.of(10, 100)) == "10 ms a round, 100 Mbit/s"
    assert "2.5 Gbit/s" in str(Network.of(1, 2500))
    assert "50 kbit/s" in str(Network.of(1, 0.05))
