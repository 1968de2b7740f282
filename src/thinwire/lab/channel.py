"""Messages between a cluster and its keeper: one line of JSON each."""

import json
import os
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]


class LineReader:
    """Cuts what a file descriptor yields into lines."""

    def __init__(self, descriptor: int) -> None:
        """Read from it.

        Args:
            descriptor: An open pipe.
        """
        self.descriptor = descriptor
        self.open = True
        self._rest = b""

    def ready(self) -> Iterator[str]:
        """Read once, and yield the lines that are complete now; at the end of the file also an incomplete one."""
        data = os.read(self.descriptor, 1 << 16)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if not data:
            self.open = False
            lines += [self._rest] if self._rest else []
        for line in lines:
            yield line.decode(errors="replace").removesuffix("\r")


def send(descriptor: int, message: Message) -> None:
    """Write one message whole.

    Args:
        descriptor: An open pipe that blocks.
        message: What JSON can hold.
    """
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]
