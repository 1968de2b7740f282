"""What can be wrong with what a benchmark is asked for."""

from thinwire.errors import ThinwireError


class BenchError(ThinwireError, ValueError):
    """A benchmark was asked for something that does not exist, or was given a file that is none of its own."""
