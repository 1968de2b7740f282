"""All ranks of a training run in one process: one model, every rank's own gradient in turn, the real way between them.

For studies of quality: debts, selection, messages, sums and the bytes on the wire are those of a real run, and only
time is not. One model does for all ranks, because every rank gets the same mean and takes the same step.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from thinwire.carry import Cargo, Carried, carry
from thinwire.errors import SyncError
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.plans import Plan
from thinwire.tasks.byte_lm import ByteLM, Corpus, Shape, bits_per_byte, optimizer_for, rate_at
from thinwire.types import Observation, Turn


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to train.

    Attributes:
        steps: Of the whole run; the learning rate follows from it.
        world: How many ranks.
        seed: Of the initial weights and of the batches.
        shape: Of the model.
        batch: Windows for each rank and step.
        rate: Peak learning rate.
    """

    steps: int
    world: int = 4
    seed: int = 0
    shape: Shape = field(default_factory=Shape)
    batch: int = 8
    rate: float = 4e-3


class Simulation:
    """One run, step by step.

    Attributes:
        model: The model that all ranks have.
        optimizer: Its AdamW; replace it before the first step for another.
        layout: Where each parameter lies in a flat gradient.
        ledgers: Every rank's debts.
        steps: Steps done.
        bytes_sent: What the busiest rank has put on the wire: letters, values, headers and roll calls.
        loss: The mean loss of the last step's batches, in bits per byte.
    """

    def __init__(self, job: Job, corpus: Corpus | None = None) -> None:
        """Make the model; the corpus may be shared among runs."""
        self.job = job
        self.corpus = corpus if corpus is not None else Corpus.standard_library()
        torch.manual_seed(job.seed)
        self.model = ByteLM(job.shape)
        self.optimizer: torch.optim.Optimizer = optimizer_for(self.model)
        self.parameters = dict(self.model.named_parameters())
        self.layout = Layout.of({name: parameter.numel() for name, parameter in self.parameters.items()})
        self.ledgers = [Ledger() for _ in range(job.world)]
        self.steps = 0
        self.bytes_sent = 0
        self.loss = math.nan

    def gradients(self) -> list[Tensor]:
        """Every rank's own gradient at the present weights, flat."""
        found, losses = [], []
        for rank in range(self.job.world):
            text = self.corpus.batch((self.job.seed, self.steps, rank), self.job.batch, self.job.shape.context)
            self.model.zero_grad()
            loss = self.model(text)
            loss.backward()
            losses.append(loss.item())
            grads = (parameter.grad for parameter in self.parameters.values())
            found.append(torch.cat([grad.reshape(-1) for grad in grads if grad is not None]))
        self.loss = sum(losses) / len(losses) / math.log(2)
        return found

    def debts(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """What every rank owes with this gradient, before anything is selected: old debts plus gradient."""
        found = []
        for ledger, gradient in zip(self.ledgers, gradients, strict=True):
            owed = ledger.owed()
            old = [owed.get(span.name) for span in self.layout.spans]
            known = [part for part in old if part is not None]
            found.append(torch.cat(known) + gradient if len(known) == len(old) else gradient)
        return found

    def step(self, plan: Plan, gradients: Sequence[Tensor] | None = None) -> list[Observation]:
        """Bring the gradients together by a plan, and take one step of the optimizer.

        Args:
            plan: May be another one in every step.
            gradients: Of `gradients`, if they were looked at before.

        Returns:
            What each rank saw.

        Raises:
            SyncError: A part of the plan failed, or a gradient was not finite.
        """
        mine = self.gradients() if gradients is None else gradients
        carried = run_threads(self._rank, self.job.world, plan, mine)
        for each in carried:
            if not isinstance(each, Carried):
                raise SyncError(f"step {self.steps} of the simulation failed under {plan}") from each
            if each.overflow:
                raise SyncError(f"step {self.steps} of the simulation has a gradient that is not finite")
            if each.page is not None:
                each.page.commit()
        for ledger in self.ledgers:
            ledger.steps += 1
        self.bytes_sent += max(each.seen.bytes_sent for each in carried)
        for span, parameter in zip(self.layout.spans, self.parameters.values(), strict=True):
            parameter.grad = carried[0].mean[span.start : span.stop].view_as(parameter).clone()
        for group in self.optimizer.param_groups:
            group["lr"] = rate_at(self.steps, self.job.steps, self.job.rate)
        self.optimizer.step()
        self.steps += 1
        return [each.seen for each in carried]

    def _rank(self, wire: ThreadWire, plan: Plan, gradients: Sequence[Tensor]) -> Carried:
        ledger = self.ledgers[wire.rank]
        turn = Turn(step=ledger.steps, group=0, rank=wire.rank, world=wire.world)
        return carry(Cargo(gradient=gradients[wire.rank], layout=self.layout, turn=turn), plan, ledger, wire)

    def held_out_bits(self, questions: int = 256) -> float:
        """The loss on text that the model never saw, in bits per byte."""
        return bits_per_byte(self.model, self.corpus.examination(questions, self.job.shape.context))
