"""A byte-level language model of the Python standard library's own sources.

The text needs no download, the model trains in seconds on one core, and the task tells good gradient
compression from bad: an adaptive optimizer reacts to what is left out. Loss is in bits per byte: 8 is
guessing, a few hundred steps reach about 3.
"""

import hashlib
import math
import sysconfig
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from thinwire.tasks.task import DataError, Task

_HELD_OUT = 10  # one file in so many
_GENERATED = "_sysconfigdata"  # build settings of this interpreter, not prose


class CorpusError(DataError):
    """The text to train on is not there."""


@dataclass(frozen=True)
class Corpus:
    """Text as bytes, in two parts that share no file.

    Attributes:
        training: What batches are drawn from, as a vector of uint8.
        held_out: What the model never trains on.
    """

    training: Tensor
    held_out: Tensor

    @classmethod
    def standard_library(cls, limit: int = 4_000_000, folder: str | Path | None = None) -> Self:
        """Read the top level of the standard library, in the order of a hash of the file names.

        Args:
            limit: Bytes to stop at.
            folder: Where to look, instead of the running interpreter's own library.

        Returns:
            The corpus: about one file in ten is held out, chosen by name.

        Raises:
            CorpusError: There is too little source text, as in an interpreter shipped without its sources.
        """
        folder = Path(folder or sysconfig.get_path("stdlib"))
        parts: tuple[list[bytes], list[bytes]] = ([], [])
        size = 0
        for path in sorted(folder.glob("*.py"), key=_order):
            if path.name.startswith(_GENERATED) or size >= limit:
                continue
            text = path.read_bytes()[: limit - size]
            size += len(text)
            parts[_order(path) % _HELD_OUT == 0].append(text)
        training, held_out = (b"".join(texts) for texts in parts)
        if min(len(training), len(held_out)) < 10_000:
            raise CorpusError(
                f"looked for Python sources in {folder} and found {size} bytes; "
                "name a folder with at least 100 kB of *.py files"
            )
        return cls(_as_tensor(training), _as_tensor(held_out))

    def batch(self, turn: tuple[int, int, int], size: int, context: int) -> Tensor:
        """Draw random windows of the training text.

        Args:
            turn: Seed, step and rank. Equal turns draw equal windows.
            size: How many windows.
            context: Their length, less one: the last byte is only predicted.

        Returns:
            Bytes as int64, of shape ``(size, context + 1)``.
        """
        starts = np.random.default_rng(turn).integers(0, len(self.training) - context, size)
        return _windows(self.training, torch.from_numpy(starts), context)

    def examination(self, size: int, context: int) -> Tensor:
        """Take windows evenly spread over the held-out text, always the same ones.

        Args:
            size: How many windows.
            context: As in `batch`.

        Returns:
            Bytes as int64, of shape ``(size, context + 1)``.
        """
        starts = torch.linspace(0, len(self.held_out) - context - 1, size, dtype=torch.float64).long()
        return _windows(self.held_out, starts, context)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The size of a `ByteLM`.

    Attributes:
        width: Of the residual stream.
        layers: How many blocks.
        heads: Of attention. Divides the width.
        context: The most bytes it can look back on.
    """

    width: int = 128
    layers: int = 3
    heads: int = 4
    context: int = 96


class ByteLM(nn.Module):
    """A causal transformer over bytes.

    Args:
        shape: Its size.
    """

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        shape = shape or Shape()
        self.context = shape.context
        self.byte = nn.Embedding(256, shape.width)
        self.place = nn.Embedding(shape.context, shape.width)
        self.blocks = nn.Sequential(*(_Block(shape.width, shape.heads) for _ in range(shape.layers)))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, 256)

    def forward(self, text: Tensor) -> Tensor:
        """Predict every next byte.

        Args:
            text: Bytes as int64, of shape ``(batch, context + 1)``.

        Returns:
            The mean loss in nats, a scalar.
        """
        seen, wanted = text[:, :-1], text[:, 1:]
        stream = self.byte(seen) + self.place.weight[: seen.shape[1]]
        logits = self.head(self.norm(self.blocks(stream)))
        loss: Tensor = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        return loss


class _Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, stream: Tensor) -> Tensor:
        batch, length, width = stream.shape
        joint = self.query_key_value(self.norm_attention(stream))
        query, key, value = joint.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + self.attended(mixed.transpose(1, 2).reshape(batch, length, width))
        thought: Tensor = self.mlp(self.norm_mlp(stream))
        return stream + thought


def bits_per_byte(model: nn.Module, windows: Tensor, batch: int = 32) -> float:
    """Measure a model on given text.

    Args:
        model: A `ByteLM`, or anything with its signature.
        windows: From `Corpus.examination`.
        batch: How many windows at once.

    Returns:
        The mean loss, in bits per byte.
    """
    with torch.no_grad():
        total: float = sum(model(part).item() * len(part) for part in torch.split(windows, batch))
    return total / len(windows) / math.log(2)


class Bytes(Task):
    """Predict the next byte of Python's own sources with a small transformer and AdamW.

    Args:
        shape: Of the model.
        size: Windows for each rank and step.
        questions: Held-out windows to examine the model on.
    """

    name = "bytes"
    about = "a byte-level transformer on the Python standard library's own sources, with AdamW"
    unit = "bits/byte"
    counted = "tokens"
    steps = 400
    rate = 4e-3

    def __init__(self, shape: Shape | None = None, *, size: int = 8, questions: int = 128) -> None:
        self.shape = shape or Shape()
        self.size = size
        self.questions = questions

    @cached_property
    def corpus(self) -> Corpus:
        """The text, read when it is needed first."""
        return Corpus.standard_library()

    def model(self, *, rows: bool) -> nn.Module:
        """A `ByteLM`.

        Args:
            rows: Of no use here.
        """
        return ByteLM(self.shape)

    def batch(self, turn: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """Windows of text.

        Args:
            turn: Seed, step and rank.
        """
        return (self.corpus.batch(turn, self.size, self.shape.context),)

    @property
    def samples(self) -> int:
        """Bytes that are predicted."""
        return self.size * self.shape.context

    def optimizer(self, model: nn.Module, rate: float) -> torch.optim.AdamW:
        """AdamW: what people train transformers with, and a hard case for compression.

        Args:
            model: From `model`.
            rate: Peak learning rate.
        """
        return torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)

    def examine(self, model: nn.Module) -> float:
        """Bits per byte of held-out text.

        Args:
            model: From `model`.
        """
        return bits_per_byte(model, self.corpus.examination(self.questions, self.shape.context))

    def shown(self, loss: float) -> float:
        """Nats as bits.

        Args:
            loss: What the model returned.
        """
        return loss / math.log(2)


def _order(path: Path) -> int:
    return int.from_bytes(hashlib.sha256(path.name.encode()).digest()[:8])


def _as_tensor(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _windows(text: Tensor, starts: Tensor, context: int) -> Tensor:
    return text[starts[:, None] + torch.arange(context + 1)].long()
