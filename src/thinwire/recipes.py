"""Plans with names: published systems, and what is best known to us.

Every recipe is a function of a few options that returns a `thinwire.Plan`, or what chooses one. ``recipes.RECIPES`` is
the table.
"""

from collections.abc import Callable
from typing import Any

from thinwire.agreements import Leader, Own
from thinwire.codecs import Delta, Dense
from thinwire.control.controller import Controller
from thinwire.control.policies import MostProgress, Policy
from thinwire.errors import PlanError
from thinwire.exchanges import AllGather, AllReduce
from thinwire.plans import Feedback, Plan
from thinwire.registry import unknown
from thinwire.selectors import Everything, TopK


def dense() -> Plan:
    """Everything, by all-reduce: bitwise what plain DDP does. Pays off where the wire is fast."""
    return Plan(selector=Everything(), agreement=Own(), codec=Dense(), exchange=AllReduce())


def topk_allgather(density: float = 0.01, *, momentum: float = 0.0) -> Plan:
    """Each rank's own top-k with error feedback, delta-coded, all-gathered.

    Args:
        density: Fraction of the elements that each rank sends.
        momentum: Momentum correction (Deep Gradient Compression); the optimizer must then have no first moment:
            `thinwire.optimizers.arrange` sees to both.
    """
    return Plan(
        selector=TopK(density=density),
        agreement=Own(),
        codec=Delta(),
        exchange=AllGather(),
        feedback=Feedback(momentum=momentum),
    )


def ar_topk(density: float = 0.01, *, momentum: float = 0.0) -> Plan:
    """AR-Topk with rotating leader (STAR): the leader's coordinates for all, values by all-reduce.

    Flexible Communication for Optimal Distributed Learning over Unpredictable Networks, Algorithm 1.

    Args:
        density: Fraction of the elements that is sent.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    return Plan(
        selector=TopK(density=density),
        agreement=Leader(),
        codec=Delta(),
        exchange=AllReduce(),
        feedback=Feedback(momentum=momentum),
    )


def adaptive(policy: Policy | None = None, *, momentum: float = 0.0, warm_up: int = 0) -> Controller:
    """No one plan, but the best for the wire and the gradients as they are: measured, and chosen anew in each step.

    Args:
        policy: What is best; None for the most progress per second. `thinwire.control.policies` has others.
        momentum: Momentum correction, as in `topk_allgather`, whatever plan is chosen.
        warm_up: Steps at the beginning in which more is sent, less and less of it.
    """
    chosen = MostProgress() if policy is None else policy
    return Controller(policy=chosen, feedback=Feedback(momentum=momentum), warm_up=warm_up)


RECIPES: dict[str, Callable[..., Plan | Controller]] = {
    "adaptive": adaptive,
    "dense": dense,
    "topk_allgather": topk_allgather,
    "ar_topk": ar_topk,
}
"""All recipes by name."""


def named(name: str, **options: Any) -> Plan | Controller:
    """A recipe by its name, for configuration files and command lines.

    Args:
        name: One of `RECIPES`.
        **options: The recipe's options.

    Returns:
        The plan, or the controller.

    Raises:
        PlanError: There is no recipe of that name (the message lists those there are), or it has no such option.
    """
    if name not in RECIPES:
        raise PlanError(unknown("recipe", name, RECIPES))
    try:
        return RECIPES[name](**options)
    except TypeError as error:
        raise PlanError(f"recipe {name!r} does not take these options: {error}") from error


def default() -> Plan:
    """What `thinwire.synchronize` uses when it is given no plan: ten percent of each rank's own coordinates.

    Cautious on purpose: nothing here knows the optimizer, and under AdamW thin top-k loses quality (``thinwire demo
    --density 0.1`` beside ``--density 0.01`` shows it).
    """
    return topk_allgather(density=0.1)


def __getattr__(name: str) -> Any:
    """Say which recipes there are."""
    raise AttributeError(unknown("recipe", name, RECIPES))
