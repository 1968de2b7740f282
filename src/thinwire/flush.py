"""Deliver everything that is still owed, densely: before a resize, or at the end of training."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.protocols import Wire
from thinwire.roll_call import Record, What, call_roll, in_step
from thinwire.types import Turn
from thinwire.units import accumulation_dtype

_CHUNK = 4 << 20
"""Elements of one exchange: large enough for the wire, small enough to need little memory."""


def mean_debts(
    parameters: Mapping[str, Tensor], ledger: Ledger, plan: Plan, turn: Turn, wire: Wire
) -> dict[str, Tensor]:
    """The mean over the ranks of every parameter's debt; nothing is changed yet.

    Args:
        parameters: Every parameter that may owe, the same on every rank, in the same order.
        ledger: What is owed.
        plan: The plan in force, for the roll call.
        turn: Where in the run this is.
        wire: The ranks.

    Returns:
        For every parameter a flat tensor of its accumulation type, in units of the ledger's loss scale; empty if
        nobody owes anything.

    Raises:
        SyncError: The ranks do not agree, or one failed.
    """
    owed = ledger.owed()
    means: dict[str, Tensor] = {}
    for number, names in enumerate(_chunks(parameters)):
        dtype = accumulation_dtype(parameters[names[0]].dtype)
        debts = [owed[n] if n in owed else torch.zeros(parameters[n].numel(), dtype=dtype) for n in names]
        layout = Layout.of({name: parameters[name].numel() for name in names})
        record = Record(
            what=What.FLUSH, rank=turn.rank, world=turn.world, generation=turn.generation, step=turn.step, group=number,
            numel=layout.numel, layout=layout.fingerprint, plan=plan.fingerprint, loss_scale=ledger.scale,
            owing=any(name in owed for name in names),
        )  # fmt: skip
        if call_roll(wire, record, plan).owing:
            with in_step(wire, 1):
                mean = wire.all_reduce(torch.cat(debts) * (1.0 / wire.world))
            means.update({span.name: mean[span.start : span.stop] for span in layout.spans})
    return means


def deliver(name: str, parameter: Tensor, mean: Tensor, ledger: Ledger) -> Tensor:
    """Write a flushed debt into ``grad``, without the loss scale; what its type rounds off stays owed.

    Args:
        name: The parameter.
        parameter: Itself.
        mean: The mean of what all ranks owed for it.
        ledger: What is owed.

    Returns:
        The new ``grad``.
    """
    plain = (mean / ledger.scale).to(parameter.dtype)
    ledger.settle(name, mean - plain.to(mean.dtype) * ledger.scale)
    # Debts lie in the order of the parameter's memory, which is DDP's order in a bucket.
    delivered = torch.empty_like(parameter)
    delivered.as_strided((delivered.numel(),), (1,)).copy_(plain)
    parameter.grad = delivered
    return delivered


def _chunks(parameters: Mapping[str, Tensor]) -> Iterator[list[str]]:
    """Names of neighbouring parameters of one accumulation type, so many elements at a time."""
    chunk: list[str] = []
    size = 0
    for name, parameter in parameters.items():
        same = not chunk or accumulation_dtype(parameter.dtype) == accumulation_dtype(parameters[chunk[0]].dtype)
        if chunk and (size + parameter.numel() > _CHUNK or not same):
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += parameter.numel()
    if chunk:
        yield chunk
