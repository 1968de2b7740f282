"""Checkpoints of a job: every rank writes a file of its own, whole or not at all, and keeps the last two."""

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch

from thinwire.tasks.meeting import Meeting

_NAME = re.compile(r"seed-(-?\d+)-step-(\d+)")
_KEPT = 2

Place = tuple[int, int]
"""The index of a seed, and the steps that are done for it."""


class Checkpoints:
    """The checkpoints of one rank.

    Args:
        folder: Of the run. Ranks of one machine share it; those of other machines may have their own.
        rank: Whose.
    """

    def __init__(self, folder: str | Path, rank: int) -> None:
        self._folder = Path(folder) / "checkpoints"
        self._rank = rank

    def save(self, place: Place, state: dict[str, Any]) -> None:
        """Write one, and forget the oldest. A crash at any moment leaves the ones before it.

        Args:
            place: Where in the job.
            state: Tensors and plain values.
        """
        path = self._path(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        for old in self.places()[:-_KEPT]:
            self._path(old).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self._path(old).parent.rmdir()  # by whoever comes last

    def places(self) -> list[Place]:
        """What this rank has, oldest first."""
        found = [_NAME.fullmatch(path.parent.name) for path in self._folder.glob(f"*/rank-{self._rank}.pt")]
        return sorted((int(match[1]), int(match[2])) for match in found if match)

    def common(self, meeting: Meeting) -> Place | None:
        """The latest that every rank has; None where there is none.

        Args:
            meeting: Where ranks tell each other what they have.
        """
        mine = " ".join(f"{seed},{step}" for seed, step in self.places())
        theirs = [set(said.split()) for said in meeting.all_say("checkpoints", mine)]
        both = set.intersection(*theirs)
        return max((int(seed), int(step)) for seed, step in (each.split(",") for each in both)) if both else None

    def load(self, place: Place) -> dict[str, Any]:
        """Read one.

        Args:
            place: One of `places`.
        """
        state: dict[str, Any] = torch.load(self._path(place), weights_only=True)
        return state

    def clear(self) -> None:
        """Remove all of them: the job is done, or begins anew."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, place: Place) -> Path:
        return self._folder / f"seed-{place[0]}-step-{place[1]}" / f"rank-{self._rank}.pt"
