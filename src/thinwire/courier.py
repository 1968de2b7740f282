"""The courier: the one thread that runs exchanges, in the order they were handed in. The only asynchronous code.

Collectives started from several threads, or from callbacks of futures, reach the backend in different orders on
different ranks, which gives silently wrong sums. So nothing else in thinwire ever starts one during training.
"""

import queue
import threading
from collections.abc import Callable

import torch


class Courier:
    """Runs jobs one after the other on a thread of its own."""

    def __init__(self, name: str) -> None:
        """Get ready; the thread starts with the first job."""
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None]) -> None:
        """Hand in a job. It must deal with its own exceptions."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
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

    def _work(self) -> None:
        with torch.no_grad():
            while (job := self._jobs.get()) is not None:
                job()
