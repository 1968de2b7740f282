"""Law 5: the same observations, the same plan, on every rank; whatever the observations are."""

import math
import random
import struct
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.control.simulate import Link, World, drive
from thinwire.control.controller import Controller
from thinwire.control.menu import FAMILIES, Choice
from thinwire.control.mind import State
from thinwire.control.notes import FIGURES, KNOTS, SIZE, Note, together
from thinwire.control.policies import POLICIES, BestWithin, Paper
from thinwire.errors import PlanError, StateError
from thinwire.plans import Feedback, Plan

ODD = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e18, 1e-18, 1e30, 5e-324, 1.0, 0.01]
numbers = st.one_of(st.sampled_from(ODD), st.floats(), st.floats(min_value=1e-6, max_value=10.0))
notes = st.builds(
    Note,
    gains=st.one_of(st.just(()), st.lists(st.one_of(numbers, st.floats(0, 1)), min_size=13, max_size=13).map(tuple)),
    **dict.fromkeys(FIGURES, numbers),
)
SEQUENCES, STEPS, WORLD = 1250, 8, 3
CONTROLLERS = (Controller(), Controller(policy=BestWithin(seconds=0.1)), Controller(policy=Paper(), warm_up=3))


def anything(chance: random.Random) -> bytes:
    """What a rank might say: numbers near and far from sense, or any bytes at all."""
    if chance.random() < 0.1:
        return chance.randbytes(SIZE)
    figures = {name: chance.choice(ODD) if chance.random() < 0.3 else 10.0 ** chance.uniform(-9, 3) for name in FIGURES}
    gains = tuple(chance.choice((chance.random(), *ODD)) for _ in KNOTS) if chance.random() < 0.5 else ()
    return Note(gains=gains, **figures).pack()


@settings(max_examples=SEQUENCES, deadline=None)
@given(st.integers(0, 2**63), st.sampled_from(CONTROLLERS))
def test_ten_thousand_steps_of_anything(seed, controller):
    """1250 sequences of 8 steps, each heard by two ranks: every one of 10,000 decisions is a plan, and the same."""
    chance = random.Random(seed)
    here = there = controller.begin()
    for step in range(STEPS):
        heard = [Note.unpack(anything(chance)) for _ in range(WORLD)]
        if step % 3 == 1:
            there = State.read(there.text)  # this rank has just been resumed
        here, decision = controller.decide(here, together(heard), (100_000, 5))
        there, _ = controller.decide(there, together(heard), (100_000, 5))
        assert here == there
        assert 0 <= here.choice.place < len(FAMILIES[here.choice.family].densities)
        assert 0.0 < here.choice.density <= 1.0
        for value in (decision.gain, decision.step_seconds, decision.exchange_seconds, decision.lead):
            assert math.isfinite(value)
        assert decision.explanation
    assert here.fingerprint == there.fingerprint
    assert isinstance(controller.plan(here), Plan)


def test_the_order_of_ranks_that_say_the_same_does_not_matter():
    world = World(link=lambda step: Link.of(1, 100), noise=0.1)
    said = world.notes(Choice("dense", 0), 3)
    assert together(said) == together(said[::-1])


def test_the_slowest_rank_decides():
    seen = together([Note(exchange=1.0, round_trip=0.3, compute=1.0), Note(exchange=3.0, round_trip=0.1, compute=2.0)])
    assert (seen.exchange, seen.round_trip, seen.compute) == (1.0, pytest.approx(0.2), 2.0)


def test_one_delay_follows_from_the_two_shortest_waits():
    come, delay = [0.0, 0.07, 0.30, 0.34], 0.05
    waits = [max(0.0, max(come[:rank] + come[rank + 1 :]) + delay - own) for rank, own in enumerate(come)]
    assert together([Note(round_trip=wait) for wait in waits]).round_trip == pytest.approx(delay)


def test_a_rank_that_knows_nothing_is_no_harm():
    known = Note(exchange=1.0, round_trip=0.3, gains=(0.5,) * len(KNOTS), owed=2.0)
    assert together([Note(), known]) == replace(together([known]), world=2)


@given(notes)
def test_a_note_has_one_size_and_is_read_back(note):
    data = note.pack()
    assert len(data) == SIZE
    again = Note.unpack(data)
    assert again.pack() == Note.unpack(again.pack()).pack()
    for name in FIGURES:
        value, told = getattr(note, name), getattr(again, name)
        if math.isfinite(value) and 1e-30 < value < 1e14:
            assert told == struct.unpack("<f", struct.pack("<f", value))[0]
        else:
            assert math.isnan(told) or told >= 0.0


def test_bytes_of_another_length_say_nothing():
    assert Note.unpack(b"") == Note() or math.isnan(Note.unpack(b"").exchange)
    assert math.isnan(Note.unpack(bytes(SIZE + 1)).loss)


def test_a_state_is_written_and_read_to_the_bit():
    world = World(link=lambda step: Link.of(5, 50) if step < 20 else Link.of(5, 10), noise=0.2, outliers=0.1)
    for state in drive(Controller(), world, 40).states:
        assert State.read(state.text) == state


def test_a_resumed_controller_goes_on_as_if_it_had_never_stopped():
    world = World(link=lambda step: Link.of(5, 50) if step < 20 else Link.of(5, 10), noise=0.2, outliers=0.1)
    controller = Controller(feedback=Feedback(momentum=0.9), warm_up=5)
    whole = drive(controller, world, 40)
    again, state = Controller.read(controller.text), State.read(whole.states[19].text)
    for step in range(20, 40):
        state, decision = again.decide(state, together(world.notes(state.choice, step, apart=state.apart)), world.sizes)
        assert state == whole.states[step]
        assert decision == whole.decisions[step]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_controller_is_written_and_read(policy):
    options = {"seconds": 0.3} if policy == "best-within" else {}
    controller = Controller(policy=POLICIES[policy](**options), families=("dense", "leader"), margin=0.2)
    assert Controller.read(controller.text) == controller


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"policy":{"name":"x"}}', '{"policy":1,"feedback":{}}'])
def test_what_is_no_controller_is_refused(text):
    with pytest.raises(PlanError):
        Controller.read(text)


@pytest.mark.parametrize(
    "change",
    [
        ('"choice":["own-f32",', '"choice":["own-f99",'),
        ('"place":', '"place'),
        ('"step":0', '"step":-1'),
        ('"step":0', '"step":true'),
        ('"latency":[]', '"latency":["a"]'),
        ('"latency":[]', '"latency":[1e999]'),
        ('"shares":[', '"shares":[0.5,'),
        ('"choice":["own-f32",', '"choice":["own-f32",9'),
    ],
)
def test_a_damaged_state_is_refused(change):
    text = Controller().begin().text
    damaged = text.replace(*change) if change[0] in text else text[:-1]
    with pytest.raises(StateError, match="damaged"):
        State.read(damaged)
