"""Which plan is for the next step? A pure function of the state and of what all ranks saw.

Nothing is tried: wire, kernels and gains give every candidate's price and gain, and the policy takes the best. What is
between this and a switch is caution: a candidate must be better by a margin, for some steps, and the more often
the plan has been switched without a change of the network, the longer it is left alone.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from thinwire.control.decision import Decision
from thinwire.control.front import Floats
from thinwire.control.learn import conditions_of, factor_of, learnt, listens, work_in_force
from thinwire.control.menu import FAMILIES, Choice, Menu, families, menu_of
from thinwire.control.mind import State
from thinwire.control.notes import Seen
from thinwire.control.policies import POLICIES, MostProgress, Offers, Policy
from thinwire.control.track import Tracker
from thinwire.control.warm_up import least_density
from thinwire.control.work import overhead_of
from thinwire.errors import PlanError
from thinwire.exchanges import DirectGather
from thinwire.plans import Feedback, Plan
from thinwire.registry import unknown

FIRST_HOLD, LONGEST_HOLD = 16, 1024
YOUNG = 6
"""Steps in which a better plan is taken at once: little is known, and nothing is lost."""
CHEAP = 1.0
"""Seconds that a dense step may take to be tried in the first steps, or three times what the best one takes."""


_DENSE = Choice("dense", 0)


@dataclass(frozen=True, kw_only=True)
class Controller:
    """A controller's options. Give it to `thinwire.attach` in place of a plan.

    Args:
        policy: What is best.
        families: What may be chosen from; see `thinwire.control.menu`.
        feedback: How the ledger remembers, whatever is chosen.
        start: The density of the first steps, before anything is known.
        warm_up: Steps in which more is sent, less and less of it.
        margin: By how much a plan must be better to be switched to.
        patience: For how many steps in a row it must be.
        stride: The largest factor by which a density changes in one switch.
    """

    policy: Policy = field(default_factory=MostProgress)
    families: tuple[str, ...] = tuple(FAMILIES)
    feedback: Feedback = field(default_factory=Feedback)
    start: float = 0.01
    warm_up: int = 0
    margin: float = 0.05
    patience: int = 2
    stride: float = 16.0

    def __post_init__(self) -> None:
        """Check the options."""
        if not isinstance(self.policy, Policy) or type(self.policy) not in POLICIES.values():
            raise PlanError(f"Controller(policy={self.policy!r}): this is no policy; known: {', '.join(POLICIES)}")
        if not self.families or not families(self.families):
            raise PlanError(f"Controller(families=()): nothing to choose from; known: {', '.join(FAMILIES)}")
        if not isinstance(self.feedback, Feedback):
            raise PlanError(f"Controller(feedback={self.feedback!r}): write feedback=thinwire.Feedback(momentum=0.9)")
        for name, least, most in (("start", 0.0, 1.0), ("margin", 0.0, 10.0), ("stride", 1.0, 1e6)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not least < value <= most:
                raise PlanError(f"Controller({name}={value!r}): a number above {least:g} and up to {most:g}")
        for name in ("warm_up", "patience"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 10**9:
                raise PlanError(f"Controller({name}={value!r}): a number of steps, from 0")

    def begin(self) -> State:
        """The state before anything is known: own coordinates at the density of the start, or the nearest to that."""
        sparse = [name for name in self.families if not FAMILIES[name].dense]
        name = "own-f32" if "own-f32" in sparse else (sparse or list(self.families))[0]
        wanted = max(self.start, least_density(0, self.warm_up))
        densities = FAMILIES[name].densities
        place = min(range(len(densities)), key=lambda i: abs(math.log(densities[i] / wanted)))
        return State(choice=Choice(name, place), apart=True)

    def plan(self, state: State) -> Plan:
        """The plan that a state has chosen; apart, the same in calls that can be timed."""
        plan = state.choice.plan(self.feedback)
        return replace(plan, exchange=DirectGather(apart=True)) if state.apart and plan.exchange.early else plan

    def decide(self, state: State, seen: Seen, sizes: tuple[int, ...]) -> tuple[State, Decision]:
        """Take in one step, and choose for the next.

        Args:
            state: Before it.
            seen: What all ranks saw; see `thinwire.control.notes.together`.
            sizes: Elements of each group of parameters, the same on every rank.

        Returns:
            The next state, whose `choice` is in force from the next step on, and the decision.
        """
        before, predicted = state.choice, state.predicted[0]
        menu = menu_of(self.families, sizes, seen.world, self.feedback)
        state, changed = learnt(state, seen, menu)
        measured = seen.exchange if math.isfinite(seen.exchange) else 0.0
        if seen.world == 1 and "dense" in self.families:
            alone = replace(state, choice=Choice("dense", 0))
            reason = "for a single rank has nobody to send to"
            return alone, Decision(step=state.step, choice=alone.choice, before=before, reason=reason)
        if not state.sense.known:
            reason = "as nothing is known of the wire yet"
            return state, Decision(step=state.step, choice=before, before=before, reason=reason)
        offers = offers_of(state, menu)
        scores = self._scores(offers, menu, state.step)
        if self._is_worth_a_look(state, offers, menu, int(np.argmax(scores))):
            state, reason = replace(state, choice=_DENSE), "to see what a dense step really takes, as it seems cheap"
        else:
            state, reason = self._choose(state, menu, scores, changed)
        place = menu.places[state.choice]
        state = replace(state, apart=listens(state, menu, float(offers.steps[place])))
        state = replace(state, predicted=(_timed(state, menu), float(offers.steps[place])))
        second, lead = _second(menu, scores, place)
        return state, Decision(
            step=state.step, choice=state.choice, before=before, reason=reason, network=state.sense.network,
            gain=float(offers.gains[place]), step_seconds=state.predicted[1],
            exchange_seconds=float(offers.exchanges[place]), second=second, lead=lead,
            predicted=predicted, measured=measured,
        )  # fmt: skip

    def _is_worth_a_look(self, state: State, offers: Offers, menu: Menu, best: int) -> bool:
        """Whether to try dense steps first: thin messages say little about how fast whole gradients are.

        Where a machine and not a wire sets the pace, dense takes far less than the price that follows from thin ones.
        """
        if state.step > YOUNG or _DENSE not in menu.places or FAMILIES["dense"].way in dict(state.factors):
            return False
        return bool(offers.steps[menu.places[_DENSE]] <= max(CHEAP, 3 * offers.steps[best]))

    def _scores(self, offers: Offers, menu: Menu, step: int) -> Floats:
        """What the policy says, without what the warm-up forbids."""
        scores = np.nan_to_num(self.policy.scores(offers), nan=0.0, posinf=0.0, neginf=0.0)
        warm = menu.densities >= min(least_density(step, self.warm_up), menu.densities.max())
        allowed: Floats = scores * warm if (scores * warm).any() else warm.astype(np.float64)
        return allowed

    def _choose(self, state: State, menu: Menu, scores: Floats, changed: bool) -> tuple[State, str]:
        """The choice in force, or a better one if it is better by enough, for long enough."""
        best = int(np.argmax(scores))
        now = scores[menu.places[state.choice]] if state.choice in menu.places else 0.0
        hold = 0 if changed else max(0, state.hold - 1)
        state = replace(state, hold=hold, rest=state.rest // 2 if changed else state.rest)
        if now > 0.0 and scores[best] <= now * (1.0 + self.margin):
            return replace(state, wanted=None, patience=0), "as nothing is better by enough"
        # That something is better is what must last; which of two good ones is best may change from step to step.
        waited = state.patience + 1
        urgent = now <= 0.0 or state.step <= YOUNG
        if not urgent and (waited < self.patience or hold):
            return replace(state, wanted=menu.choices[best], patience=waited), "until a better plan has proved itself"
        chosen = self._within_stride(menu, scores, state.choice, best)
        rest = min(max(FIRST_HOLD, 2 * state.rest), LONGEST_HOLD) if state.step > YOUNG else 0
        # The rest of the way to a density that is farther than one stride must not wait.
        arrived = chosen == menu.choices[best]
        why = state.guard.reason or ("as the network has changed" if changed else f"which is best by {self.policy}")
        state = replace(
            state, choice=chosen, wanted=None, patience=0 if arrived else waited, trial=(), exposed=Tracker(),
            hold=rest if arrived else 0, rest=rest if arrived else state.rest,
        )  # fmt: skip
        return state, why

    def _within_stride(self, menu: Menu, scores: Floats, now: Choice, best: int) -> Choice:
        """The best candidate, or one of its family on the way to it."""
        worth = menu.worths[menu.places[now]] if now in menu.places else menu.worths[best]
        low, high = worth / self.stride, worth * self.stride
        if low <= menu.worths[best] <= high:
            return menu.choices[best]
        reachable = (menu.worths >= low) & (menu.worths <= high)
        # Farther than a stride, the nearest step towards it in any family that reaches it; gains decide in between.
        places = np.flatnonzero(reachable)
        towards = places[np.argsort(np.abs(np.log(menu.worths[places] / menu.worths[best])), kind="stable")]
        near = menu.worths[towards[0]]
        level = towards[np.isclose(menu.worths[towards], near, rtol=0.2)]
        return menu.choices[int(level[np.argmax(scores[level])])]

    @cached_property
    def text(self) -> str:
        """The options in one canonical line."""
        names = {policy: name for name, policy in POLICIES.items()}
        plain = {**asdict(self), "policy": {"name": names[type(self.policy)], **asdict(self.policy)}}  # type: ignore[call-overload]
        return json.dumps(plain, sort_keys=True, separators=(",", ":"))

    @staticmethod
    def read(text: str) -> "Controller":
        """The inverse of `text`.

        Raises:
            PlanError: A name or an option is unknown.
        """
        try:
            options: dict[str, Any] = json.loads(text)
            named: Mapping[str, Any] = options.pop("policy")
            policy = {key: value for key, value in named.items() if key != "name"}
            if named["name"] not in POLICIES:
                raise PlanError(unknown("policy", str(named["name"]), POLICIES))
            chosen = POLICIES[named["name"]](**policy)
            feedback = Feedback(**options.pop("feedback"))
            return Controller(policy=chosen, feedback=feedback, **{**options, "families": tuple(options["families"])})
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, PlanError):
                raise
            raise PlanError(f"this is no controller: {type(error).__name__}: {error}") from error


def offers_of(state: State, menu: Menu) -> Offers:
    """What every candidate costs and brings, as things are now."""
    conditions = conditions_of(state)
    known = {name: factor_of(state, FAMILIES[name].way) for name in menu.names}
    factors = np.array([known[choice.family] for choice in menu.choices])
    overhead = overhead_of(len(menu.sizes), menu.world)
    return Offers(
        steps=menu.table.steps(conditions, overhead, factors),
        exchanges=menu.table.exchange(conditions, factors),
        gains=menu.gains(state.curve),
        densities=menu.densities,
        floor=state.guard.floor,
    )


def _timed(state: State, menu: Menu) -> float:
    """Seconds of the next step's exchanges that will be measured, to be compared with what they then take."""
    work, factor = work_in_force(state, menu), factor_of(state, FAMILIES[state.choice.family].way)
    return state.sense.network.seconds(work.rounds, work.declared.bytes_sent) * factor


def _second(menu: Menu, scores: Floats, place: int) -> tuple[Choice | None, float]:
    """The best candidate of another family, and the score in force over its."""
    others = np.array([choice.family != menu.choices[place].family for choice in menu.choices])
    if not others.any() or not (scores * others).any():
        return None, 1.0
    best = int(np.argmax(np.where(others, scores, -1.0)))
    return menu.choices[best], float(scores[place] / scores[best])
