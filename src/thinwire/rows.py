"""Row-sparse gradients (``nn.Embedding(sparse=True)``): one index for each touched row, and never densified.

DDP hands each of them over as a bucket of its own holding a sparse COO tensor. They are sparse by nature, so they
are sent whole, whatever the plan: selected by their own coordinates, delta-coded, sent to all along with the roll
call, and summed row by row in rank order. (Gloo's own sparse all-reduce sends 24 bytes of index for each element and is
unreliable.)
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from thinwire import message
from thinwire.carry import Cargo, Carried, since
from thinwire.codecs import Delta
from thinwire.errors import PeerFailedError, ThinwireError
from thinwire.ledger import Ledger
from thinwire.message import Expected
from thinwire.observe.stats import Stopwatch
from thinwire.plans import Plan
from thinwire.protocols import Wire
from thinwire.roll_call import Record, What, announce, describe, hear
from thinwire.types import Observation, Selection, index_dtype
from thinwire.units import accumulation_dtype, is_finite


def depart_rows(cargo: Cargo, plan: Plan, ledger: Ledger, wire: Wire) -> Callable[[], Carried]:
    """Begin to bring one row-sparse gradient together; as `thinwire.carry.depart`.

    Args:
        cargo: A gradient in sparse COO form with one sparse dimension, and its one parameter.
        plan: The plan in force, for the roll call only.
        ledger: Nothing is owed for it.
        wire: The ranks.

    Returns:
        What brings the mean, as a coalesced sparse tensor; one row of NaN if some rank's gradient is not finite.
    """
    watch = Stopwatch()
    mine, record, letter, failure = _prepare(cargo, plan, watch)
    announce(wire, record, letter)

    def arrive() -> Carried:
        before = wire.traffic
        with watch("exchange"):
            try:
                roll = hear(wire, record, plan)
            except PeerFailedError as error:
                raise error from failure
        like = cargo.gradient
        if roll.overflow:
            mean = _sparse(torch.zeros(1, dtype=torch.int64), torch.full((1, mine.width), torch.nan), like)
        else:
            with watch("mean"):
                expected = Expected(numel=mine.numel, width=mine.width, dtype=mine.values.dtype, turn=cargo.turn)
                mean = _mean([message.decode(each, expected) for each in roll.came_along], like)
        traffic = since(wire, before)
        seen = Observation(
            step=cargo.turn.step, group=cargo.turn.group, numel=mine.numel, sent=mine.count * mine.width,
            bytes_sent=traffic.bytes_sent, rounds=traffic.rounds, seconds=dict(watch.seconds),
        )  # fmt: skip
        return Carried(mean=mean, seen=seen, overflow=bool(roll.overflow))

    return arrive


def _prepare(cargo: Cargo, plan: Plan, watch: Stopwatch) -> tuple[Selection, Record, Tensor, Exception | None]:
    """The local half. What goes wrong here is told to all in the roll call."""
    record = cargo.record(plan, What.ROWS)
    mine, letter = Selection(None, torch.empty(0), 0), torch.empty(0, dtype=torch.uint8)
    try:
        with watch("select"):
            mine = _rows(cargo.gradient)
            finite = is_finite(mine.values)
        with watch("encode"):
            if finite:
                letter = message.encode(mine, Delta(), cargo.turn)
    except Exception as error:
        return mine, replace(record, failure=describe(error)), letter, error
    return mine, replace(record, letter=letter.numel(), overflow=not finite), letter, None


def _rows(gradient: Tensor) -> Selection:
    """The touched rows as units as wide as a row."""
    if gradient.layout != torch.sparse_coo or gradient.sparse_dim() != 1:
        raise ThinwireError(
            f"a sparse gradient of layout {gradient.layout} and shape {tuple(gradient.shape)}: only COO tensors with "
            f"one sparse dimension, as of nn.Embedding(sparse=True), can be synchronised; make the parameter dense"
        )
    rows = gradient.detach().coalesce()
    width = math.prod(gradient.shape[1:])
    indices = rows.indices()[0].to(index_dtype(gradient.shape[0]))
    values = rows.values().reshape(-1).to(accumulation_dtype(gradient.dtype))
    return Selection(indices, values, math.prod(gradient.shape), width)


def _mean(parts: list[Selection], like: Tensor) -> Tensor:
    """Add up row by row, in rank order."""
    width = parts[0].width
    every = torch.cat([part.indices.long() for part in parts])
    touched, place = torch.unique(every, sorted=True, return_inverse=True)
    sums = torch.zeros(touched.numel(), width, dtype=parts[0].values.dtype)
    start = 0
    for part in parts:
        sums.index_add_(0, place[start : start + part.count], part.values.view(-1, width))
        start += part.count
    return _sparse(touched, sums.div_(len(parts)), like)


def _sparse(rows: Tensor, values: Tensor, like: Tensor) -> Tensor:
    """A coalesced sparse tensor; the rows were checked when they were decoded."""
    shaped = values.to(like.dtype).view(-1, *like.shape[1:]).to(like.device)
    return torch.sparse_coo_tensor(
        rows.unsqueeze(0).to(like.device), shaped, like.shape, is_coalesced=True, check_invariants=True
    )
