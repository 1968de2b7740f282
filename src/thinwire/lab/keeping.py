"""The line to a lab's keeper: commands go out, answers and events come back."""

import contextlib
import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from thinwire.errors import ThinwireError
from thinwire.lab import entrance
from thinwire.lab.channel import LineReader, Message, send
from thinwire.lab.errors import LabFailed, LabMissing, LabRefused

_PATIENCE = 60.0
_KINDS: dict[str, type[ThinwireError]] = {kind.__name__: kind for kind in (LabRefused, LabMissing)}


class Line:
    """A keeper, and the talk with it. Any thread may ask.

    Args:
        hosts: How many hosts it makes.
        congestion: TCP's congestion control on them.
        on_event: Called, by a thread of its own, with what was not asked for.
    """

    def __init__(self, hosts: int, congestion: str, on_event: Callable[[Message], None]) -> None:
        self._on_event = on_event
        self._numbers = itertools.count()
        self._writing = threading.Lock()
        self._answers: dict[int, queue.SimpleQueue[Message]] = {}
        self._first: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._over = ""
        self._owner = os.pidfd_open(os.getpid())
        try:
            self.process = entrance.spawn([str(hosts), congestion], self._owner)
        except BaseException:
            os.close(self._owner)
            raise
        self._listener = threading.Thread(target=self._listen, name="thinwire-lab", daemon=True)
        self._listener.start()
        try:
            first = self._first.get(timeout=_PATIENCE)
            if first["event"] != "ready":
                raise LabFailed(f"the lab was not built: {first['text']}")
        except BaseException as error:
            self.close()
            if isinstance(error, queue.Empty):
                raise LabFailed(f"the lab was not built within {_PATIENCE:g} s") from None
            raise

    def ask(self, do: str, timeout: float = _PATIENCE, **command: Any) -> Any:
        """Have the keeper do something, and wait until it has.

        Args:
            do: What.
            timeout: Seconds.
            **command: What it needs to know.

        Returns:
            Its answer.

        Raises:
            LabRefused: It refused, and nothing changed.
            LabMissing: The machine lacks something that this needs.
            LabFailed: It could not, or is gone.
        """
        number = next(self._numbers)
        answers = self._answers[number] = queue.SimpleQueue()
        try:
            with self._writing:
                if self._over:
                    raise LabFailed(self._over)
                assert self.process.stdin is not None
                send(self.process.stdin.fileno(), {"id": number, "do": do, **command})
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            raise LabFailed(f"the keeper of the lab gave no answer to {do!r} within {timeout:g} s") from None
        except OSError as error:
            raise LabFailed(f"the keeper of the lab is gone: {error.strerror}") from error
        finally:
            del self._answers[number]
        if "error" in answer:
            raise _KINDS.get(answer.get("kind", ""), LabFailed)(answer["error"])
        return answer.get("result")

    def close(self) -> None:
        """End the keeper, and with it everything it holds. Waits until it is gone."""
        if self.process.returncode is not None:
            return
        with self._writing, contextlib.suppress(OSError):
            self._over = self._over or "the lab is closed"
            if self.process.stdin is not None:
                self.process.stdin.close()
        try:
            self.process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            self.process.kill()  # unshare takes its child with it
            self.process.wait()
        self._listener.join()
        os.close(self._owner)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            lines = LineReader(stdout.fileno())
            while lines.open:
                for text in lines.ready():
                    self._take(text)
        self._over = self._over or "the keeper of the lab ended unexpectedly"
        gone: Message = {"event": "failed", "error": self._over, "text": self._over}
        self._first.put(gone)
        for waiting in list(self._answers.values()):
            waiting.put(gone)
        self._on_event(gone)

    def _take(self, text: str) -> None:
        message: Message = json.loads(text)
        if "id" in message:
            waiting = self._answers.get(message["id"])
            if waiting is not None:
                waiting.put(message)
        elif message["event"] == "ready":
            self._first.put(message)
        else:
            self._on_event(message)
