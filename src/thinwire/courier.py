"""The courier: the one thread that runs exchanges, in the order they were handed in; and the packer ahead of it.

Collectives started from several threads, or from callbacks of futures, reach the backend in different orders on
different ranks, which gives silently wrong sums. So nothing else in thinwire ever starts one during training. The
packer starts none: it selects, encodes and announces, while the courier waits for what was announced before.
"""

import logging
import queue
import threading
import weakref
from collections.abc import Callable

import torch

Jobs = queue.SimpleQueue[Callable[[], None] | None]


class Courier:
    """Runs jobs one after the other on a thread of its own, which ends when nobody knows the courier any more."""

    def __init__(self, name: str) -> None:
        """Get ready; the thread starts with the first job."""
        self._name = name
        self._jobs: Jobs = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._jobs.put, None)

    def submit(self, job: Callable[[], None]) -> None:
        """Hand in a job. It must deal with its own exceptions."""
        if self._thread is None:
            self._thread = threading.Thread(target=_work, args=(self._jobs,), name=self._name, daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def wait(self) -> None:
        """Come back when everything handed in so far is done. Jobs end by themselves: every exchange has a deadline."""
        if self._thread is None:
            return
        done = threading.Event()
        self.submit(done.set)
        while not done.wait(1.0):
            if not self._thread.is_alive():
                raise RuntimeError("the courier's thread has died; this is a fault in thinwire")

    def stop(self) -> None:
        """Finish what was handed in and end the thread."""
        if self._thread is not None:
            self._jobs.put(None)
            self._thread.join()
            self._thread = None


class Packer:
    """Two couriers in a row: what the first one's job returns, the second one runs."""

    def __init__(self, name: str) -> None:
        """Get ready; the threads start with the first job."""
        self._first, self._second = Courier(f"{name}-packer"), Courier(f"{name}-courier")

    def submit(self, job: Callable[[], Callable[[], None]]) -> None:
        """Hand in a job in two halves. Each must deal with its own exceptions."""
        second = self._second
        self._first.submit(lambda: second.submit(job()))

    def wait(self) -> None:
        """Come back when everything handed in so far is done."""
        self._first.wait()
        self._second.wait()

    def stop(self) -> None:
        """Finish what was handed in and end the threads."""
        self._first.stop()
        self._second.stop()


def _work(jobs: Jobs) -> None:
    """The thread. It holds on to nothing between two jobs: a finished job still knows the model it was for."""
    with torch.no_grad():
        while (job := jobs.get()) is not None:
            try:
                job()
            except BaseException:
                # Jobs deal with their own exceptions. If one does not, the others must still be run.
                logging.getLogger("thinwire").exception("a job of the courier raised; this is a fault in thinwire")
            del job
