"""One or more samples of every registered part, and every plan they make. New parts are found by themselves.

A part whose options have no defaults needs a line in SAMPLES; `samples` says so if it is missing.
"""

import itertools
import random
from functools import cache
from typing import Any

from thinwire.agreements import AGREEMENTS, Leader, Leaders
from thinwire.codecs import CODECS
from thinwire.errors import PlanError
from thinwire.exchanges import EXCHANGES, DirectGather, LowRankReduce
from thinwire.plans import Feedback, Plan
from thinwire.registry import Table
from thinwire.selectors import (
    SELECTORS,
    BlockTopK,
    Controlled,
    GaussianK,
    Importance,
    RandomK,
    Rounded,
    SampledK,
    Threshold,
    TopK,
)

SAMPLES: dict[str, list[Any]] = {
    "top-k": [TopK(density=0.1), TopK(density=0.05, width=3)],
    "threshold": [Threshold(threshold=0.8)],
    "leader": [Leader(), Leader(share_from=0)],
    "direct-gather": [DirectGather(), DirectGather(apart=True)],
    "random-k": [RandomK(density=0.1), RandomK(density=0.05, width=4)],
    "block-top-k": [BlockTopK(keep=2, block=30)],
    "gaussian-k": [GaussianK(density=0.1), GaussianK(density=0.1, variant="published", width=2)],
    "sampled-k": [SampledK(density=0.1, share=0.2)],
    "controlled": [Controlled(density=0.1)],
    "importance": [Importance(density=0.05, lots=0.3, exempt=3)],
    "leaders": [Leaders(), Leaders(count=1, seed=1, sweep=10)],
    "low-rank-reduce": [LowRankReduce(rank=2)],
    "rounded": [],  # a wrapper: every other selector is also tried rounded, see `selectors`
}


def samples(table: Table[Any]) -> list[Any]:
    """Samples of all parts of one kind."""
    found = []
    for name, part in table.items():
        if name in SAMPLES:
            found.extend(SAMPLES[name])
            continue
        try:
            found.append(part())
        except TypeError:
            raise AssertionError(f"add a sample of {name!r} to tests/laws/samples.py") from None
    return found


FORMATS = ("bf16", "f16", "int8", "int4", "int2")


def selectors() -> list[Any]:
    """Every selector, plain and rounded in every way."""
    plain = samples(SELECTORS)
    return plain + [Rounded(selector, to=to) for selector in plain for to in FORMATS]


def selectors_of_plans() -> list[Any]:
    """Every selector, plain and rounded in one way, and one of them in every way: rounding asks nobody who chose."""
    plain = samples(SELECTORS)
    each = [Rounded(selector, to=FORMATS[i % len(FORMATS)]) for i, selector in enumerate(plain)]
    every = [Rounded(TopK(density=0.1), to=to) for to in FORMATS]
    return list(dict.fromkeys([*plain, *each, *every]))


@cache
def plans() -> list[Plan]:
    """Plans in which any two registered parts meet that fit together, in any order of the tables but always the same.

    Every combination of four would be thousands, of which nearly all differ from another one in nothing that matters.
    """
    combinations = list(
        itertools.product(selectors_of_plans(), samples(AGREEMENTS), samples(CODECS), samples(EXCHANGES))
    )
    random.Random(0).shuffle(combinations)
    found, met = [], set[tuple[str, str]]()
    for parts in combinations:
        pairs = {(repr(one), repr(other)) for one, other in itertools.combinations(parts, 2)}
        if pairs <= met:
            continue
        try:
            found.append(Plan(**dict(zip(("selector", "agreement", "codec", "exchange"), parts, strict=True))))
        except PlanError:
            continue
        met |= pairs
    found += [found[i].replace(feedback=Feedback(momentum=0.9)) for i in range(0, len(found), 9)]
    return found
