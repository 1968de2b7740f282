"""What a step teaches: the wire, the kernels, the overlap, the gains, the phase, and how wrong the last price was."""

import math
from dataclasses import replace
from statistics import median

from thinwire.control.guard import Guard
from thinwire.control.machine import Machine
from thinwire.control.menu import FAMILIES, Menu
from thinwire.control.mind import State
from thinwire.control.network import Exchanged
from thinwire.control.notes import Seen
from thinwire.control.price import Conditions
from thinwire.control.track import sensible
from thinwire.control.work import Work
from thinwire.types import Traffic

TRIAL = 3
"""Steps in which it is found out how much longer a new way over the wire takes than it should."""
FARTHEST = math.log(10.0)
SURPRISE = math.log(1.15)
LISTENING = 0.01
"""The part of the time that is spent on calls which are made only to be timed."""
PAUSES = 4, 64
"""The least and the most steps between two of them."""
ALARM = math.log(1.5)
"""Where steps take so much longer or shorter than the last ones with the same plan, one looks at the wire at once."""
_LEAST = 1e-3


def conditions_of(state: State) -> Conditions:
    """What the next step will meet.

    Raises:
        ValueError: The wire is not known.
    """
    return Conditions(
        network=state.sense.network,
        machine=state.machine,
        slowness=state.slowness.otherwise(1.0),
        compute=state.compute.otherwise(0.0),
        window=state.window.otherwise(0.0),
        overlap=min(1.0, state.overlap.otherwise(1.0)),
    )


def factor_of(state: State, way: str) -> float:
    """How many times longer a way over the wire takes than it should, as far as it was tried."""
    return math.exp(dict(state.factors).get(way, 0.0))


def work_in_force(state: State, menu: Menu) -> Work:
    """What a step of the plan in force is; apart, everything is timed, and each group takes a round."""
    work = menu.table.works[menu.places[state.choice]]
    along = work.bytes_sent - work.declared.bytes_sent
    if not state.apart or not along or FAMILIES[state.choice.family].way != "own, gather":
        return work
    rounds = sum(1 for numel in menu.sizes if numel)
    declared = Traffic(bytes_sent=round(work.bytes_sent), rounds=rounds)
    return replace(work, rounds=max(work.rounds, float(rounds)), declared=declared)


def listens(state: State, menu: Menu, seconds: float) -> bool:
    """Whether messages go apart in the next step, to be timed.

    Bytes that go along with roll calls are on their way while ranks wait for each other, so nobody can tell how long
    they take. From time to time they must: the more often, the less of a step's ``seconds`` it takes.
    """
    work = menu.table.works[menu.places[state.choice]]
    if work.declared.rounds or not work.bytes_sent:
        return False
    delay = len(menu.sizes) * state.sense.network.latency
    pause = min(max(delay / (LISTENING * max(seconds, 1e-9)), PAUSES[0]), PAUSES[1])
    return state.step <= PAUSES[0] or state.silent >= pause


def learnt(state: State, seen: Seen, menu: Menu) -> tuple[State, bool]:
    """The state after one more step, and whether the network has changed."""
    state = replace(
        state,
        step=state.step + 1,
        machine=Machine.of(seen, state.machine),
        curve=state.curve.looked(seen.gains),
        guard=state.guard.after(seen.fresh, seen.owed, seen.loss),
        compute=state.compute.seen(seen.compute),
        window=state.window.seen(max(seen.window, 1e-9)),
    )
    if state.step == 1:
        # The first step opens connections, touches memory for the first time, and so on.
        return replace(state, guard=Guard(), compute=replace(state.compute, logs=())), False
    state = _kernels(state, seen, menu)
    before = state
    state = _wire(state, seen, menu)
    changed = _has_changed(before, state)
    return (replace(state, silent=PAUSES[1]) if changed else state), changed


def _has_changed(before: State, after: State) -> bool:
    """Whether a tracker has forgotten what it knew, or a way was found to be other than was thought."""
    old, new = before.sense, after.sense
    forgot = old.known and (new.latency.began_anew(old.latency) or new.per_byte.began_anew(old.per_byte))
    found = dict(after.factors).keys() - dict(before.factors).keys()
    return forgot or any(abs(dict(after.factors)[way]) > SURPRISE for way in found)


def _kernels(state: State, seen: Seen, menu: Menu) -> State:
    """Measured over calibrated seconds of the kernels, and what was hidden of the whole behind backward."""
    if state.choice not in menu.places:
        return state
    place = menu.places[state.choice]
    if sensible(seen.kernels) and state.sense.known:
        calibrated = replace(conditions_of(state), slowness=1.0)
        expected = float(menu.table.kernels(calibrated)[place])
        state = replace(state, slowness=state.slowness.seen(seen.kernels / expected if expected > 0.0 else math.nan))
    busy = seen.kernels + seen.exchange
    possible = min(busy, seen.window)
    if math.isfinite(busy) and math.isfinite(seen.exposed) and possible > 0.05 * busy > 0.0:
        share = min(max((busy - seen.exposed) / possible, _LEAST), 1.0)
        state = replace(state, overlap=state.overlap.seen(share))
    return state


def _wire(state: State, seen: Seen, menu: Menu) -> State:
    """The wire; and of a new way over it, for some steps, only how much longer it takes than was predicted."""
    sense = state.sense.felt(seen.round_trip)
    if state.choice not in menu.places or not sensible(seen.exchange):
        alarm = state.exposed.known and sensible(seen.exposed) and _differ(seen.exposed, state.exposed.value, ALARM)
        silent = PAUSES[1] if alarm else state.silent + 1
        return replace(state, sense=sense, silent=silent, exposed=state.exposed.seen(seen.exposed))
    work = work_in_force(state, menu)
    state = replace(state, silent=0 if _is_as_foretold(state, seen) else PAUSES[1])
    way, factors = FAMILIES[state.choice.family].way, dict(state.factors)
    if not state.sense.known:
        factors[way] = 0.0  # The first way is the measure of the others.
    expected = state.sense.network.seconds(work.rounds, work.declared.bytes_sent) if state.sense.known else 0.0
    if way not in factors and expected > 0.0:
        trial = (*state.trial, math.log(seen.exchange / expected))
        if len(trial) < TRIAL:
            return replace(state, sense=sense, trial=trial)
        factors[way] = min(max(median(trial), -FARTHEST), FARTHEST)
        return replace(state, sense=sense, trial=(), factors=tuple(sorted(factors.items())))
    scale = math.exp(-factors.get(way, 0.0))
    counted = seen.bytes_sent if math.isfinite(seen.bytes_sent) else work.declared.bytes_sent
    rounds = _scaled(seen.rounds, work.declared.rounds, work.rounds)
    done = Exchanged(rounds=rounds, bytes_sent=counted, seconds=seen.exchange * scale)
    return replace(state, sense=sense.exchanged(done), factors=tuple(sorted(factors.items())))


def _is_as_foretold(state: State, seen: Seen) -> bool:
    """Whether exchanges took what was predicted, nearly; if not, one looks again at once."""
    foretold = state.predicted[0]
    return foretold > 0.0 and not _differ(seen.exchange, foretold, SURPRISE)


def _differ(one: float, other: float, least: float) -> bool:
    return abs(math.log(one / other)) >= least


def _scaled(counted: float, declared: float, effective: float) -> float:
    """Rounds that were counted on the wire, in one-way delays."""
    if not math.isfinite(counted) or declared <= 0:
        return effective
    return counted * effective / declared
