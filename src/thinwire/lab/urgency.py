"""To be served before others, where the system allows it: an emulated link must keep its times while ranks compute."""

import contextlib
import os
from collections.abc import Iterator


def be_urgent() -> None:
    """Be served first from now on, where this process may. Its children are not."""
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


@contextlib.contextmanager
def urgent() -> Iterator[None]:
    """Be served first for a while."""
    be_urgent()
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
