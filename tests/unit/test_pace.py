"""Deadlines: generous to a wire that becomes thin, and finite."""

from thinwire.pace import Pace


def test_patience_until_something_was_measured():
    assert Pace(patience=100.0).allowance(10**6, 3) == 100.0


def test_deadlines_follow_bytes_and_the_slowest_speed():
    pace = Pace(floor=30.0, patience=1800.0)
    pace.observe(10**6, 3, 0.1)
    pace.observe(10**6, 3, 0.5)
    one, two = pace.allowance(10**6, 3), pace.allowance(2 * 10**6, 3)
    assert one == 30.0 + 100 * 0.5
    assert two == 30.0 + 100 * 1.0
    pace.observe(100, 2, 0.4)
    assert pace.allowance(10**6, 3) == 30.0 + 100 * (0.5 + 3 * 0.2)


def test_a_wire_that_collapses_a_hundredfold_is_not_taken_for_dead():
    """200 Mbit/s to 2 Mbit/s under a bucket of 25 MB."""
    pace = Pace()
    pace.observe(25 * 10**6, 6, 25e6 * 8 / 200e6)
    assert pace.allowance(25 * 10**6, 6) > 25e6 * 8 / 2e6


def test_deadlines_are_bounded_by_patience():
    pace = Pace(floor=1.0, patience=60.0)
    pace.observe(10**6, 3, 100.0)
    assert pace.allowance(10**9, 3) == 60.0


def test_nonsense_is_not_remembered():
    pace = Pace(patience=7.0)
    for bytes_sent, rounds, seconds in ((10**6, 3, 0.0), (10**6, 3, -1.0), (10**6, 0, 1.0)):
        pace.observe(bytes_sent, rounds, seconds)
    assert pace.allowance(1, 1) == 7.0


def test_old_speeds_are_forgotten():
    pace = Pace(memory=2)
    pace.observe(10**6, 1, 10.0)
    pace.observe(10**6, 1, 0.1)
    pace.observe(10**6, 1, 0.1)
    assert pace.allowance(10**6, 1) == 30.0 + 100 * 0.1
