"""Everything that can go wrong, as a small family of typed errors.

Every message says what was asked, what was found, and what to write instead. Errors that concern several
ranks are raised on *every* rank, and name the odd one.
"""

from enum import Enum


class ThinwireError(Exception):
    """The root of every error that thinwire raises on purpose."""


class PlanError(ThinwireError, ValueError):
    """A plan, or an option of one of its parts, cannot mean anything."""


class AttachError(ThinwireError, ValueError):
    """The model (or hook, or group) cannot be attached to as it stands."""


class StateError(ThinwireError, ValueError):
    """A saved state does not belong to this rank, world or model. Nothing was loaded."""


class KernelError(ThinwireError, ValueError):
    """A kernel implementation was forced that does not exist or cannot run here."""


class SyncError(ThinwireError, RuntimeError):
    """A synchronisation did not happen. No parameter changed, and every debt is as it was before the step.

    Attributes:
        ranks: The ranks that caused it, as far as they are known.
    """

    def __init__(self, message: str, *, ranks: tuple[int, ...] = ()) -> None:
        """Keep the message and the ranks it is about."""
        super().__init__(message)
        self.ranks = ranks


class DisagreementError(SyncError):
    """The ranks were about to do different things. Found before anything was used.

    Attributes:
        fields: The fields that differ, for example ``("plan.selector.density",)``.
    """

    def __init__(self, message: str, *, ranks: tuple[int, ...] = (), fields: tuple[str, ...] = ()) -> None:
        """Keep the message, the odd ranks and the fields they differ in."""
        super().__init__(message, ranks=ranks)
        self.fields = fields


class PeerFailedError(SyncError):
    """Some rank could not do its part (an exception there) and told the others."""


class DeadlineError(SyncError):
    """An exchange did not end in the time its bytes and the measured speed allow."""


class BrokenGroupError(SyncError):
    """The process group was damaged by an earlier failure, or left, and is not used again."""


class WireReason(Enum):
    """The ways in which bytes can be wrong. One reason, one test."""

    TRUNCATED = "shorter than its header says"
    TRAILING = "longer than its header says"
    MAGIC = "no magic number at its beginning"
    VERSION = "a version of the format that this build does not read"
    CHECKSUM = "the checksum does not match the bytes"
    CODEC = "a codec or purpose that does not exist"
    FORMAT = "a value format that does not exist"
    SHAPE = "another number of elements, or another unit width, than agreed"
    TURN = "of another generation, step or group"
    COUNT = "more units claimed than there are"
    COORDINATES = "a coordinate section of an impossible length or parameter"
    ORDER = "indices that are not strictly increasing"
    RANGE = "an index outside the tensor"
    PADDING = "unused bits that are not zero"
    VALUE = "a value that is not a finite number"


class WireError(SyncError):
    """Bytes that are not a message.

    Attributes:
        reason: Which of the ways of being wrong it was.
    """

    def __init__(self, reason: WireReason, detail: str = "") -> None:
        """Say the reason, and the detail where there is one."""
        super().__init__(f"refused a message: {reason.value}{': ' + detail if detail else ''}")
        self.reason = reason
