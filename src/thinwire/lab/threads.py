"""Ranks as threads of one process: thousands of exchanges a second, for property tests and simulations.

The wire is memory, but the collectives are the real algorithms, message by message (a ring for all-gather and
all-reduce, a binomial tree for broadcast), and every byte a rank sends is counted where it is sent. So this is
also the independent witness of what an exchange declares to cost.
"""

import queue
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from thinwire.errors import PeerFailedError, SyncError
from thinwire.exchanges.all_reduce import ring_chunks
from thinwire.types import Traffic

_TIMEOUT = 20.0
Box = queue.SimpleQueue[Any]


class ThreadWire:
    """One rank's end of a wire in memory; a `thinwire.protocols.Wire`."""

    def __init__(self, rank: int, boxes: Sequence[Sequence[Sequence[Box]]], jitter: random.Random | None) -> None:
        """Join: ``boxes[0][a][b]`` holds what rank a has sent to rank b in collectives; then letters, and notes."""
        self.rank = rank
        self.world = len(boxes[0])
        self.broken: str | None = None
        self.calls = 0
        self.bytes_sent = 0
        self.rounds = 0
        self._boxes, self._letters, self._notes = boxes
        self._posted: deque[bool] = deque()
        self._announced: deque[Tensor] = deque()
        self._jitter = jitter

    @property
    def traffic(self) -> Traffic:
        """What this rank has sent so far, and in how many rounds."""
        return Traffic(bytes_sent=self.bytes_sent, rounds=self.rounds)

    def _send(self, to: int, data: Tensor, boxes: Sequence[Sequence[Box]] | None = None) -> None:
        if self._jitter is not None and self._jitter.random() < 0.05:
            time.sleep(self._jitter.random() * 0.002)
        self.bytes_sent += data.numel() * data.element_size()
        (boxes or self._boxes)[self.rank][to].put(data.clone())

    def _receive(self, source: int, boxes: Sequence[Sequence[Box]] | None = None) -> Any:
        try:
            data = (boxes or self._boxes)[source][self.rank].get(timeout=_TIMEOUT)
        except queue.Empty:
            self.broken = f"rank {source} sent nothing for {_TIMEOUT} s"
            raise SyncError(self.broken, ranks=(source,)) from None
        if isinstance(data, SyncError):
            if self.broken is None:
                self.broken = str(data)
                self._tell(data)
            raise data
        return data

    def abandon(self, why: str) -> None:
        """Leave everybody an error where they wait for data."""
        self.broken = f"rank {self.rank} gave up: {why}"
        self._tell(PeerFailedError(self.broken, ranks=(self.rank,)))

    def _tell(self, error: SyncError) -> None:
        for other in range(self.world):
            if other != self.rank:
                self._boxes[self.rank][other].put(error)
                self._letters[self.rank][other].put(error)
                self._notes[self.rank][other].put(error)

    @property
    def _others(self) -> list[int]:
        return [rank for rank in range(self.world) if rank != self.rank]

    def announce(self, note: Tensor) -> None:
        """To all at once; counted when it is heard, since another thread may announce."""
        for other in self._others:
            self._notes[self.rank][other].put(note.clone())
        self._announced.append(note)

    def hear(self) -> list[Tensor]:
        """One round."""
        self.calls += 1
        self.rounds += 1 if self.world > 1 else 0
        own = self._announced.popleft()
        self.bytes_sent += (self.world - 1) * own.numel()
        return [own if other == self.rank else self._receive(other, self._notes) for other in range(self.world)]

    def resync(self, mark: bytes) -> None:
        """Read all notes until the mark."""
        self._announced.clear()
        for other in self._others:
            self._send(other, torch.frombuffer(bytearray(mark), dtype=torch.uint8), self._notes)
        for other in self._others:
            while self._receive(other, self._notes).numpy().tobytes() != mark:
                pass

    def post(self, letters: Mapping[int, Tensor]) -> None:
        """Put letters into boxes."""
        for to, letter in letters.items():
            self._send(to, letter, self._letters)
        self._posted.append(bool(letters))

    def collect(self, sources: Collection[int]) -> dict[int, Tensor]:
        """Take letters out of boxes."""
        self.calls += 1
        self.rounds += 1 if self._posted.popleft() or sources else 0
        return {source: self._receive(source, self._letters) for source in sources}

    def all_gather(self, message: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """A ring: in each round, pass on what came last. Blocks are as long as the longest."""
        self.calls += 1
        longest = max(sizes)
        blocks = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
        blocks[self.rank][: message.numel()] = message
        for turn in range(self.world - 1 if longest else 0):
            self._send((self.rank + 1) % self.world, blocks[(self.rank - turn) % self.world])
            blocks[(self.rank - turn - 1) % self.world] = self._receive((self.rank - 1) % self.world)
            self.rounds += 1
        return [block[:size] for block, size in zip(blocks, sizes, strict=True)]

    def broadcast(self, message: Tensor, size: int, root: int) -> Tensor:
        """A binomial tree: in each round, whoever has it passes it on."""
        self.calls += 1
        place = (self.rank - root) % self.world
        have = message if place == 0 else None
        for bit in range((self.world - 1).bit_length()):
            self.rounds += 1
            partner = place ^ (1 << bit)
            if have is not None and place < (1 << bit) and partner < self.world:
                self._send((partner + root) % self.world, have)
            elif have is None and (1 << bit) <= place < (2 << bit):
                have = self._receive((partner + root) % self.world)
        assert have is not None
        return have

    def all_reduce(self, values: Tensor) -> Tensor:
        """A ring: sums go round once until every rank has one chunk complete, then the complete chunks go round."""
        self.calls += 1
        if values.numel() == 0 or self.world == 1:
            return values
        chunks = list(torch.split(values, ring_chunks(values.numel(), self.world)))
        right, left = (self.rank + 1) % self.world, (self.rank - 1) % self.world
        for turn in range(self.world - 1):
            self._send(right, chunks[(self.rank - turn) % self.world])
            chunks[(self.rank - turn - 1) % self.world] += self._receive(left)
            self.rounds += 1
        for turn in range(self.world - 1):
            self._send(right, chunks[(self.rank - turn + 1) % self.world])
            chunks[(self.rank - turn) % self.world].copy_(self._receive(left))
            self.rounds += 1
        return values


def run_threads(function: Callable[..., Any], world: int, *args: Any, jitter: int | None = None) -> list[Any]:
    """Run ``function(wire, *args)`` on so many ranks.

    Args:
        function: What each rank does.
        world: How many ranks.
        *args: Passed on.
        jitter: A seed for random pauses before sends; None for none.

    Returns:
        The results, or the exceptions that were raised, in rank order.
    """
    boxes = [[[Box() for _ in range(world)] for _ in range(world)] for _ in ("collectives", "letters", "notes")]
    results: list[Any] = [None] * world

    def work(rank: int) -> None:
        wire = ThreadWire(rank, boxes, None if jitter is None else random.Random(jitter * 1009 + rank))
        try:
            with torch.no_grad():
                results[rank] = function(wire, *args)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
