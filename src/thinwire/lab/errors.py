"""What the lab says no to."""

from thinwire.errors import ThinwireError


class LabRefused(ThinwireError, ValueError):
    """The lab was asked for something that has no meaning, or that it cannot emulate faithfully. Nothing was made."""


class LabMissing(ThinwireError, RuntimeError):
    """This machine lacks something that the lab needs: rights, or a tool. The message says what to do."""


class LabFailed(ThinwireError, RuntimeError):
    """A link is not what it was set to be, or something inside the lab broke. The lab is gone."""
