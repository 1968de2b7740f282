"""What a training task is, so that any of them can be trained by any method."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor, nn
from torch.optim import Optimizer

from thinwire.errors import ThinwireError


class DataError(ThinwireError, FileNotFoundError):
    """The data to train on are not there; the message says how to get them."""


class Task(ABC):
    """A model, its data and its optimizer.

    Everything follows from the seed, the step and the rank: two methods with the same seed start from the same
    weights and see the same batches in the same order. All losses and qualities are lower for better.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    """What is trained on what."""
    unit: ClassVar[str]
    """Of qualities."""
    counted: ClassVar[str]
    """What samples are."""
    steps: ClassVar[int]
    """A run that shows something in minutes."""
    rate: ClassVar[float]
    """Peak learning rate of dense training."""

    @abstractmethod
    def model(self, *, rows: bool) -> nn.Module:
        """A new model with weights from torch's generator.

        Args:
            rows: Gradients of embeddings may come as rows (``sparse=True``), if the task has any.

        Returns:
            A module whose ``forward`` takes a batch and returns the mean loss.
        """

    @abstractmethod
    def batch(self, turn: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """What one rank trains on in one step.

        Args:
            turn: Seed, step and rank. Equal turns give equal batches.
        """

    @property
    @abstractmethod
    def samples(self) -> int:
        """In a batch."""

    @abstractmethod
    def optimizer(self, model: nn.Module, rate: float) -> Optimizer:
        """What people would train this model with.

        Args:
            model: From `model`.
            rate: Peak learning rate.
        """

    @abstractmethod
    def examine(self, model: nn.Module) -> float:
        """The quality on data that are never trained on, always the same ones. Call it under ``no_grad``.

        Args:
            model: From `model`.
        """

    def shown(self, loss: float) -> float:
        """A training loss in the unit of the quality, where there is such a thing.

        Args:
            loss: What the model returned.
        """
        return loss

    def rate_at(self, step: int, steps: int, rate: float) -> float:
        """Warm up over a twentieth of the run, then follow a cosine down to a tenth.

        Args:
            step: From 0.
            steps: Of the whole run.
            rate: The peak.
        """
        warm_up = max(1, steps // 20)
        if step < warm_up:
            return rate * (step + 1) / warm_up
        done = (step - warm_up) / max(1, steps - warm_up)
        return rate * (0.55 + 0.45 * math.cos(math.pi * done))
