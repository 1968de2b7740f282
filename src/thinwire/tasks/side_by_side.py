"""Train the same model on the same batches under several plans at once, step by step in turn.

Taking turns in the same processes is what makes the seconds comparable: whatever else the machine does
meanwhile hits every plan alike.
"""

import hashlib
import math
import time
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire.lab.ranks import report
from thinwire.plans import Plan
from thinwire.tasks.byte_lm import ByteLM, Corpus, Shape, bits_per_byte, optimizer_for, rate_at

_SMOOTHING = 0.95
_REPORT_EVERY = 0.1  # seconds


@dataclass(frozen=True, kw_only=True)
class Race:
    """What to run.

    Attributes:
        plans: By name.
        steps: For each plan.
        seed: Of the initial weights and of the batches.
        shape: Of the model.
        batch: Windows for each rank and step.
        rate: Peak learning rate.
        questions: Held-out windows to examine the models on, shared out among the ranks.
    """

    plans: dict[str, Plan]
    steps: int
    seed: int = 0
    shape: Shape = field(default_factory=Shape)
    batch: int = 8
    rate: float = 4e-3
    questions: int = 512


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How one plan is doing, as one rank sees it.

    Attributes:
        step: Steps done.
        bits: Smoothed training loss of this rank's own batches, in bits per byte.
        bytes_sent: What this rank put on the wire.
        seconds: What its steps took: forward, backward, exchange and update.
    """

    step: int = 0
    bits: float = math.nan
    bytes_sent: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Finish:
    """How one plan ended, as one rank saw it.

    Attributes:
        last: The standing after the last step.
        held_out_bits: Loss on this rank's share of the held-out windows, in bits per byte.
        checksum: Of the bits of the final weights. Equal on every rank when the replicas are.
    """

    last: Standing
    held_out_bits: float
    checksum: str


def race(rank: int, world: int, job: Race) -> dict[str, Finish]:
    """Run in every rank: train all plans, taking turns. Rank 0 reports the standings as it goes.

    Args:
        rank: This one.
        world: How many there are.
        job: What to run.

    Returns:
        By plan.
    """
    corpus = Corpus.standard_library()
    runners = {name: _Runner(plan, job) for name, plan in job.plans.items()}
    order = list(runners.values())
    next_report = 0.0
    for step in range(job.steps):
        text = corpus.batch((job.seed, step, rank), job.batch, job.shape.context)
        for runner in order:
            runner.step(text, rate_at(step, job.steps, job.rate))
        order.append(order.pop(0))  # so that no plan always goes first
        if rank == 0 and (time.monotonic() >= next_report or step == job.steps - 1):
            report({name: runner.standing() for name, runner in runners.items()})
            next_report = time.monotonic() + _REPORT_EVERY
    share = corpus.examination(job.questions, job.shape.context)[rank::world]
    return {name: runner.finish(share) for name, runner in runners.items()}


class _Runner:
    """One plan's model, optimizer and figures."""

    def __init__(self, plan: Plan, job: Race) -> None:
        torch.manual_seed(job.seed)
        self.model = ByteLM(job.shape)
        self.ddp = DistributedDataParallel(self.model)
        self.optimizer = optimizer_for(self.model)
        self.sync = thinwire.attach(self.ddp, plan)
        self.steps = 0
        self.seconds = 0.0
        self.bits = math.nan

    def step(self, text: Tensor, rate: float) -> None:
        began = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        loss = self.ddp(text)
        loss.backward()
        self.optimizer.step()
        self.seconds += time.perf_counter() - began
        self.steps += 1
        bits = loss.item() / math.log(2)
        self.bits = bits if math.isnan(self.bits) else _SMOOTHING * self.bits + (1 - _SMOOTHING) * bits

    def standing(self) -> Standing:
        sent = self.sync.stats().total.bytes_sent
        return Standing(step=self.steps, bits=self.bits, bytes_sent=sent, seconds=self.seconds)

    def finish(self, questions: Tensor) -> Finish:
        bits = hashlib.sha256()
        for parameter in self.model.parameters():
            bits.update(parameter.detach().numpy().tobytes())
        finish = Finish(
            last=self.standing(),
            held_out_bits=bits_per_byte(self.model, questions),
            checksum=bits.hexdigest(),
        )
        self.sync.flush()  # Nobody steps any more, but a debt is never dropped silently.
        self.sync.detach()
        return finish
