"""The collectives that thinwire uses, on a process group of its own, each with a deadline.

Only one thread may use a `GroupWire`. After any failure the group is not used again: Gloo gives no promise about
a group that saw an error, and an abandoned operation may still write into its buffers, which are therefore never
reused. A rank that fails says so in the store, so that ranks which are no neighbours of it need not wait long.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from thinwire.errors import BrokenGroupError, DeadlineError, PeerFailedError, SyncError
from thinwire.exchanges.all_reduce import ring_chunks
from thinwire.pace import Pace
from thinwire.torch_names import Store
from thinwire.types import Traffic

_POLL = timedelta(milliseconds=100)
_ROLL_CALL_OF_THE_LATE = 1.0
_NOW = (
    "Nothing was changed, but this group is not used again. Form a new one on every rank: with sync.rejoin(), or, for "
    "synchronize, with torch.distributed.new_group()."
)


class GroupWire:
    """A process group as a `thinwire.protocols.Wire`."""

    def __init__(self, group: dist.ProcessGroup, pace: Pace, *, life: str = "", private: bool = False) -> None:
        """Wrap a group.

        Args:
            group: The ranks; the group should be private to this wire.
            pace: Deadlines.
            life: Distinguishes this wire's keys in the store from those of other wires of the same group.
            private: Whether the group may be destroyed when it is damaged.
        """
        self.pace = pace
        self.rank = dist.get_rank(group)
        self.world = dist.get_world_size(group)
        self.traffic = Traffic()
        self.broken: str | None = None
        self.calls = 0
        self._group: dist.ProcessGroup | None = group
        self._private = private
        self._root = [dist.get_global_rank(group, rank) for rank in range(self.world)]
        self._device = torch.device("cuda") if dist.get_backend(group) == "nccl" else torch.device("cpu")
        self._store = _own_connection(_default_store())
        self._keys = f"thinwire/{group.group_name}/{life}"
        self._operations = 0
        self._abandoned: list[tuple[dist.Work, tuple[Tensor, ...]]] = []

    def swap(self, note: bytes) -> list[bytes]:
        """Everybody's note, by a direct all-to-all: two one-way delays, where a ring pays 2 (world - 1)."""
        self.calls += 1
        size = len(note)
        mine = torch.frombuffer(bytearray(note) * self.world, dtype=torch.uint8).to(self._device)
        theirs = torch.empty_like(mine)
        cost = Traffic(bytes_sent=(self.world - 1) * size, rounds=1 if self.world > 1 else 0)
        self._run(
            lambda: dist.all_to_all_single(theirs, mine, group=self._group, async_op=True),
            cost,
            (mine, theirs),
            patient=True,
        )
        raw = theirs.cpu().numpy().tobytes()
        return [raw[rank * size : (rank + 1) * size] for rank in range(self.world)]

    def all_gather(self, message: Tensor, sizes: Sequence[int]) -> list[Tensor]:
        """Everybody's message, padded to the longest on the way."""
        self.calls += 1
        longest = max(sizes)
        if longest == 0:
            return [torch.empty(0, dtype=torch.uint8) for _ in sizes]
        mine = torch.zeros(longest, dtype=torch.uint8, device=self._device)
        mine[: message.numel()] = message
        everybody = torch.empty(longest * self.world, dtype=torch.uint8, device=self._device)
        cost = Traffic(bytes_sent=(self.world - 1) * longest, rounds=self.world - 1)
        buffers = (mine, everybody)
        self._run(
            lambda: _all_gather(everybody, mine, group=self._group, async_op=True),
            cost,
            buffers,
        )
        here = everybody.cpu()
        return [here[rank * longest : rank * longest + size] for rank, size in enumerate(sizes)]

    def broadcast(self, message: Tensor, size: int, root: int) -> Tensor:
        """The root's message, by the backend's own broadcast."""
        self.calls += 1
        buffer = (
            message.to(self._device) if self.rank == root else torch.empty(size, dtype=torch.uint8, device=self._device)
        )
        children = _children((self.rank - root) % self.world, self.world)
        cost = Traffic(bytes_sent=children * size, rounds=(self.world - 1).bit_length())
        source = self._root[root]
        self._run(lambda: dist.broadcast(buffer, source, group=self._group, async_op=True), cost, (buffer,))
        return buffer.cpu()

    def all_reduce(self, values: Tensor) -> Tensor:
        """The sum over all ranks, by the backend's own all-reduce."""
        self.calls += 1
        if values.numel() == 0:
            return values
        chunks = ring_chunks(values.numel(), self.world)
        spared = chunks[self.rank] + chunks[(self.rank + 1) % self.world]
        sent = (2 * values.numel() - spared) * values.element_size() if self.world > 1 else 0
        cost = Traffic(bytes_sent=sent, rounds=2 * (self.world - 1))
        self._run(lambda: dist.all_reduce(values, group=self._group, async_op=True), cost, (values,))
        return values

    def _run(
        self,
        start: Callable[[], dist.Work],
        cost: Traffic,
        buffers: tuple[Tensor, ...],
        *,
        patient: bool = False,
    ) -> None:
        """Run one collective to its end, or to its deadline.

        A patient one may wait for ranks that are still computing: that is what the roll call is for. All others
        find every rank there, so bytes and speed alone say how long they may take.
        """
        if self.broken:
            raise BrokenGroupError(f"the group was damaged earlier ({self.broken}). {_NOW}")
        if self._group is None:
            # To torch, no group means the default one, and the others may be in the middle of something there.
            raise BrokenGroupError(
                "this rank has left the group, and nothing was sent. To go on, attach the model again."
            )
        self._operations += 1
        self.traffic += cost
        if self.world == 1:
            for target, source in zip(buffers[1:], buffers[:-1], strict=True):
                target.copy_(source)
            return
        began = time.monotonic()
        allowed = self.pace.patience if patient else self.pace.allowance(cost.bytes_sent, cost.rounds)
        work: dist.Work | None = None
        try:
            work = start()
            self._wait(work, began + allowed)
        except Exception as error:
            if work is not None:
                # It may still run and write: its buffers must live, untouched, as long as it does.
                self._abandoned.append((work, buffers))
            failure = self._failed(error, began)
            self.leave()
            raise failure from error
        self.pace.observe(cost.bytes_sent, cost.rounds, time.monotonic() - began, patient=patient)

    def _wait(self, work: dist.Work, deadline: float) -> None:
        """Wait in short slices, looking for bad news in between."""
        while True:
            try:
                work.wait(_POLL)
                return
            except RuntimeError:
                if work.is_completed():
                    break
            self._look_for_bad_news()
            if time.monotonic() > deadline:
                raise DeadlineError("the deadline passed")
        try:
            work.wait()  # It failed, or it ended just behind the slice: waiting once more tells which.
        except RuntimeError:
            # A rank that gives up says why before it closes its connections.
            self._look_for_bad_news()
            raise

    def _look_for_bad_news(self) -> None:
        """Raise what another rank has written into the store."""
        if not self._store.check([f"{self._keys}/failed"]):
            return
        rank, own, why = self._store.get(f"{self._keys}/failed").decode().split(" ", 2)
        if own == "own":
            raise PeerFailedError(f"rank {rank} gave up in the middle of an exchange: {why}", ranks=(int(rank),))
        raise SyncError(f"rank {rank} lost the connection: {why}")

    def abandon(self, why: str) -> None:
        """This rank cannot finish an exchange that the others are in. They learn it from the store, at once.

        It also closes its connections, which makes the others' operations fail in turn. A group in which one still
        runs could not be destroyed, and the interpreter could not exit.
        """
        self._break(f"rank {self.rank} gave up: {why}", f"{self.rank} own {why}")
        self.leave()

    def leave(self) -> None:
        """Destroy the group, unless it is somebody else's, or an operation is still running in it."""
        running = any(not work.is_completed() for work, _ in self._abandoned)
        if self._private and not running and self._group is not None and dist.is_initialized():
            group, self._group = self._group, None
            with contextlib.suppress(Exception):
                dist.destroy_process_group(group)

    def _break(self, why: str, news: str) -> None:
        """Never use the group again, and tell the others unless they know."""
        self.broken = why
        with contextlib.suppress(Exception):
            if not self._store.check([f"{self._keys}/failed"]):
                self._store.set(f"{self._keys}/failed", news)

    def _failed(self, error: Exception, began: float) -> SyncError:
        """Mark the group as broken, tell the others, and make the error that tells the user."""
        waited = time.monotonic() - began
        late = self._missing() if isinstance(error, DeadlineError) else ()
        self._break(f"operation {self._operations}: {error}", f"{self.rank} lost {error}")
        if isinstance(error, DeadlineError):
            who = f"rank {', '.join(map(str, late))} did not come" if late else "all ranks are there, but no bytes came"
            return DeadlineError(
                f"operation {self._operations} did not end within {waited:.1f} s: {who}. {_NOW} If ranks may be that "
                f"slow, give attach a longer patience.",
                ranks=late,
            )
        kind = PeerFailedError if isinstance(error, PeerFailedError) else SyncError
        ranks = error.ranks if isinstance(error, SyncError) else ()
        return kind(f"operation {self._operations} failed after {waited:.1f} s: {error}. {_NOW}", ranks=ranks)

    def _missing(self) -> tuple[int, ...]:
        """Which ranks do not answer in the store: everybody who still can signs there."""
        prefix = f"{self._keys}/late/{self._operations}"
        with contextlib.suppress(Exception):
            self._store.set(f"{prefix}/{self.rank}", "here")
            until = time.monotonic() + _ROLL_CALL_OF_THE_LATE
            while time.monotonic() < until:
                missing = tuple(rank for rank in range(self.world) if not self._store.check([f"{prefix}/{rank}"]))
                if not missing:
                    break
                time.sleep(0.05)
            return missing
        return ()


# torch renamed it; both names do the same.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def _children(position: int, world: int) -> int:
    """To how many ranks a binomial broadcast tree makes the rank at ``position`` (the root being 0) send."""
    first = position.bit_length()
    return sum(1 for bit in range(first, (world - 1).bit_length()) if position + (1 << bit) < world)


def _default_store() -> Store:
    """The store of the default group: torch has no public name for it."""
    store: Store = dist.distributed_c10d._get_default_store()
    return store


def _own_connection(store: Store) -> Store:
    """A connection of our own where the store can make one: another thread may be blocked inside the common one."""
    try:
        clone: Store = store.clone()  # type: ignore[attr-defined]
        return clone
    except (RuntimeError, AttributeError):
        return store
