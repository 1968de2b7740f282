"""How well a model trains under a plan, and what that costs on the wire."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from thinwire.plans import Plan
from thinwire.tasks.byte_lm import Corpus
from thinwire.tasks.simulated import Job, Simulation


@dataclass(frozen=True, kw_only=True)
class Runner:
    """One way to train.

    Attributes:
        name: For tables.
        plan: The plan of each step, of how many steps.
        optimizer: Made for the model; without first moment where the ranks keep a velocity of their own (momentum
            correction).
    """

    name: str
    plan: Callable[[int, int], Plan]
    optimizer: Callable[[nn.Module], torch.optim.Optimizer]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one run.

    Attributes:
        name: The runner's.
        seed: Of weights and batches.
        bits: Loss on held-out text at the end, in bits per byte.
        bytes_sent: By the busiest rank of each step, over the whole run.
        last_bytes: In the last step alone.
        sent: The mean share of the elements that were sent.
        losses: The training loss of every tenth of the run, in bits per byte.
        plan: Of the last step.
    """

    name: str
    seed: int
    bits: float
    bytes_sent: int
    last_bytes: int
    sent: float
    losses: list[float]
    plan: str

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def train(runner: Runner, job: Job, corpus: Corpus | None = None) -> Outcome:
    """Train the byte-level language model on simulated ranks.

    Args:
        runner: How.
        job: What.
        corpus: The text, where several runs share it.

    Returns:
        How it ended.
    """
    run = Simulation(job, corpus)
    run.optimizer = runner.optimizer(run.model)
    losses: list[float] = []
    sent = last = 0.0
    for step in range(job.steps):
        before = run.bytes_sent
        seen = run.step(runner.plan(step, job.steps))
        last = run.bytes_sent - before
        sent += seen[0].sent / run.layout.numel
        losses.append(run.loss)
    tenth = max(1, job.steps // 10)
    means = [float(torch.tensor(losses[at : at + tenth]).mean()) for at in range(0, len(losses), tenth)]
    plan = str(runner.plan(job.steps - 1, job.steps))
    return Outcome(
        name=runner.name, seed=job.seed, bits=run.held_out_bits(512), bytes_sent=run.bytes_sent, last_bytes=int(last),
        sent=sent / job.steps, losses=means, plan=plan,
    )  # fmt: skip
