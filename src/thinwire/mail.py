"""Letters from rank to rank, each on its way as soon as it is posted.

Gloo moves nothing before the receiver has said where to put it, and saying so costs a one-way delay of its own, in
every round of every collective. So here receives stand ready before anybody sends: `AHEAD` of them for every
other rank, each with room for what that rank's last letters needed, a number that both ends know because both have
seen the letters. A letter that fits its room arrives after one one-way delay. What does not fit comes behind it, after
two more.
"""

import contextlib
import queue
import struct
import threading
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire.errors import WireError, WireReason

AHEAD = 4
"""Receives that stand ready for every other rank."""
_HEAD = struct.Struct("<4sQI")
_MAGIC = b"TWL1"
LARGEST = 1 << 20
"""The largest room that is ever made for a letter; of a longer one the rest comes behind."""
_SMALLEST = 4096
_MEMORY = 8
_TAG = 0x7700
_FOR_EVER = timedelta(days=3650)
_AT_ONCE = timedelta(milliseconds=1)
Sent = list[tuple[dist.Work, Tensor]]


class Mailbox:
    """This rank's letters to and from the other ranks of a Gloo group.

    Letters of one rank to another arrive in the order in which they were posted. `post` may be called on another thread
    than `collect`; neither on two.
    """

    def __init__(self, group: dist.ProcessGroup, root: Sequence[int], rank: int, number: int = 0) -> None:
        """Make receives stand ready.

        Args:
            group: The ranks.
            root: Their numbers in the default group.
            rank: This one.
            number: Which of a group's mailboxes this is; letters of one never get into another.
        """
        self._group = group
        self._root = root
        self._tags = _TAG + 2 * number, _TAG + 2 * number + 1
        others = [other for other in range(len(root)) if other != rank]
        self._outward = {other: _Rooms() for other in others}
        self._inward = {other: _Rooms() for other in others}
        self._slots = {other: [_Slot(self._beginning_of, other) for _ in range(AHEAD)] for other in others}
        self._next = dict.fromkeys(others, 0)
        self._posted: queue.SimpleQueue[Sent | RuntimeError] = queue.SimpleQueue()
        self._waiter = _Waiter()

    def post(self, letters: Mapping[int, Tensor]) -> None:
        """Send letters, uint8 on the CPU. They must not change before what was posted is collected.

        What goes wrong here is raised there: errors come in the order of the letters.
        """
        sent: Sent = []
        try:
            for to, letter in letters.items():
                room = self._outward[to].take(letter.numel())
                for part, tag in zip((_beginning(letter, room), letter[room:]), self._tags, strict=True):
                    if part.numel():
                        work = dist.isend(part, self._root[to], group=self._group, tag=tag)
                        assert work is not None
                        sent.append((work, part))
        except RuntimeError as error:
            self._posted.put(error)
        else:
            self._posted.put(sent)

    def collect(self, sources: Collection[int]) -> "Collected":
        """The next letter of each source, when the letters of the oldest `post` that was not collected are sent."""
        sent = [] if self._posted.empty() else self._posted.get_nowait()

        def wait() -> dict[int, Tensor]:
            if isinstance(sent, RuntimeError):
                raise sent
            slots = {source: self._slots[source][self._next[source] % AHEAD] for source in sources}
            letters = {source: slot.open() for source, slot in slots.items()}
            rests = [
                self._irecv(letter[slots[source].room :], source, self._tags[1])
                for source, letter in letters.items()
                if letter.numel() > slots[source].room
            ]
            for work in (*rests, *(work for work, _ in sent)):
                work.wait(_FOR_EVER)
            for source, slot in slots.items():
                self._next[source] += 1
                slot.stand_ready(self._inward[source].take(letters[source].numel(), ahead=True))
            return letters

        return self._waiter.start(wait)

    def close(self) -> None:
        """Break the connections: whoever waits for this rank learns it at once, and our own waiter comes back."""
        for slots in self._slots.values():
            for slot in slots:
                slot.give_up()

    def _beginning_of(self, source: int, room: Tensor) -> dist.Work:
        return self._irecv(room, source, self._tags[0])

    def _irecv(self, room: Tensor, source: int, tag: int) -> dist.Work:
        work = dist.irecv(room, self._root[source], group=self._group, tag=tag)
        assert work is not None
        return work


class _Rooms:
    """How much of each of one rank's letters to another fits the receive that stands ready for it.

    Both ends follow this rule: the room of a letter comes from the lengths of those that had arrived when its receive
    was made.
    """

    def __init__(self) -> None:
        self._rooms = deque([_SMALLEST] * AHEAD)
        self._lengths: deque[int] = deque(maxlen=_MEMORY)

    def take(self, length: int, *, ahead: bool = False) -> int:
        """A letter of this length: its room, or the room of the receive that is made when it has arrived."""
        self._lengths.append(length)
        wanted = 1 << (max(self._lengths) * 5 // 4).bit_length()
        new = min(max(_SMALLEST, wanted), LARGEST)
        self._rooms.append(new)
        own = self._rooms.popleft()
        return new if ahead else own


def _beginning(letter: Tensor, room: int) -> Tensor:
    """Length and checksum of it, and as much of the letter as has room."""
    part = letter[:room]
    head = _HEAD.pack(_MAGIC, letter.numel(), 0)[:-4]
    frame = torch.empty(_HEAD.size + part.numel(), dtype=torch.uint8)
    frame.numpy()[: _HEAD.size] = memoryview(head + struct.pack("<I", zlib.crc32(head)))
    frame[_HEAD.size :] = part
    return frame


class _Slot:
    """A receive that stands ready."""

    def __init__(self, receive: Callable[[int, Tensor], dist.Work], source: int) -> None:
        self.room = 0
        self._receive = receive
        self._source = source
        self._frame = torch.empty(0, dtype=torch.uint8)
        self._work: dist.Work | None = None
        self._failure = ""
        self.stand_ready(_SMALLEST)

    def stand_ready(self, room: int) -> None:
        """Receive the next beginning; that the other rank has gone meanwhile matters only to who waits for it."""
        self.room = room
        if self._frame.numel() != _HEAD.size + room:
            self._frame = torch.empty(_HEAD.size + room, dtype=torch.uint8)
        try:
            self._work = self._receive(self._source, self._frame)
        except RuntimeError as error:
            self._work, self._failure = None, str(error)

    def open(self) -> Tensor:
        """Wait for the letter; of one that does not fit, only the beginning is there yet."""
        if self._work is None:
            raise RuntimeError(self._failure)
        self._work.wait(_FOR_EVER)
        head = self._frame[: _HEAD.size].numpy().tobytes()
        magic, length, checksum = _HEAD.unpack(head)
        if magic != _MAGIC or checksum != zlib.crc32(head[:-4]):
            raise WireError(WireReason.CHECKSUM, f"the beginning of a letter of rank {self._source}")
        letter = torch.empty(length, dtype=torch.uint8)
        letter[: self.room] = self._frame[_HEAD.size : _HEAD.size + min(length, self.room)]
        return letter

    def give_up(self) -> None:
        """End a receive that nobody will answer. A wait that runs out of time makes Gloo break the connection."""
        if self._work is not None:
            with contextlib.suppress(RuntimeError):
                self._work.wait(_AT_ONCE)


class Collected:
    """Letters that are awaited; waited for like one of torch's works, but in slices, which Gloo's receives forbid."""

    def __init__(self, wait: Callable[[], dict[int, Tensor]]) -> None:
        """Wrap what is to be waited for."""
        self.letters: dict[int, Tensor] = {}
        self._wait = wait
        self._done = threading.Event()
        # Not the exception itself: it knows where it was raised, and so everything that was alive there.
        self._failure = ""

    def run(self) -> None:
        """Wait for it: on the waiter's thread."""
        try:
            self.letters = self._wait()
        except BaseException as error:
            self._failure = f"{error}" or type(error).__name__
        self._done.set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for it, not longer than so long.

        Raises:
            RuntimeError: It failed, or it is not there yet.
        """
        if not self._done.wait(None if timeout is None else timeout.total_seconds()):
            raise RuntimeError("no letter yet")
        if self._failure:
            raise RuntimeError(self._failure)
        return True

    def is_completed(self) -> bool:
        """Whether waiting is over, well or not."""
        return self._done.is_set()


class _Waiter:
    """A thread that waits, since a wait for one of Gloo's receives cannot be interrupted without breaking it."""

    def __init__(self) -> None:
        self._awaited: queue.SimpleQueue[Collected | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        weakref.finalize(self, self._awaited.put, None)

    def start(self, wait: Callable[[], dict[int, Tensor]]) -> Collected:
        """Have something waited for."""
        if self._thread is None:
            self._thread = threading.Thread(target=_work, args=(self._awaited,), name="thinwire-mail", daemon=True)
            self._thread.start()
        collected = Collected(wait)
        self._awaited.put(collected)
        return collected


def _work(awaited: "queue.SimpleQueue[Collected | None]") -> None:
    while (collected := awaited.get()) is not None:
        collected.run()
        del collected
