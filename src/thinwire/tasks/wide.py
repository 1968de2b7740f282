"""A wide network over bytes, as large as people's models: for studies of step time, on text that is always there."""

import math
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn import functional

from thinwire.tasks.byte_lm import Corpus
from thinwire.tasks.task import Task

_CONTEXT, _EMBEDDED = 32, 32


class Wide(Task):
    """Predict the next byte from the last 32 with three wide layers: as many parameters as a ResNet-50.

    Args:
        size: Windows for each rank and step.
        width: Of the hidden layers.
        questions: Held-out windows to examine the model on.
    """

    name = "wide"
    about = "a wide network of 26 million parameters on the Python standard library's own sources, with SGD"
    unit = "bits/byte"
    counted = "tokens"
    steps = 40
    rate = 0.05
    _WIDTH = 4480

    def __init__(self, *, size: int = 16, width: int = 0, questions: int = 256) -> None:
        self.size = size
        self.width = width or self._WIDTH
        self.questions = questions

    @cached_property
    def corpus(self) -> Corpus:
        """The text, read when it is needed first."""
        return Corpus.standard_library()

    def model(self, *, rows: bool) -> nn.Module:
        """An embedding, two wide layers and a head.

        Args:
            rows: Of no use here.
        """
        return _Network(self.width)

    def batch(self, turn: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """Windows of text.

        Args:
            turn: Seed, step and rank.
        """
        return (self.corpus.batch(turn, self.size, _CONTEXT),)

    @property
    def samples(self) -> int:
        """Bytes that are predicted: one for each window."""
        return self.size

    def optimizer(self, model: nn.Module, rate: float) -> torch.optim.SGD:
        """SGD with momentum: the least memory beside a model of this size.

        Args:
            model: From `model`.
            rate: Peak learning rate.
        """
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def examine(self, model: nn.Module) -> float:
        """Bits per byte of held-out text.

        Args:
            model: From `model`.
        """
        windows = self.corpus.examination(self.questions, _CONTEXT)
        total: float = sum(model(part).item() * len(part) for part in torch.split(windows, 64))
        return total / len(windows) / math.log(2)

    def shown(self, loss: float) -> float:
        """Nats as bits.

        Args:
            loss: What the model returned.
        """
        return loss / math.log(2)


class Wider(Wide):
    """The same with as many parameters as the small GPT-2. It needs about 2 GB of memory for each rank and method."""

    name = "wider"
    about = "a wide network of 124 million parameters on the Python standard library's own sources, with SGD"
    steps = 20
    _WIDTH = 10_500


class _Network(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.byte = nn.Embedding(256, _EMBEDDED)
        self.first = nn.Linear(_CONTEXT * _EMBEDDED, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, 256)

    def forward(self, text: Tensor) -> Tensor:
        seen = self.byte(text[:, :-1]).flatten(1)
        logits = self.head(functional.relu(self.second(functional.relu(self.first(seen)))))
        loss: Tensor = functional.cross_entropy(logits, text[:, -1])
        return loss
