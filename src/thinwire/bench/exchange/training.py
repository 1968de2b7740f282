"""From end to end: the same model, batches and optimizer for everybody, and a whole step is what is timed.

A step is forward, backward, exchange of the whole gradient and update, one behind the other: nobody's exchange overlaps
with the backward pass, since not every method could. Memories of what was not sent stay from step to step.
"""

import math
import struct

import torch
from torch import Tensor

from thinwire.bench.errors import BenchError
from thinwire.bench.exchange.arena import Arena, Sample
from thinwire.bench.exchange.method import Contestant, Message, Method
from thinwire.roll_call import swap
from thinwire.tasks.byte_lm import ByteLM, Bytes, Corpus, bits_per_byte

TASKS = ("byte_lm",)
_BATCH, _QUESTIONS, _RATE = 8, 256, 4e-3
_LOSS = struct.Struct("=d")


def check(task: str, steps: int) -> None:
    """Nothing, if that can be trained.

    Raises:
        BenchError: There is no such task, or no step.
    """
    if task not in TASKS:
        raise BenchError(f"there is no task {task!r}; write {' or '.join(TASKS)}")
    if steps < 1:
        raise BenchError(f"asked for {steps} steps; write 1 or more")


class Lessons:
    """The batches of all steps.

    Attributes:
        message: The parameters of the model.
        steps: How many.
    """

    def __init__(self, arena: Arena, steps: int) -> None:
        """Read the text."""
        self.steps = steps
        self._arena = arena
        self._corpus = Corpus.standard_library()
        model = ByteLM()
        self._context = model.context
        self.message = Message(tuple((name, tuple(each.shape)) for name, each in model.named_parameters()))

    def learner(self, one: Contestant) -> "Learner":
        """A model of its own for a contestant; all begin alike.

        Args:
            one: Who.
        """
        return Learner(one.make(self.message), self)

    def text(self, step: int) -> Tensor:
        """This rank's batch.

        Args:
            step: Which.
        """
        return self._corpus.batch((0, step, self._arena.wire.rank), _BATCH, self._context)

    def loss(self, learner: "Learner") -> float:
        """What a model has learnt: bits per byte on held-out text, which the ranks share out among them.

        Args:
            learner: Whose.
        """
        wire = self._arena.wire
        share = self._corpus.examination(_QUESTIONS, self._context)[wire.rank :: wire.world]
        notes = swap(wire, _LOSS.pack(bits_per_byte(learner.model, share)))
        return math.fsum(_LOSS.unpack(note)[0] for note in notes) / len(notes)


class Learner(Method):
    """A whole step of training as an exchange: its gradient comes from the model, and its mean goes into it.

    Attributes:
        model: What learns.
        samples: Of all steps so far.
    """

    def __init__(self, method: Method, lessons: Lessons) -> None:
        """Make the model; every learner's is the same."""
        super().__init__()
        torch.manual_seed(0)
        self.model = ByteLM()
        self.samples: list[Sample] = []
        self._task = Bytes()
        self._optimizer = self._task.optimizer(self.model, _RATE)
        self._method = method
        self._lessons = lessons

    def exchange(self, gradient: Tensor) -> Tensor:
        """Take one step; the argument is not used."""
        step = len(self.samples)
        parameters = list(self.model.parameters())
        for group in self._optimizer.param_groups:
            group["lr"] = self._task.rate_at(step, self._lessons.steps, _RATE)
        self._optimizer.zero_grad()
        self.model(self._lessons.text(step)).backward()
        own = torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None])
        with torch.no_grad():
            found = self._method.exchange(own)
        self.seconds = self._method.seconds
        mean = found if isinstance(found, Tensor) else torch.cat([part.reshape(-1) for part in found])
        for parameter, part in zip(parameters, self._lessons.message.parts(mean), strict=True):
            parameter.grad = part.to(parameter.dtype).clone()
        self._optimizer.step()
        return mean

    def forget(self) -> None:
        """Nothing: what is owed stays from step to step."""
