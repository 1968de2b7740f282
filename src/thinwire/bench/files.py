"""Runs as files: JSON with a line for each thing that was measured, so that two of them can be compared."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from thinwire.bench.errors import BenchError

T = TypeVar("T")


def write(path: Path, text: str) -> None:
    """Write a file.

    Args:
        path: Where to.
        text: What.

    Raises:
        BenchError: It cannot be written there.
    """
    try:
        path.write_text(text)
    except OSError as error:
        raise BenchError(f"{path} cannot be written: {error.strerror}") from error


def check(path: Path) -> None:
    """Nothing, if a file can be written there: nobody wants to learn after an hour that it cannot.

    Args:
        path: The file.

    Raises:
        BenchError: It cannot.
    """
    if path.is_dir() or not path.resolve().parent.is_dir():
        why = "is a folder" if path.is_dir() else f"there is no folder {path.parent}"
        raise BenchError(f"{path} cannot be written: {why}; write another name")


def to_json(schema: str, content: dict[str, Any], lines: str) -> str:
    """A run as JSON.

    Args:
        schema: What it is.
        content: Plain values.
        lines: The key of the list whose items get a line each.
    """
    rest = {"schema": schema, **content}
    items = ",\n".join(f"  {json.dumps(item)}" for item in rest.pop(lines))
    return json.dumps(rest, indent=1).removesuffix("\n}") + f',\n "{lines}": [\n{items}\n ]\n}}\n'


def read(path: Path, schema: str, build: Callable[[dict[str, Any]], T], command: str) -> T:
    """Read what `to_json` made.

    Args:
        path: Where from.
        schema: What it should be.
        build: Makes the run out of the content.
        command: Writes such files, for the message.

    Returns:
        The run.

    Raises:
        BenchError: There is no such file, or it is something else.
    """
    try:
        content = json.loads(path.read_text())
        if content.pop("schema") != schema:
            raise KeyError("schema")
        return build(content)
    except OSError as error:
        raise BenchError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BenchError(f"{path} is no run of this benchmark ({schema!r}); write one with {command}") from error
