"""What is worth sending? One file for each answer."""

from thinwire.protocols import Selector
from thinwire.registry import Table
from thinwire.selectors.everything import Everything
from thinwire.selectors.nonzero import NonZero
from thinwire.selectors.random_k import RandomK
from thinwire.selectors.rounded import Rounded
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
        "rounded": Rounded,
    },
)

__all__ = ["SELECTORS", "Everything", "NonZero", "RandomK", "Rounded", "Threshold", "TopK"]
