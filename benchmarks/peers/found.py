"""Where a peer's code is."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

VARIABLE = "THINWIRE_PEERS"


def missing(module: str, *, needs: str = "", checkout: str, repository: str) -> str:
    """Why a peer cannot be used, and how to get it; empty if it can.

    Args:
        module: To import.
        needs: A name that it must have: one package of that name on the index is an empty one.
        checkout: The folder below the one that the variable names.
        repository: Where it is from.
    """
    folder = os.environ.get(VARIABLE, "")
    path = Path(folder) / checkout
    if folder and path.is_dir() and str(path) not in sys.path:
        sys.path.append(str(path))
    try:
        found: ModuleType = importlib.import_module(module)
        if needs and not hasattr(found, needs):
            raise ImportError(f"the package that is installed as {module} has no {needs}")
    except ImportError as error:
        return (
            f"absent ({error}): clone {repository} from GitHub into a folder as {checkout}, "
            f"and name that folder in {VARIABLE}"
        )
    return ""
