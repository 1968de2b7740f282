"""Where data lie on this machine. Nothing is ever downloaded."""

import os
from collections.abc import Sequence
from pathlib import Path

from thinwire.tasks.task import DataError

VARIABLE = "THINWIRE_DATA"


def folders() -> list[Path]:
    """Where people keep data: what the environment says, then ``data`` here, then the user's cache."""
    named = [Path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    return [*named, Path("data"), Path.home() / ".cache" / "thinwire"]


def find(what: str, paths: Sequence[str], places: Sequence[Path], how: str) -> Path:
    """The first of some files that exists.

    Args:
        what: The name of the data, for the message.
        paths: Below one of `folders`, or below a place, without or with ``.gz``.
        places: Other folders, where packages put them.
        how: To get them, for the message.

    Returns:
        The file.

    Raises:
        DataError: None is there.
    """
    looked = [*folders(), *places]
    for folder in looked:
        for path in paths:
            for ending in ("", ".gz"):
                if (candidate := folder / (path + ending)).is_file():
                    return candidate
    raise DataError(
        f"{what} was not found: looked for {paths[0]} in {', '.join(map(str, looked))}. {how}, "
        f"or put the files into a folder and name it in {VARIABLE}."
    )
