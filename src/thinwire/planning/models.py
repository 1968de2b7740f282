"""The shapes of a model's parameters: of well-known models, or from a file."""

import json
from collections.abc import Callable
from math import prod
from pathlib import Path

import torch

from thinwire.errors import PlanError

Shapes = tuple[tuple[int, ...], ...]

_BUCKET = 25 << 20
"""Bytes of one of DDP's buckets, as it makes them by default."""


def gpt2_small() -> Shapes:
    """GPT-2 with 124 million parameters; the embedding is also the output."""
    d = 768
    block = ((d,), (d,), (d, 3 * d), (3 * d,), (d, d), (d,), (d,), (d,), (d, 4 * d), (4 * d,), (4 * d, d), (d,))
    return ((50257, d), (1024, d), *(block * 12), (d,), (d,))


def resnet50() -> Shapes:
    """ResNet-50 with 25.6 million parameters."""
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    inside = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            before = inside if block == 0 else 4 * width
            for out, into, size in ((width, before, 1), (width, width, 3), (4 * width, width, 1)):
                shapes += [(out, into, size, size), (out,), (out,)]
            if block == 0:
                shapes += [(4 * width, before, 1, 1), (4 * width,), (4 * width,)]
        inside = 4 * width
    return (*shapes, (1000, 2048), (1000,))


MODELS: dict[str, Callable[[], Shapes]] = {"gpt2-small": gpt2_small, "resnet50": resnet50}
"""Well-known models by name."""


def shapes_of(model: str) -> Shapes:
    """The shapes of a model's parameters.

    Args:
        model: A name of `MODELS`; or a file: a state dict that ``torch.load`` reads, or JSON, a list of shapes or a
            dictionary of them.

    Raises:
        PlanError: There is no such model, or the file has no shapes.
    """
    if model in MODELS:
        return MODELS[model]()
    path = Path(model)
    if not path.is_file():
        known = ", ".join(MODELS)
        raise PlanError(f"there is no model {model!r}: neither a known one ({known}) nor a file of shapes")
    try:
        found = json.loads(path.read_text()) if path.suffix == ".json" else _state(path)
        every = list(found.values()) if isinstance(found, dict) else list(found)
        shapes = tuple(tuple(int(size) for size in shape) for shape in every)
    except Exception as error:
        raise PlanError(
            f"{model} holds no shapes ({type(error).__name__}: {error}); write [[768, 768], [768]]"
        ) from error
    if not shapes or any(size < 1 for shape in shapes for size in shape):
        raise PlanError(f"{model} holds no shapes; write for example [[768, 768], [768]]")
    return shapes


def _state(path: Path) -> list[tuple[int, ...]]:
    state = torch.load(path, map_location="meta", weights_only=True)
    state = state.get("model", state)
    return [tuple(tensor.shape) for tensor in state.values() if torch.is_tensor(tensor) and tensor.is_floating_point()]


def count(shapes: Shapes) -> int:
    """All parameters."""
    return sum(prod(shape) for shape in shapes)


def buckets(shapes: Shapes) -> tuple[int, ...]:
    """Elements of each of DDP's buckets, the last parameters first; its first bucket is one of 1 MiB."""
    sizes, size, limit = [], 0, 1 << 20
    for shape in reversed(shapes):
        size += prod(shape)
        if 4 * size >= limit:
            sizes.append(size)
            size, limit = 0, _BUCKET
    return (*sizes, size) if size else tuple(sizes)
