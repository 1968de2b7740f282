"""Labs that run on this machine, and those that their owners left behind."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from thinwire.lab.entrance import MARK, identity


@dataclass(frozen=True, kw_only=True)
class Found:
    """A lab.

    Attributes:
        keeper: The process that holds it.
        owner: The process that made it.
        hosts: How many it has.
        orphaned: Whether the owner is gone.
    """

    keeper: int
    owner: int
    hosts: int
    orphaned: bool


def find() -> list[Found]:
    """All labs of this machine, as far as their processes can be seen. A lab is its keeper; there is nothing else."""
    found = []
    for listing in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError, ValueError):
            words = listing.read_text().split("\0")
            if MARK in words and _is_first(listing.parent):
                owner, hosts = words[words.index(MARK) + 1 : words.index(MARK) + 3]
                keeper, gone = int(listing.parent.name), identity(int(owner.split(":")[0])) != owner
                found.append(Found(keeper=keeper, owner=int(owner.split(":")[0]), hosts=int(hosts), orphaned=gone))
    return sorted(found, key=lambda lab: lab.keeper)


def _is_first(process: Path) -> bool:
    """Whether a process is the first of a pid namespace of its own, as a keeper is and its children are not."""
    numbers = re.search(r"^NSpid:(.*)$", (process / "status").read_text(), re.MULTILINE)
    return numbers is not None and numbers[1].split()[1:][-1:] == ["1"]


def clean(labs: Sequence[Found] | None = None) -> list[Found]:
    """Kill the keepers of labs whose owners are gone; the kernel does the rest. Labs of live owners stay.

    Args:
        labs: What `find` found; None: find them now.

    Returns:
        Those that were removed.
    """
    orphans = [lab for lab in (find() if labs is None else labs) if lab.orphaned]
    for lab in orphans:
        with contextlib.suppress(ProcessLookupError):
            os.kill(lab.keeper, signal.SIGKILL)
    deadline = time.monotonic() + 5.0
    while any(identity(lab.keeper) for lab in orphans) and time.monotonic() < deadline:
        time.sleep(0.01)
    return orphans
