"""MovieLens-100k: who rates which film how. Large embedding tables of which each batch touches few rows.

Beside users and films there is a table of hashed crosses: a row for each pair of user and film and of a few of
their features, by a hash. It has most of the parameters, and a batch touches one row in a hundred or fewer.
"""

import math
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from thinwire.tasks.found import find
from thinwire.tasks.task import DataError, Task

_HOW = (
    "The package recbole ships it (pip download --no-deps recbole, then unzip the wheel); GroupLens's own ml-100k.zip "
    "does as well. Mind GroupLens's terms of use"
)
_HELD_OUT = 10  # one rating in so many
_CROSSES = 4


class MovieLens(Task):
    """Predict ratings from embeddings.

    Args:
        size: Ratings for each rank and step.
        rows: Of the table of crosses.
        width: Of each embedding.
    """

    name = "movielens"
    about = "embeddings with hashed crosses on MovieLens-100k, with Adagrad"
    unit = "RMSE"
    counted = "ratings"
    steps = 500
    rate = 0.05

    def __init__(self, *, size: int = 256, rows: int = 1 << 17, width: int = 16) -> None:
        self.size = size
        self.rows = rows
        self.width = width

    @cached_property
    def ratings(self) -> tuple[Tensor, Tensor]:
        """Users, films and rows of crosses; and the ratings."""
        return _read(self.rows)

    @cached_property
    def _parts(self) -> tuple[Tensor, Tensor]:
        """Which ratings are trained on, and which are held out: chosen once for all."""
        order = torch.from_numpy(np.random.default_rng(100_000).permutation(len(self.ratings[1])))
        cut = len(order) // _HELD_OUT
        return order[cut:], order[:cut]

    def model(self, *, rows: bool) -> nn.Module:
        """Three tables and a small network over their rows.

        Args:
            rows: Gradients of the tables come as rows.
        """
        torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call] # the warning
        return _Network(self.rows, self.width, sparse=rows)

    def batch(self, turn: tuple[int, int, int]) -> tuple[Tensor, ...]:
        """Random ratings.

        Args:
            turn: Seed, step and rank.
        """
        keys, stars = self.ratings
        training = self._parts[0]
        chosen = training[torch.from_numpy(np.random.default_rng(turn).integers(0, len(training), self.size))]
        return keys[chosen], stars[chosen]

    @property
    def samples(self) -> int:
        """Ratings."""
        return self.size

    def optimizer(self, model: nn.Module, rate: float) -> torch.optim.Adagrad:
        """Adagrad: without a first moment, and at home with rows.

        Args:
            model: From `model`.
            rate: Peak learning rate.
        """
        return torch.optim.Adagrad(model.parameters(), lr=rate, initial_accumulator_value=0.1)

    def examine(self, model: nn.Module) -> float:
        """The root mean squared error of held-out ratings, in stars.

        Args:
            model: From `model`.
        """
        keys, stars = self.ratings
        held_out = self._parts[1]
        total: float = sum(model(keys[part], stars[part]).item() * len(part) for part in torch.split(held_out, 2048))
        return math.sqrt(total / len(held_out))


class _Network(nn.Module):
    def __init__(self, rows: int, width: int, *, sparse: bool) -> None:
        super().__init__()
        self.users = nn.Embedding(1024, width, sparse=sparse)
        self.films = nn.Embedding(2048, width, sparse=sparse)
        self.crosses = nn.Embedding(rows, width, sparse=sparse)
        for table in (self.users, self.films, self.crosses):
            nn.init.normal_(table.weight, std=0.05)
        self.hidden = nn.Linear(3 * width, 64)
        self.head = nn.Linear(64, 1)

    def forward(self, keys: Tensor, stars: Tensor) -> Tensor:
        user, film, cross = self.users(keys[:, 0]), self.films(keys[:, 1]), self.crosses(keys[:, 2:]).sum(1)
        seen = functional.relu(self.hidden(torch.cat([user, film, cross], 1)))
        guess = 3.5 + self.head(seen).squeeze(1) + (user * film).sum(1)
        loss: Tensor = functional.mse_loss(guess, stars)
        return loss


def _read(rows: int) -> tuple[Tensor, Tensor]:
    path = _find()
    try:
        table = np.loadtxt(
            path, dtype=np.int64, skiprows=int(path.suffix == ".inter"), usecols=(0, 1, 2), max_rows=100_000
        )
        user, film, stars = table.T
        if not (user.min() > 0 and user.max() < 1024 and film.min() > 0 and film.max() < 2048):
            raise ValueError("numbers of users or films out of range")
    except ValueError as error:
        raise DataError(f"{path} is no table of users, films and ratings ({error}); get it anew") from error
    pairs = [(user, film), (user, film // 8), (user // 8, film), (user // 32, film // 32)]
    crosses = [_hash(turn, first, second) % rows for turn, (first, second) in enumerate(pairs[:_CROSSES])]
    keys = torch.from_numpy(np.stack([user, film, *crosses], 1))
    return keys, torch.from_numpy(stars).float()


def _hash(turn: int, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Multiplication and shift, which is the same on every machine."""
    mixed = (first.astype(np.uint64) << np.uint64(32)) + second.astype(np.uint64) + np.uint64(turn << 58)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    hashed: np.ndarray = ((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(8)).astype(np.int64)
    return hashed


def _find() -> Path:
    spec = find_spec("recbole")
    packages = [Path(place) / "dataset_example" for place in (spec.submodule_search_locations or [])] if spec else []
    names = ["ml-100k/ml-100k.inter", "ml-100k/u.data", "recbole/dataset_example/ml-100k/ml-100k.inter"]
    return find("MovieLens-100k", names, packages, _HOW)
