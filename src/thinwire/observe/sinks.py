"""Where events go. A sink that fails is told about once, and never stops the training."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from thinwire.observe.records import Event, to_line

_log = logging.getLogger("thinwire")


class Sink(Protocol):
    """Takes events."""

    def write(self, event: Event) -> None:
        """Take one event.

        Args:
            event: Any.
        """

    def close(self) -> None:
        """No more events come."""


class Jsonl:
    """Appends one line for each event to a file.

    Every line is written in one piece, so whoever reads the file meanwhile sees whole lines. Where the disk is full
    the event is lost, the log says so once, and the next event is tried again.

    Args:
        path: Of the file. Its folder is made, and what is in it stays.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lost = 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        # Whoever wrote here before may have been killed in the middle of a line.
        self._torn = os.fstat(self._file).st_size > 0

    def write(self, event: Event) -> None:
        """Append an event.

        Args:
            event: Any.
        """
        line = to_line(event).encode() + b"\n"
        if self._torn:
            line = b"\n" + line
        try:
            written = os.write(self._file, line)
        except OSError as error:
            self._lose(str(error))
            return
        self._torn = written < len(line)
        if self._torn:
            self._lose(f"only {written} of {len(line)} bytes were written")

    def _lose(self, why: str) -> None:
        self.lost += 1
        if self.lost == 1:
            _log.warning("events are being lost, training goes on: %s: %s", self.path, why)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class Several:
    """Gives every event to several sinks, and goes on without those that fail.

    Args:
        sinks: Which ones.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    def write(self, event: Event) -> None:
        """Give an event to every sink that is still in use.

        Args:
            event: Any.
        """
        for sink in list(self._sinks):
            try:
                sink.write(event)
            except Exception as error:
                self._sinks.remove(sink)
                _log.warning("%s failed and gets no more events, training goes on: %s", type(sink).__name__, error)

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            try:
                sink.close()
            except Exception as error:
                _log.warning("%s could not be closed: %s", type(sink).__name__, error)
