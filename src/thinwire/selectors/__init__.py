"""What is worth sending? One file for each answer."""

from thinwire.protocols import Selector
from thinwire.registry import Table
from thinwire.selectors.block_top_k import BlockTopK
from thinwire.selectors.controlled import Controlled
from thinwire.selectors.everything import Everything
from thinwire.selectors.gaussian_k import GaussianK
from thinwire.selectors.importance import Importance
from thinwire.selectors.nonzero import NonZero
from thinwire.selectors.random_k import RandomK
from thinwire.selectors.rounded import Rounded
from thinwire.selectors.sampled_k import SampledK
from thinwire.selectors.threshold import Threshold
from thinwire.selectors.top_k import TopK

SELECTORS: Table[Selector] = Table(
    "selector",
    {
        "everything": Everything,
        "nonzero": NonZero,
        "top-k": TopK,
        "threshold": Threshold,
        "random-k": RandomK,
        "block-top-k": BlockTopK,
        "gaussian-k": GaussianK,
        "sampled-k": SampledK,
        "controlled": Controlled,
        "importance": Importance,
        "rounded": Rounded,
    },
)

__all__ = [
    "SELECTORS",
    "BlockTopK",
    "Controlled",
    "Everything",
    "GaussianK",
    "Importance",
    "NonZero",
    "RandomK",
    "Rounded",
    "SampledK",
    "Threshold",
    "TopK",
]
