"""What happens, one event after the other, for whoever listens: decisions with their predictions and what came of them.

An event is plain data. Nobody listens until somebody asks to, and an event that nobody hears costs nothing.
"""

import json
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Event = Mapping[str, Any]
Listener = Callable[[Event], None]

_listeners: list[Listener] = []


def listen(listener: Listener) -> Callable[[], None]:
    """Hear every event of this process from now on.

    Args:
        listener: Called with each event, on the thread it happens on; it must be quick and must not raise.

    Returns:
        A function that ends it.
    """
    _listeners.append(listener)
    return lambda: _listeners.remove(listener) if listener in _listeners else None


def heard() -> bool:
    """Whether anybody listens."""
    return bool(_listeners)


def emit(event: Event) -> None:
    """Tell everybody who listens."""
    for listener in tuple(_listeners):
        listener(event)


class JsonLines:
    """Writes every event as one line of JSON. Give each rank a file of its own.

    Args:
        path: The file; events are added at its end.
    """

    def __init__(self, path: Path | str) -> None:
        """Open the file."""
        self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - it stays open
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Write one event, at once: a run that is killed has all of them."""
        line = json.dumps(_plain(event), sort_keys=True)
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _plain(value: Any) -> Any:
    """As JSON can say it: numbers that it does not know are null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
