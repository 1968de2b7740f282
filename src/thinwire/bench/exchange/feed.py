"""Where the gradients come from: recorded ones of a real training run. Made-up numbers would flatter some methods."""

import os
import time
from pathlib import Path

from torch import Tensor

from thinwire import traces
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange.method import Message
from thinwire.bench.figures import size as short
from thinwire.traces import Recording, Trace, TraceError

_LEARNT = {1_000_000: 100, 10_000_000: 40}
"""Up to which size which step is recorded: a step takes as much longer as the model is larger."""
_LARGE = 20
_DENSITY = 0.01
_WAIT, _POLL = 3600.0, 0.5


class Feed:
    """The gradients of one size.

    Attributes:
        message: Which parameters.
    """

    def __init__(self, trace: Trace, world: int) -> None:
        """Read a trace.

        Raises:
            BenchError: It was recorded with fewer ranks.
        """
        if trace.world < world:
            raise BenchError(
                f"{trace.path} was recorded with {trace.world} ranks and cannot be measured with {world}; "
                f"name another folder with --traces, and a trace for {world} ranks is recorded there"
            )
        self.message = Message(trace.parameters)
        self._trace = trace

    def gradient(self, rank: int) -> Tensor:
        """What one rank owed in the last recorded step before it selected anything; not to be changed.

        It is always the same step, since gains of different gradients could not be compared.

        Args:
            rank: Whose.
        """
        return self._trace.gradient(self._trace.steps[-1], rank)


def folder(traces_in: str, size: int, world: int) -> Path:
    """Where the trace of a size is.

    Args:
        traces_in: The folder of all traces.
        size: About so many elements.
        world: How many ranks.
    """
    return Path(traces_in) / f"{short(size)}-{world}"


def prepare(traces_in: str, size: int, world: int) -> None:
    """Record the trace of a size, unless it is there.

    Args:
        traces_in: The folder of all traces.
        size: About so many elements.
        world: How many ranks.
    """
    path = folder(traces_in, size, world)
    if not (path / "trace.json").exists():
        step = next((step for limit, step in _LEARNT.items() if size <= limit), _LARGE)
        traces.record(path, Recording(steps=(step,), world=world, density=_DENSITY, elements=size))


def feed(traces_in: str, size: int, world: int) -> Feed:
    """The gradients of a size, which the first rank of every machine records where they are missing.

    Args:
        traces_in: The folder of all traces.
        size: About so many elements.
        world: How many ranks.

    Raises:
        BenchError: They cannot be had.
    """
    if os.environ.get("LOCAL_RANK", "0") == "0":
        prepare(traces_in, size, world)
    path, until = folder(traces_in, size, world), time.monotonic() + _WAIT
    while not (path / "trace.json").exists() and time.monotonic() < until:
        time.sleep(_POLL)
    try:
        return Feed(traces.open(path), world)
    except TraceError as error:
        raise BenchError(str(error)) from error
