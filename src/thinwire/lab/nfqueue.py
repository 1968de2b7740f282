"""The kernel's packet queue over its netlink socket: packets are announced, and wait for a verdict.

Only what holding needs: who sent a packet, by hardware address, and accept or drop. No payload is copied.
"""

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator

from thinwire.lab.namespaces import Namespace

ACCEPT, DROP = 1, 0

_NETFILTER = 12
_VERDICT, _CONFIG = 3 << 8 | 1, 3 << 8 | 2
_BIND, _COMMAND, _PARAMS, _LONGEST, _MASK, _FLAGS = 1, 1, 2, 3, 4, 5
_REQUEST = 1
_HEADERS_ONLY = 1
_LARGE_PACKETS_WHOLE = 4  # GSO: do not cut them into frames for us
_CAPACITY = 1 << 17
_RECEIVE_BUFFER = 64 << 20
_FORCE_RECEIVE_BUFFER = 33
_ID = struct.Struct("!I")
_ID_AT = 24
_SENDER = struct.pack("=HH", 16, 9) + struct.pack("!H", 6)
_VERDICT_HEAD = struct.pack("=IHHIIIHH", 32, _VERDICT, _REQUEST, 0, 0, 0, 12, 2)


class Queue:
    """The queue of one host: what arrives there waits in it.

    Args:
        namespace: The host.
    """

    def __init__(self, namespace: Namespace) -> None:
        with namespace.entered():
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETFILTER)
        self.socket.bind((0, 0))
        with contextlib.suppress(PermissionError):
            self.socket.setsockopt(socket.SOL_SOCKET, _FORCE_RECEIVE_BUFFER, _RECEIVE_BUFFER)
        self._configure(_COMMAND, struct.pack("!BxH", _BIND, socket.AF_INET))
        self._configure(_PARAMS, struct.pack("!IB", 0, _HEADERS_ONLY))
        self._configure(_LONGEST, struct.pack("!I", _CAPACITY))
        self._configure(_FLAGS, struct.pack("!I", _LARGE_PACKETS_WHOLE), _MASK)
        self.socket.setblocking(False)
        self._sender_at = 0

    def fileno(self) -> int:
        """For select."""
        return self.socket.fileno()

    def arrived(self) -> Iterator[tuple[int, int]]:
        """The packets that arrived since the last time: number and sending host.

        Raises:
            OSError: Packets came faster than they were read, and some are lost.
        """
        while True:
            try:
                data = self.socket.recv(4096)
            except BlockingIOError:
                return
            if data[4:6] == b"\0\3":
                yield _ID.unpack_from(data, _ID_AT)[0], self._sender(data)

    def judge(self, verdicts: Iterable[tuple[int, int]]) -> None:
        """Let packets go, or drop them.

        Args:
            verdicts: Numbers of packets, and `ACCEPT` or `DROP`.
        """
        self.socket.send(b"".join(_verdict(number, verdict) for number, verdict in verdicts))

    def _sender(self, data: bytes) -> int:
        at = self._sender_at
        if data[at : at + 6] != _SENDER:
            at = self._sender_at = data.find(_SENDER, _ID_AT)
        return data[at + 12] << 8 | data[at + 13]

    def _configure(self, kind: int, value: bytes, mask: int = 0) -> None:
        attributes = _attribute(kind, value) + (_attribute(mask, value) if mask else b"")
        head = struct.pack("=IHHIIBBH", 20 + len(attributes), _CONFIG, _REQUEST, 0, 0, socket.AF_UNSPEC, 0, 0)
        self.socket.send(head + attributes)


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _verdict(number: int, verdict: int) -> bytes:
    return _VERDICT_HEAD + struct.pack("!II", verdict, number)
