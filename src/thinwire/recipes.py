"""Plans with names: published systems, and what is best known to us.

Every recipe is a function of a few options that returns a `thinwire.Plan`, or what chooses one. ``recipes.RECIPES`` is
the table.
"""

from collections.abc import Callable, Mapping
from typing import Any

from thinwire.agreements import Leader, Leaders, NormLeader, Own
from thinwire.codecs import Cheapest, Delta, Dense
from thinwire.control.controller import Controller
from thinwire.control.policies import MostProgress, Policy
from thinwire.errors import PlanError
from thinwire.exchanges import (
    AllReduce,
    DirectGather,
    DirectReduce,
    DoublingReduce,
    LowRankReduce,
    OwnerReduce,
    RecursiveDoubling,
    RingReduce,
    RoundedReduce,
)
from thinwire.plans import Feedback, Plan
from thinwire.protocols import Agreement, Exchange
from thinwire.registry import unknown
from thinwire.selectors import BlockTopK, Everything, GaussianK, Importance, NonZero, Rounded, TopK


def dense(to: str = "f32") -> Plan:
    """Everything: by all-reduce, bitwise what plain DDP does, or rounded both ways, in a half of the bytes or less.

    Args:
        to: How values are written: ``"f32"``, exactly as they are, or as in `thinwire.Rounded`. Nothing is lost
            then either: what rounding drops is owed.
    """
    if to != "f32":
        return Plan(selector=Rounded(Everything(), to=to), agreement=Own(), codec=Dense(), exchange=RoundedReduce())
    return Plan(selector=Everything(), agreement=Own(), codec=Dense(), exchange=AllReduce())


def low_rank(rank: int = 4, *, powers: int = 2, to: str = "bf16") -> Plan:
    """Every matrix as a product of two thin ones, vectors whole, with error feedback: PowerSGD without its state.

    Args:
        rank: Columns of the thin matrices.
        powers: How often both products are made; two bring more of the gradient, in twice the bytes.
        to: How values travel, ``"bf16"`` or ``"f32"``.
    """
    return Plan(
        selector=Everything(), agreement=Own(), codec=Dense(), exchange=LowRankReduce(rank=rank, powers=powers, to=to)
    )


def topk_allgather(density: float = 0.01, *, to: str = "", momentum: float = 0.0) -> Plan:
    """Each rank's own top-k with error feedback, delta-coded, gathered by all from all.

    Args:
        density: Fraction of the elements that each rank sends.
        to: How values are written, as in `thinwire.Rounded`; as they are, if not given.
        momentum: Momentum correction (Deep Gradient Compression); the optimizer must then have no first moment:
            `thinwire.optimizers.arrange` sees to both.
    """
    chosen = TopK(density=density)
    return Plan(
        selector=Rounded(chosen, to=to) if to else chosen,
        agreement=Own(),
        codec=Delta(),
        exchange=DirectGather(),
        feedback=Feedback(momentum=momentum),
    )


_LEADERS: dict[str, type[Agreement]] = {"rotating": Leader, "norm": NormLeader}
"""Who dictates the coordinates of AR-Topk."""
_SUMS: dict[str, type[Exchange]] = {
    "auto": DirectReduce,
    "direct": DirectReduce,
    "ring": RingReduce,
    "doubling": DoublingReduce,
    "backend": AllReduce,
    "gather": DirectGather,
}


def ar_topk(density: float = 0.01, *, leader: str = "rotating", exchange: str = "auto", momentum: float = 0.0) -> Plan:
    """AR-Topk: one rank's coordinates for all, values summed position by position.

    Flexible Communication for Optimal Distributed Learning over Unpredictable Networks, Algorithm 1.

    Args:
        density: Fraction of the elements that is sent.
        leader: Who decides: ``"rotating"``, the ranks in turn (STAR), or ``"norm"``, who has most to say (VAR).
        exchange: How values meet: ``"direct"``, ``"ring"``, ``"doubling"``, ``"backend"`` or ``"gather"``. With
            ``"auto"`` it is direct, which takes two delays and the bytes of a ring. A plan may be switched at any step.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    known: Mapping[str, Any]
    for kind, name, known in (("leader", leader, _LEADERS), ("exchange", exchange, _SUMS)):
        if name not in known:
            raise PlanError(unknown(f"{kind} of ar_topk", str(name), known))
    return Plan(
        selector=TopK(density=density),
        agreement=_LEADERS[leader](),
        codec=Delta(),
        exchange=_SUMS[exchange](),
        feedback=Feedback(momentum=momentum),
    )


def zen(density: float | None = None, *, width: int = 1, hierarchical: bool = False, momentum: float = 0.0) -> Plan:
    """Sums that are made where each unit has its owner, every letter in the shortest form for its density.

    Zen: Empowering Distributed Training with Sparsity-driven Data Synchronization (OSDI 2025). What is zero stays home,
    so nothing is lost; gradients that are not sparse by nature can be made so. Rows of ``nn.Embedding(sparse=True)`` go
    the same way, with one index for each row.

    Args:
        density: None sends all that is not zero; a number, each rank's largest values, with error feedback.
        width: Elements of one unit; for a dense gradient of an embedding, the length of its rows.
        hierarchical: By recursive doubling instead: for few ranks, or where they have little in common.
            `thinwire.exchanges.chooser` says which is quicker.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    return Plan(
        selector=NonZero(width=width) if density is None else TopK(density=density, width=width),
        agreement=Own(),
        codec=Cheapest(),
        exchange=RecursiveDoubling() if hierarchical else OwnerReduce(),
        feedback=Feedback(momentum=momentum),
    )


def iwp(density: float = 0.006, *, leaders: int = 2, sweep: int = 0, lots: float = 0.0, momentum: float = 0.0) -> Plan:
    """Importance weighted pruning on a ring: random leaders say what changes their weights most, values by all-reduce.

    Bandwidth Reduction using Importance Weighted Pruning on Ring AllReduce. Without options, two leaders and their
    coordinates take less than 1/58.8 of dense bytes, which is the paper's ratio without them.

    Args:
        density: Fraction of each layer that each leader finds important.
        leaders: How many ranks lead in a step.
        sweep: Every element is sent at least once in so many steps; 0 for never.
        lots: The share of a leader's elements that it draws by lot.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    return Plan(
        selector=Importance(density=density, lots=lots),
        agreement=Leaders(count=leaders, sweep=sweep),
        codec=Delta(),
        exchange=AllReduce(),
        feedback=Feedback(momentum=momentum),
    )


def gaussian_k(density: float = 0.01, *, variant: str = "corrected", momentum: float = 0.0) -> Plan:
    """Gaussian-k: each rank's own elements above a threshold for about k, delta-coded, all-gathered.

    Understanding Top-k Sparsification in Distributed Deep Learning.

    Args:
        density: Fraction of the elements that each rank should send.
        variant: Whose threshold: ``"published"``, ``"released"``, or ``"corrected"``, which is within a tenth of k.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    return topk_allgather(density, momentum=momentum).replace(selector=GaussianK(density=density, variant=variant))


def block_topk(keep: int = 64, block: int = 4096, *, to: str = "int2", momentum: float = 0.0) -> Plan:
    """The strongest few of every block in 2 or 4 bits each, with coordinates as gaps: below 10 bits for each with 2.

    Args:
        keep: How many of each block.
        block: Elements of a block.
        to: How values are written, as in `thinwire.Rounded`.
        momentum: Momentum correction, as in `topk_allgather`.
    """
    return topk_allgather(momentum=momentum).replace(selector=Rounded(BlockTopK(keep=keep, block=block), to=to))


def warm_up(density: float, done: float, *, start: float = 0.25) -> float:
    """The density of a warm-up that goes to a quarter of the last one in equal parts (Deep Gradient Compression).

    Early gradients change direction fast, so thinning them from the first step on costs quality:
    ``sync.switch(recipes.iwp(warm_up(0.006, step / 500)))``.

    Args:
        density: Where it ends.
        done: How much of the warm-up is over, from 0 to 1.
        start: Where it begins.

    Returns:
        The density, never below the last one.
    """
    stages = 0
    while start * 0.25**stages > density > 0.0:
        stages += 1
    stage = min(max(int(done * stages), 0), stages)
    return max(density, start * 0.25**stage) if stage < stages else density


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
    "low_rank": low_rank,
    "topk_allgather": topk_allgather,
    "ar_topk": ar_topk,
    "zen": zen,
    "iwp": iwp,
    "gaussian_k": gaussian_k,
    "block_topk": block_topk,
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
