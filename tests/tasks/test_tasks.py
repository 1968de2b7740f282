"""Tasks: the same seed gives the same weights and batches, models learn, and what is missing is said."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from thinwire.errors import PlanError
from thinwire.tasks import TASKS, found, make_task
from thinwire.tasks.fashion import read_idx
from thinwire.tasks.movielens import MovieLens
from thinwire.tasks.task import DataError, Task

SMALL = {
    "bytes": {"size": 2, "questions": 8},
    "fashion": {"size": 16, "questions": 100, "width": 4},
    "movielens": {"size": 32, "rows": 1000, "width": 4},
    "wide": {"size": 4, "width": 64, "questions": 8},
    "wider": {"size": 4, "width": 64, "questions": 8},
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with small files in the formats of the real ones: classes follow from pictures, stars from users."""
    random = np.random.default_rng(0)
    monkeypatch.setenv(found.VARIABLE, str(tmp_path))
    pictures = tmp_path / "fashion-mnist"
    pictures.mkdir()
    for part, count in (("train", 300), ("t10k", 100)):
        classes = random.integers(0, 10, count, dtype=np.uint8)
        grey = np.zeros((count, 28, 28), np.uint8)
        grey[np.arange(count), classes] = 255
        head = bytes([0, 0, 8, 3]) + np.array([count, 28, 28], ">u4").tobytes()
        (pictures / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + grey.tobytes()))
        head = bytes([0, 0, 8, 1]) + np.array([count], ">u4").tobytes()
        (pictures / f"{part}-labels-idx1-ubyte").write_bytes(head + classes.tobytes())
    ratings = tmp_path / "ml-100k"
    ratings.mkdir()
    users, films = random.integers(1, 900, 500), random.integers(1, 1600, 500)
    lines = [f"{user}\t{film}\t{1 + user % 5}\t0" for user, film in zip(users, films, strict=True)]
    (ratings / "u.data").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.mark.parametrize("name", TASKS)
def test_the_same_seed_is_the_same_training(name: str, data: Path) -> None:
    assert set(SMALL) == set(TASKS)
    made: Task = make_task(name, **SMALL[name])
    weights = []
    for _ in range(2):
        torch.manual_seed(1)
        model = made.model(rows=False)
        optimizer = made.optimizer(model, made.rate)
        for step in range(3):
            loss = model(*made.batch((1, step, 0)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert torch.isfinite(loss)
        weights.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    assert torch.equal(*weights)
    assert not all(map(torch.equal, made.batch((1, 0, 0)), made.batch((1, 0, 1))))
    assert not all(map(torch.equal, made.batch((1, 0, 0)), made.batch((2, 0, 0))))
    with torch.no_grad():
        assert made.examine(model) == made.examine(model) > 0
    assert len(made.batch((0, 0, 0))[0]) == made.size  # type: ignore[attr-defined]


def test_clothes_and_ratings_are_learned(data: Path) -> None:
    for name, steps in (("fashion", 60), ("movielens", 60)):
        made = make_task(name, **SMALL[name])
        torch.manual_seed(0)
        model = made.model(rows=False)
        optimizer = made.optimizer(model, made.rate)
        with torch.no_grad():
            before = made.examine(model)
        for step in range(steps):
            optimizer.zero_grad()
            model(*made.batch((0, step, 0))).backward()
            optimizer.step()
        with torch.no_grad():
            assert made.examine(model) < before


def test_rows_and_dense_tables_learn_the_same(data: Path) -> None:
    ends = []
    for rows in (False, True):
        made = MovieLens(size=32, rows=500, width=4)
        torch.manual_seed(0)
        model = made.model(rows=rows)
        optimizer = made.optimizer(model, 0.1)
        for step in range(3):
            optimizer.zero_grad()
            model(*made.batch((0, step, 0))).backward()
            optimizer.step()
        assert next(model.parameters()).grad.is_sparse is rows
        ends.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]))
    torch.testing.assert_close(*ends)


@pytest.mark.parametrize(
    ("name", "how"), [("fashion", "apt-get install dataset-fashion-mnist"), ("movielens", "recbole")]
)
def test_missing_data_are_said_to_be_missing(
    name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "folders", lambda: [tmp_path])
    monkeypatch.setattr("thinwire.tasks.fashion._PLACES", ())
    monkeypatch.setattr("thinwire.tasks.movielens.find_spec", lambda name: None)
    with pytest.raises(DataError, match=how) as caught:
        make_task(name).batch((0, 0, 0))
    assert found.VARIABLE in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "text", [b"", b"\0\0\x08", b"\0\0\x0d\x01\0\0\0\1\0", b"\0\0\x08\x01\0\0\0\x09\0", b"abcdefgh"]
)
def test_a_broken_file_is_said_to_be_broken(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(text)
    with pytest.raises(DataError, match="get it anew"):
        read_idx(path)


def test_a_task_that_does_not_exist_is_refused() -> None:
    with pytest.raises(PlanError, match="known: bytes, fashion"):
        make_task("letters")
    with pytest.raises(PlanError, match="does not take these options"):
        make_task("bytes", colour="red")


def test_the_wide_models_are_as_wide_as_they_say() -> None:
    with torch.device("meta"):
        sizes = [sum(p.numel() for p in make_task(name).model(rows=False).parameters()) for name in ("wide", "wider")]
    assert sizes[0] == pytest.approx(25.6e6, rel=0.03)
    assert sizes[1] == pytest.approx(124e6, rel=0.03)
