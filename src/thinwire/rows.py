"""Row-sparse gradients (``nn.Embedding(sparse=True)``): one index for each touched row, and never densified.

DDP hands each of them over as a bucket of its own holding a sparse COO tensor. They are sparse by nature, so they
are sent whole, whatever the plan: selected by their own coordinates, and summed row by row. They meet in the plan's
own exchange if that adds up rows on their way (owner-reduce, recursive doubling) and there are ranks enough for it to
pay: between two, an owner's way is never shorter than telling each other everything. In all other cases rows are
delta-coded and sent to all along with the roll call. (Gloo's own sparse all-reduce sends 24 bytes of index for each
element and is unreliable.)
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from thinwire import message
from thinwire.carry import Cargo, Carried, since
from thinwire.codecs import Cheapest, Delta
from thinwire.errors import PeerFailedError, ThinwireError
from thinwire.ledger import Ledger
from thinwire.message import Expected
from thinwire.observe.stats import Stopwatch
from thinwire.plans import Plan
from thinwire.protocols import Exchange, Outgoing, Wire
from thinwire.roll_call import Record, Roll, What, announce, describe, hear, in_step
from thinwire.types import Delivery, Observation, Selection, index_dtype
from thinwire.units import accumulation_dtype, is_finite


def depart_rows(cargo: Cargo, plan: Plan, ledger: Ledger, wire: Wire) -> Callable[[], Carried]:
    """Begin to bring one row-sparse gradient together; as `thinwire.carry.depart`.

    Args:
        cargo: A gradient in sparse COO form with one sparse dimension, and its one parameter.
        plan: The plan in force, of which only the exchange matters here.
        ledger: Nothing is owed for it.
        wire: The ranks.

    Returns:
        What brings the mean, as a coalesced sparse tensor; one row of NaN if some rank's gradient is not finite.
    """
    watch = Stopwatch()
    exchange = exchange_for_rows(plan, wire.world)
    mine, record, letter, failure = _prepare(cargo, plan, exchange, watch)
    announce(wire, record, None if exchange is not None else letter)

    def arrive() -> Carried:
        before = wire.traffic
        with watch("exchange"):
            try:
                roll = hear(wire, record, plan)
            except PeerFailedError as error:
                raise error from failure
        like, finite = cargo.gradient, True
        if roll.overflow:
            mean = _sparse(torch.zeros(1, dtype=torch.int64), torch.full((1, mine.width), torch.nan), like)
        else:
            with watch("exchange"):
                delivery = _meet(cargo, mine, exchange, roll, wire)
            with watch("mean"):
                mean, finite = _mean(delivery, like)
        traffic = since(wire, before)
        seen = Observation(
            step=cargo.turn.step, group=cargo.turn.group, numel=mine.numel, sent=mine.count * mine.width,
            bytes_sent=traffic.bytes_sent, rounds=traffic.rounds, seconds=dict(watch.seconds),
        )  # fmt: skip
        return Carried(mean=mean, seen=seen, overflow=bool(roll.overflow) or not finite)

    return arrive


def exchange_for_rows(plan: Plan, world: int) -> Exchange | None:
    """How rows meet under a plan; None if they come along with the roll call."""
    adds_on_the_way = not plan.exchange.needs_shared and plan.exchange.depends_on_data
    return plan.exchange if adds_on_the_way and world > 2 else None


def _meet(cargo: Cargo, mine: Selection, exchange: Exchange | None, roll: Roll, wire: Wire) -> Delivery:
    """Everybody's rows, or their sums."""
    if exchange is None:
        expected = Expected(numel=mine.numel, width=mine.width, dtype=mine.values.dtype, turn=cargo.turn)
        return Delivery([message.decode(each, expected) for each in roll.came_along], wire.world)
    outgoing = Outgoing(
        selection=mine, room=torch.empty(0), shared=False, letter=torch.empty(0, dtype=torch.uint8),
        sizes=roll.letters, turn=cargo.turn, codec=Cheapest(),
    )  # fmt: skip
    with in_step(wire, exchange.calls(wire.world)):
        return exchange.deliver(outgoing, wire)


def _prepare(
    cargo: Cargo, plan: Plan, exchange: Exchange | None, watch: Stopwatch
) -> tuple[Selection, Record, Tensor, Exception | None]:
    """The local half. What goes wrong here is told to all in the roll call."""
    record = cargo.record(plan, What.ROWS)
    mine, letter = Selection(None, torch.empty(0), 0), torch.empty(0, dtype=torch.uint8)
    try:
        with watch("select"):
            mine = _rows(cargo.gradient)
            finite = is_finite(mine.values)
        with watch("encode"):
            if finite and exchange is None:
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


def _mean(delivery: Delivery, like: Tensor) -> tuple[Tensor, bool]:
    """Add up row by row, in rank order; and whether all of it is finite."""
    parts, width = delivery.parts, delivery.parts[0].width
    every = torch.cat([part.indices.long() for part in parts])
    touched, place = torch.unique(every, sorted=True, return_inverse=True)
    sums = torch.zeros(touched.numel(), width, dtype=parts[0].values.dtype)
    start = 0
    for part in parts:
        sums.index_add_(0, place[start : start + part.count], part.values.view(-1, width))
        start += part.count
    sums.div_(delivery.divisor)
    return _sparse(touched, sums, like), is_finite(sums.view(-1))


def _sparse(rows: Tensor, values: Tensor, like: Tensor) -> Tensor:
    """A coalesced sparse tensor; the rows were checked when they were decoded."""
    shaped = values.to(like.dtype).view(-1, *like.shape[1:]).to(like.device)
    return torch.sparse_coo_tensor(
        rows.unsqueeze(0).to(like.device), shaped, like.shape, is_coalesced=True, check_invariants=True
    )
