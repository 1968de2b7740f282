"""Fashion-MNIST: 60 000 grey pictures of clothes in ten classes, and a small convolutional network with SGD."""

import gzip
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from thinwire.tasks.found import find
from thinwire.tasks.task import DataError, Task

_HOW = "On Debian and Ubuntu write apt-get install dataset-fashion-mnist; torchvision's FashionMNIST files do as well"
_PLACES = (Path("/usr/share/datasets/fashion-mnist"),)
_TYPES = {0x08: np.uint8}


class Fashion(Task):
    """Classify clothes.

    Args:
        size: Pictures for each rank and step.
        questions: Test pictures to examine the model on.
        width: Channels of the first layer.
    """

    name = "fashion"
    about = "a small convolutional network on Fashion-MNIST, with SGD and momentum"
    unit = "% errors"
    counted = "pictures"
    steps = 600
    rate = 0.05

    def __init__(self, *, size: int = 32, questions: int = 2000, width: int = 32) -> None:
        self.size = size
        self.questions = questions
        self.width = width

    @cached_property
    def training(self) -> tuple[Tensor, Tensor]:
        """Pictures and classes."""
        return _read("train")

    @cached_property
    def held_out(self) -> tuple[Tensor, Tensor]:
        """Pictures and classes that are never trained on."""
        return _read("t10k")

    def model(self, *, rows: bool) -> nn.Module:
        """Two convolutions and two dense layers, about 0.8 million parameters.

        Args:
            rows: Of no use here.
        """
        return _Network(self.width)

    def batch(self, turn: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """Random pictures with their classes.

        Args:
            turn: Seed, step and rank.
        """
        pictures, classes = self.training
        chosen = torch.from_numpy(np.random.default_rng(turn).integers(0, len(classes), self.size))
        return pictures[chosen].float() / 255, classes[chosen]

    @property
    def samples(self) -> int:
        """Pictures."""
        return self.size

    def optimizer(self, model: nn.Module, rate: float) -> torch.optim.SGD:
        """SGD with momentum.

        Args:
            model: From `model`.
            rate: Peak learning rate.
        """
        return torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4)

    def examine(self, model: nn.Module) -> float:
        """Percent of test pictures put into the wrong class.

        Args:
            model: From `model`.
        """
        assert isinstance(model, _Network)
        pictures, classes = (part[: self.questions] for part in self.held_out)
        parts = zip(torch.split(pictures, 500), torch.split(classes, 500), strict=True)
        guesses = ((model.scores(some.float() / 255).argmax(1), right) for some, right in parts)
        wrong: float = sum((guess != right).sum().item() for guess, right in guesses)
        return 100.0 * wrong / len(classes)


class _Network(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, width, 5, padding=2, stride=2)
        self.second = nn.Conv2d(width, 2 * width, 3, padding=1, stride=2)
        self.hidden = nn.Linear(2 * width * 49, 256)
        self.head = nn.Linear(256, 10)

    def forward(self, pictures: Tensor, classes: Tensor) -> Tensor:
        loss: Tensor = functional.cross_entropy(self.scores(pictures), classes)
        return loss

    def scores(self, pictures: Tensor) -> Tensor:
        seen = functional.relu(self.second(functional.relu(self.first(pictures[:, None]))))
        scores: Tensor = self.head(functional.relu(self.hidden(seen.flatten(1))))
        return scores


def _read(part: str) -> tuple[Tensor, Tensor]:
    pictures = read_idx(_find(f"{part}-images-idx3-ubyte"))
    classes = read_idx(_find(f"{part}-labels-idx1-ubyte"))
    if len(pictures) != len(classes):
        raise DataError(f"Fashion-MNIST has {len(pictures)} pictures and {len(classes)} classes; get the files anew")
    return pictures, classes.long()


def _find(name: str) -> Path:
    below = ("fashion-mnist", "FashionMNIST/raw", "usr/share/datasets/fashion-mnist")
    return find("Fashion-MNIST", [*(f"{folder}/{name}" for folder in below), name], _PLACES, _HOW)


def read_idx(path: Path) -> Tensor:
    """A file in the IDX format of MNIST: bytes only, compressed or not.

    Args:
        path: Of the file.

    Returns:
        What is in it, in its shape.

    Raises:
        DataError: It is no such file.
    """
    try:
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        kind = _TYPES[text[2]]
        sizes = np.frombuffer(text, ">u4", text[3], 4).astype(int)
        values = np.frombuffer(text, kind, offset=4 + 4 * len(sizes))
        return torch.from_numpy(values.reshape(tuple(sizes)).copy())
    except (OSError, EOFError, ValueError, KeyError, IndexError) as error:
        raise DataError(f"{path} is no IDX file of bytes ({error}); get it anew") from error
