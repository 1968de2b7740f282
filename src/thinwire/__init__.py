"""thinwire makes PyTorch data-parallel training fast over thin, unpredictable networks. One line on a DDP model."""

from thinwire import recipes
from thinwire.agreements import Leader, Own, Seeded
from thinwire.attach import attach, hook
from thinwire.codecs import Bitmap, Delta, Dense, IndexValue
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
from thinwire.exchanges import AllGather, AllReduce
from thinwire.ledger import Ledger
from thinwire.lifecycle import shutdown
from thinwire.plans import Feedback, Plan
from thinwire.selectors import Everything, NonZero, RandomK, Rounded, Threshold, TopK
from thinwire.standalone import synchronize
from thinwire.sync import SyncState
from thinwire.types import Selection, ValueFormat
from thinwire.version import __version__

__all__ = [
    "AllGather",
    "AllReduce",
    "AttachError",
    "Bitmap",
    "BrokenGroupError",
    "DeadlineError",
    "Delta",
    "Dense",
    "DisagreementError",
    "Everything",
    "Feedback",
    "IndexValue",
    "KernelError",
    "Leader",
    "Ledger",
    "NonZero",
    "Own",
    "PeerFailedError",
    "Plan",
    "PlanError",
    "RandomK",
    "Rounded",
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
    "recipes",
    "shutdown",
    "synchronize",
]
