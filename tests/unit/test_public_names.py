"""What `import thinwire` gives, although most of it is imported only when it is asked for."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import thinwire


def promised() -> dict[str, str]:
    """Every public name and the module that type checkers are told it comes from."""
    tree = ast.parse(Path(thinwire.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in [*block.body, *tree.body] if isinstance(node, ast.ImportFrom)]
    found = {alias.name: str(node.module) for node in imports for alias in node.names}
    return {name: module for name, module in found.items() if module.startswith("thinwire")}


def test_all_names_are_promised() -> None:
    assert set(promised()) == set(thinwire.__all__)


@pytest.mark.parametrize("name", thinwire.__all__)
def test_a_name_is_what_type_checkers_are_told(name: str) -> None:
    module = promised()[name]
    wanted = import_module(f"thinwire.{name}") if module == "thinwire" else getattr(import_module(module), name)
    assert getattr(thinwire, name) is wanted
    assert name in dir(thinwire)


def test_other_names_are_missed_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'thinwire' has no attribute 'atach'"):
        thinwire.atach  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'atach' from 'thinwire'"):
        from thinwire import atach  # noqa: F401


@pytest.mark.parametrize(
    "program",
    [
        "from thinwire import *; attach, TopK, recipes.dense",
        "from thinwire import attach, hook, recipes; attach.__call__, recipes.dense",
        "import thinwire.attaching, thinwire.sync, thinwire; thinwire.attach.__call__, thinwire.SyncState",
        "import thinwire; thinwire.selectors.TopK is thinwire.TopK or 1 / 0",
        *(f"import thinwire.{name}" for name in ("carry", "units", "asked", "standalone", "recipes", "lab.ranks")),
    ],
)
def test_whatever_is_imported_first(program: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_package_alone_needs_no_torch() -> None:
    program = "import sys, thinwire; thinwire.ThinwireError, thinwire.__version__; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
