"""thinwire makes PyTorch data-parallel training fast over thin, unpredictable networks. One line on a DDP model."""

from importlib import import_module
from typing import TYPE_CHECKING

from thinwire.errors import (
    AttachError,
    BrokenGroupError,
    DeadlineError,
    DisagreementError,
    KernelError,
    PeerFailedError,
    PlanError,
    StateError,
    SyncError,
    ThinwireError,
    WireError,
    WireReason,
)
from thinwire.version import __version__

if TYPE_CHECKING:
    from thinwire import optimizers, recipes
    from thinwire.agreements import Leader, Leaders, NormLeader, Own, Seeded
    from thinwire.attaching import attach, hook
    from thinwire.codecs import Bitmap, Cheapest, Delta, Dense, IndexValue
    from thinwire.exchanges import (
        AllGather,
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
    from thinwire.ledger import Ledger
    from thinwire.lifecycle import shutdown
    from thinwire.plans import Feedback, Plan
    from thinwire.selectors import (
        BlockTopK,
        Controlled,
        Everything,
        GaussianK,
        Importance,
        NonZero,
        RandomK,
        Rounded,
        SampledK,
        Threshold,
        TopK,
    )
    from thinwire.standalone import synchronize
    from thinwire.sync import SyncState
    from thinwire.types import Selection, ValueFormat
else:
    # The same again: importing torch takes more than a second, which the command line's help must not.
    _ON_DEMAND = {
        "optimizers": (),
        "recipes": (),
        "agreements": ("Leader", "Leaders", "NormLeader", "Own", "Seeded"),
        "attaching": ("attach", "hook"),
        "codecs": ("Bitmap", "Cheapest", "Delta", "Dense", "IndexValue"),
        "exchanges": (
            "AllGather",
            "AllReduce",
            "DirectGather",
            "DirectReduce",
            "DoublingReduce",
            "LowRankReduce",
            "OwnerReduce",
            "RecursiveDoubling",
            "RingReduce",
            "RoundedReduce",
        ),
        "ledger": ("Ledger",),
        "lifecycle": ("shutdown",),
        "plans": ("Feedback", "Plan"),
        "selectors": (
            *("BlockTopK", "Controlled", "Everything", "GaussianK", "Importance", "NonZero", "RandomK", "Rounded"),
            *("SampledK", "Threshold", "TopK"),
        ),
        "standalone": ("synchronize",),
        "sync": ("SyncState",),
        "types": ("Selection", "ValueFormat"),
    }

    def __getattr__(name: str) -> object:
        for home, names in _ON_DEMAND.items():
            if name == home or name in names:
                module = import_module(f"thinwire.{home}")
                return globals().setdefault(name, module if name == home else getattr(module, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *_ON_DEMAND, *__all__})


__all__ = [
    "AllGather",
    "AllReduce",
    "AttachError",
    "Bitmap",
    "BlockTopK",
    "BrokenGroupError",
    "Cheapest",
    "Controlled",
    "DeadlineError",
    "Delta",
    "Dense",
    "DirectGather",
    "DirectReduce",
    "DisagreementError",
    "DoublingReduce",
    "Everything",
    "Feedback",
    "GaussianK",
    "Importance",
    "IndexValue",
    "KernelError",
    "Leader",
    "Leaders",
    "Ledger",
    "LowRankReduce",
    "NonZero",
    "NormLeader",
    "Own",
    "OwnerReduce",
    "PeerFailedError",
    "Plan",
    "PlanError",
    "RandomK",
    "RecursiveDoubling",
    "RingReduce",
    "Rounded",
    "RoundedReduce",
    "SampledK",
    "Seeded",
    "Selection",
    "StateError",
    "SyncError",
    "SyncState",
    "ThinwireError",
    "Threshold",
    "TopK",
    "ValueFormat",
    "WireError",
    "WireReason",
    "__version__",
    "attach",
    "hook",
    "optimizers",
    "recipes",
    "shutdown",
    "synchronize",
]
