"""What the links really do: round trips and rates between hosts. Runs in the keeper, without torch."""

import contextlib
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Sequence
from functools import partial

from thinwire.lab.switch import Switch, address
from thinwire.lab.urgency import be_urgent, urgent

Pair = tuple[int, int]
Way = tuple[int, str]
_CHUNK = bytes(1 << 18)
_WARM = 0.25  # of the time, for TCP to find its pace
_PATIENCE = 5.0
_SETTLE = 0.02
_BATCH, _PAUSE, _SILENCE = 64, 0.002, 0.5
_DISCARD = 9
_UDP_SEGMENT = 103
_DATAGRAM, _FRAME = 1472, 1514


def round_trips(switch: Switch, pairs: Sequence[Pair], count: int) -> list[list[float]]:
    """The round trips of small datagrams, in seconds, for each pair; fewer than asked for where none came back.

    This process is both ends, so no other process has to be woken up on the way.

    Args:
        switch: The hosts.
        pairs: Who asks whom. All of them at the same time.
        count: Questions for each pair.
    """
    ends = [(_datagram(switch, asker), _datagram(switch, answerer)) for asker, answerer in pairs]
    try:
        with urgent():
            return _ask(ends, pairs, count)
    finally:
        for end in ends:
            for each in end:
                each.close()


def _ask(ends: list[tuple[socket.socket, socket.socket]], pairs: Sequence[Pair], count: int) -> list[list[float]]:
    trips: list[list[float]] = [[] for _ in pairs]
    sent = [0.0] * len(pairs)

    def ask(pair: int) -> None:
        sent[pair] = time.perf_counter()
        ends[pair][0].sendto(struct.pack("!I", len(trips[pair])), (address(pairs[pair][1]), _port(ends[pair][1])))

    for pair in range(len(pairs)):
        ask(pair)
    open_pairs, last = set(range(len(pairs))), time.perf_counter()
    while open_pairs and time.perf_counter() - last < _PATIENCE:
        ready, _, _ = select.select([each for pair in open_pairs for each in ends[pair]], [], [], 0.1)
        for pair in list(open_pairs):
            asker, answerer = ends[pair]
            if answerer in ready:
                data, back = answerer.recvfrom(64)
                answerer.sendto(data, back)
            if asker in ready and struct.unpack("!I", asker.recv(64))[0] == len(trips[pair]):
                last = time.perf_counter()
                trips[pair].append(last - sent[pair])
                open_pairs -= {pair} if len(trips[pair]) == count else set()
                if pair in open_pairs:
                    ask(pair)
            elif pair in open_pairs and time.perf_counter() - sent[pair] > 1.0:
                ask(pair)  # a question or an answer was lost
    return trips


def _datagram(switch: Switch, host: int) -> socket.socket:
    with switch.hosts[host].entered():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address(host), 0))
    return made


def _port(of: socket.socket) -> int:
    return int(of.getsockname()[1])


def goodput(switch: Switch, pairs: Sequence[Pair], seconds: float) -> list[float]:
    """Bits of payload per second that one TCP stream carries, for each pair, all of them at the same time.

    Args:
        switch: The hosts.
        pairs: From whom to whom.
        seconds: How long; the first quarter is not counted.
    """
    streams = [_connect(switch, pair) for pair in pairs]
    outlets, children = [], []
    for sender, receiver in streams:
        outlet, inlet = os.pipe()
        outlets.append(outlet)
        children.append(_fork(partial(_send, sender, seconds)))
        children.append(_fork(partial(_receive, receiver, seconds, inlet)))
        os.close(inlet)
    for stream in streams:
        for end in stream:
            end.close()  # so that a stream ends with its sender
    try:
        return [_read_double(outlet) for outlet in outlets]
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def _connect(switch: Switch, pair: Pair) -> tuple[socket.socket, socket.socket]:
    with switch.hosts[pair[1]].entered():
        listener = socket.create_server((address(pair[1]), 0))
    with switch.hosts[pair[0]].entered():
        sender = socket.create_connection(listener.getsockname(), timeout=_PATIENCE)
    receiver, _ = listener.accept()
    listener.close()
    sender.settimeout(None)
    receiver.settimeout(_PATIENCE)
    return sender, receiver


def lost(switch: Switch, pair: Pair, count: int) -> int:
    """How many of so many datagrams do not arrive.

    Args:
        switch: The hosts.
        pair: From whom to whom.
        count: Datagrams, sent no faster than they fit into the link's queue.
    """
    sender, receiver = _datagram(switch, pair[0]), _datagram(switch, pair[1])
    receiver.setblocking(False)
    arrived = 0
    with contextlib.closing(sender), contextlib.closing(receiver):
        target = receiver.getsockname()
        for number in range(count):
            sender.sendto(b"thinwire", target)
            if number % _BATCH == 0:
                arrived += _drain(receiver, _PAUSE)
        while more := _drain(receiver, _SILENCE):
            arrived += more
    return count - arrived


def _drain(receiver: socket.socket, patience: float) -> int:
    arrived = 0
    while select.select([receiver], [], [], 0.0 if arrived else patience)[0]:
        receiver.recv(64)
        arrived += 1
    return arrived


def flood(switch: Switch, ways: Sequence[Way], seconds: float) -> list[float]:
    """Bits per second, headers counted, that links carry when more is sent than fits, all at the same time.

    Datagrams need no answers, so nothing but the link itself decides. They are counted by the hosts' interfaces.

    Args:
        switch: The hosts.
        ways: The links: ``(host, "up")`` is flooded by the host, ``(host, "down")`` by the switch.
        seconds: How long is counted.
    """
    children = [_fork(partial(_pour, *_spout(switch, way))) for way in ways]
    try:
        time.sleep(2 * _SETTLE)
        before, began = switch.counters(), time.monotonic()
        time.sleep(seconds)
        after, spent = switch.counters(), time.monotonic() - began
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    time.sleep(_SETTLE)  # what waits in the queues goes first
    packets = [after[host][f"{way}_packets"] - before[host][f"{way}_packets"] for host, way in ways]
    sizes = [8 * _FRAME * _frames_at_once(switch, way) for way in ways]
    return [count * bits / spent for count, bits in zip(packets, sizes, strict=True)]


def _spout(switch: Switch, way: Way) -> tuple[socket.socket, bytes, tuple[str, int]]:
    host, direction = way
    source = switch.hosts[host] if direction == "up" else switch.centre
    target = (host + 1) % len(switch.hosts) if direction == "up" else host
    with source.entered():
        spout = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    spout.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)  # less than any queue: it waits, and is not dropped
    frames = _frames_at_once(switch, way)
    if frames > 1:
        spout.setsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT, _DATAGRAM)
    return spout, bytes(_DATAGRAM * frames), (address(target), _DISCARD)


def _frames_at_once(switch: Switch, way: Way) -> int:
    """At high rates frames go by the dozen, as TCP's do too."""
    rate = switch.links[way].rate
    return 1 if rate is not None and rate < 100e6 else 40


def _pour(spout: socket.socket, data: bytes, target: tuple[str, int]) -> None:
    while True:
        with contextlib.suppress(OSError):  # nobody listens, and says so
            spout.sendto(data, target)


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            be_urgent()
            work()
        finally:
            os._exit(0)
    return child


def _send(sender: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            sender.sendall(_CHUNK)


def _receive(receiver: socket.socket, seconds: float, inlet: int) -> None:
    buffer, total, began, counted = bytearray(1 << 20), 0, time.monotonic(), 0
    start = now = began
    with contextlib.suppress(OSError):
        while now < began + seconds:
            total += receiver.recv_into(buffer, 0, socket.MSG_TRUNC)  # count it, but do not copy it
            now = time.monotonic()
            if not counted and now >= began + _WARM * seconds:
                start, counted = now, total
    spent = now - start
    os.write(inlet, struct.pack("!d", 8 * (total - counted) / spent if counted and spent > 0 else 0.0))


def _read_double(outlet: int) -> float:
    data = os.read(outlet, 8)
    os.close(outlet)
    return float(struct.unpack("!d", data)[0]) if len(data) == 8 else 0.0
