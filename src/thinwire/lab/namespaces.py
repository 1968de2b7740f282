"""Network namespaces without names: each lives as long as something holds it, so none can be left behind."""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator, Sequence

from thinwire.lab.errors import LabFailed

_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """A network namespace, held by a file descriptor of this process."""

    def __init__(self, descriptor: int) -> None:
        """Hold it.

        Args:
            descriptor: An open file of it.
        """
        self.descriptor = descriptor
        self.identity = os.fstat(descriptor).st_ino

    @classmethod
    def here(cls) -> "Namespace":
        """The one that this process is in."""
        return cls(os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def new(cls) -> "Namespace":
        """A fresh one. This process stays where it is."""
        before = cls.here()
        _check(_libc.unshare(_CLONE_NEWNET), "make a network namespace")
        made = cls.here()
        _check(_libc.setns(before.descriptor, _CLONE_NEWNET), "come back from a network namespace")
        os.close(before.descriptor)
        return made

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Be in it: processes and sockets made meanwhile belong to it. For processes of one thread."""
        before = Namespace.here()
        _check(_libc.setns(self.descriptor, _CLONE_NEWNET), "enter a network namespace")
        try:
            yield
        finally:
            _check(_libc.setns(before.descriptor, _CLONE_NEWNET), "come back from a network namespace")
            os.close(before.descriptor)

    def run(self, command: Sequence[str], lines: Sequence[str] = ()) -> str:
        """Run a command in it.

        Args:
            command: Its words.
            lines: What it reads on its standard input.

        Returns:
            What it said.

        Raises:
            LabFailed: It complained.
        """
        with self.entered():
            done = subprocess.run(
                command, input="\n".join(lines), capture_output=True, text=True, errors="replace", check=False
            )
        if done.returncode:
            raise LabFailed(f"{' '.join(command)}: {done.stderr.strip()}{''.join(f' | {line}' for line in lines)}")
        return done.stdout


def _check(result: int, what: str) -> None:
    if result:
        raise LabFailed(f"could not {what}: {os.strerror(ctypes.get_errno())}")
