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
    """The process group was damaged by an earlier failure and is not used again."""


class WireReason(Enum):
    """The ways in which bytes can be wrong. One reason, one test."""

    TRUNCATED = "shorter than its header says"
    TRAILING = "longer than its header says"
    MAGIC = "does not begin with the magic number"
    VERSION = "written in a version of the format that this build does not read"
    CHECKSUM = "its checksum does not match its bytes"
    CODEC = "names a codec that does not exist"
    FORMAT = "names a value format that does not exist"
    SHAPE = "is about another number of elements, or another unit width, than agreed"
    TURN = "belongs to another generation or step"
    COUNT = "claims more units than there are"
    COORDINATES = "its coordinate section has an impossible length or parameter"
    ORDER = "its indices are not strictly increasing"
    RANGE = "an index lies outside the tensor"
    PADDING = "unused bits are not zero"
    VALUE = "a value is not a finite number"


class WireError(SyncError):
    """Bytes that are not a message.

    Attributes:
        reason: Which of the ways of being wrong it was.
    """

    def __init__(self, reason: WireReason, detail: str = "") -> None:
        """Say the reason, and the detail where there is one."""
        super().__init__(f"refused a message: it {reason.value}{': ' + detail if detail else ''}")
        self.reason = reason
