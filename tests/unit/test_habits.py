"""Habits that hold for every file: imports go one way, sizes are bounded, collectives start in one place.

Every check is a function of some source text, and is first shown to find an offender.
"""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks, pages

SRC = ROOT / "src"
Sources = Mapping[str, str]
"""The text of modules, by their full names; a package has the name of its folder."""


def sources() -> dict[str, str]:
    """Every module of thinwire."""
    found = {}
    for path in sorted((SRC / "thinwire").rglob("*.py")):
        name = ".".join(path.relative_to(SRC).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path.read_text()
    return found


# Imports ---------------------------------------------------------------------------------------------------------

LAYERS = (
    "errors version torch_names lifecycle pace courier",
    "types registry options layout",
    "kernels",
    "units observe",
    "debt",
    "protocols",
    "selectors agreements codecs",
    "value_section",
    "message",
    "exchanges",
    "wire",
    "plans",
    "rooms",
    "ledger roll_call saved membership",
    "recipes carry",
    "rows flush",
    "step asked",
    "sync standalone",
    "attaching",
    "thinwire",
    "lab",
    "tasks",
    "traces",
    "analysis",
    "bench",
    "cli",
)
"""From the ground up. What stands in one line may not import each other, and nothing may import from a later line."""

ONLY = {"observe": {"types"}, "exchanges": {"codecs", "errors", "message", "protocols", "registry", "types", "units"}}
"""What else may import little: see the blueprint."""


def part_of(module: str) -> str:
    """The part of thinwire that a module belongs to: its file or package right below ``thinwire``."""
    return module.split(".")[1] if "." in module else "thinwire"


def imports(name: str, text: str, known: Sources) -> set[str]:
    """The modules of thinwire that a module imports, anywhere in its text."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else str(node.module))
    return {module for module in found if module.split(".")[0] == "thinwire" and module != name}


def upward_imports(modules: Sources) -> list[str]:
    """Imports that do not go down."""
    height = {part: number for number, line in enumerate(LAYERS) for part in line.split()}
    offences = []
    for name, text in modules.items():
        here = part_of(name)
        if here not in height:
            offences.append(f"{name} is in no layer; give it its place in LAYERS")
            continue
        for module in sorted(imports(name, text, modules)):
            there = part_of(module)
            if there == here or there == "_native":
                continue
            if height.get(there, len(LAYERS)) >= height[here] or there not in ONLY.get(here, {there}):
                offences.append(f"{name} imports {module}")
    return offences


def cycles(modules: Sources) -> list[str]:
    """Modules that import each other in a circle."""
    graph = {name: imports(name, text, modules) & set(modules) for name, text in modules.items()}
    done: set[str] = set()
    found = []

    def visit(name: str, way: tuple[str, ...]) -> None:
        if name in way:
            found.append(" -> ".join([*way[way.index(name) :], name]))
        elif name not in done:
            for module in sorted(graph[name]):
                visit(module, (*way, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    return found


def test_imports_go_down() -> None:
    assert upward_imports(sources()) == []


def test_no_import_goes_in_a_circle() -> None:
    assert cycles(sources()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thinwire.types", "from thinwire.plans import Plan"),
        ("thinwire.carry", "from thinwire import sync"),
        ("thinwire.ledger", "import thinwire.roll_call"),
        ("thinwire.selectors.top_k", "def f():\n    from thinwire.codecs import Delta"),
        ("thinwire.exchanges.all_reduce", "from thinwire.selectors import TopK"),
        ("thinwire.observe.stats", "from thinwire.errors import SyncError"),
        ("thinwire.lab.ranks", "from thinwire.cli import main"),
        ("thinwire.sync", "import thinwire"),
        ("thinwire.newcomer", "import math"),
    ],
)
def test_an_import_that_goes_up_is_found(name: str, text: str) -> None:
    assert len(upward_imports({**sources(), name: text})) == 1


def test_a_circle_is_found() -> None:
    circle = {
        "thinwire.codecs": "from thinwire.codecs.a import x",
        "thinwire.codecs.a": "from thinwire.codecs import b",
        "thinwire.codecs.b": "import thinwire.codecs.a",
    }
    assert upward_imports(circle) == []
    assert cycles(circle) == ["thinwire.codecs.a -> thinwire.codecs.b -> thinwire.codecs.a"]


# Sizes -----------------------------------------------------------------------------------------------------------

FUNCTION_LINES, FILE_LINES, PARAMETERS = 40, 400, 5
RECORDS = {"thinwire.types.Selection.__init__"}
"""A constructor that takes the fields of a record, where a dataclass would be too slow."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(name: str, text: str) -> Iterator[tuple[str, Function]]:
    """All functions of a module with their qualified names, inner ones too."""

    def inside(node: ast.AST, path: str) -> Iterator[tuple[str, Function]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Function):
                yield f"{path}.{child.name}", child
            if isinstance(child, Function | ast.ClassDef):
                yield from inside(child, f"{path}.{child.name}")
            else:
                yield from inside(child, path)

    return inside(ast.parse(text), name)


def code_lines(text: str) -> set[int]:
    """The lines on which there is code, and not only a comment or a docstring."""
    nothing = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in nothing:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, Function | ast.ClassDef | ast.Module) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return lines


def too_large(modules: Sources) -> list[str]:
    """Files and functions beyond the limits."""
    offences = []
    for name, text in modules.items():
        if text.count("\n") > FILE_LINES:
            offences.append(f"{name} has {text.count(chr(10))} lines")
        lines = code_lines(text)
        for path, function in functions(name, text):
            length = len(lines & set(range(function.lineno, (function.end_lineno or 0) + 1)))
            if length > FUNCTION_LINES:
                offences.append(f"{path} has {length} lines of code")
            taken = function.args.posonlyargs + function.args.args + function.args.kwonlyargs
            count = len([argument for argument in taken if argument.arg not in {"self", "cls"}])
            if count > PARAMETERS and path not in RECORDS:
                offences.append(f"{path} has {count} parameters")
    return offences


def test_files_and_functions_are_small() -> None:
    assert too_large(sources()) == []


def test_what_is_too_large_is_found() -> None:
    body = '    """Doc\n    string."""\n' + "    # why\n\n" * 50
    small = f"def f(a, b, c, d, e):\n{body}" + "    a += 1\n" * 39
    assert too_large({"m": small}) == []
    assert too_large({"m": small + "    a += 1\n"}) == ["m.f has 41 lines of code"]
    assert too_large({"m": "class A:\n    def f(self, a, b, c, *, d, e, **more): ...\n"}) == []
    assert too_large({"m": "class A:\n    def f(self, a, b, c, *, d, e, g): ...\n"}) == ["m.A.f has 6 parameters"]
    assert too_large({"m": "# why\n" * 401}) == ["m has 401 lines"]


# Docstrings ------------------------------------------------------------------------------------------------------


def undocumented(modules: Sources) -> list[str]:
    """Public modules, classes and functions without a docstring."""

    def inside(node: ast.Module | ast.ClassDef, path: str) -> Iterator[str]:
        for child in node.body:
            if isinstance(child, Function | ast.ClassDef) and not child.name.startswith("_"):
                if ast.get_docstring(child) is None:
                    yield f"{path}.{child.name}"
                if isinstance(child, ast.ClassDef):
                    yield from inside(child, f"{path}.{child.name}")

    offences = []
    for name, text in modules.items():
        tree = ast.parse(text)
        if ast.get_docstring(tree) is None:
            offences.append(name)
        offences.extend(inside(tree, name))
    return offences


def test_everything_public_is_documented() -> None:
    assert undocumented(sources()) == []


def test_what_is_not_documented_is_found() -> None:
    text = "class A:\n    def f(self): ...\n    def _g(self): ...\nclass _B:\n    def h(self): ...\ndef i(): ...\n"
    assert undocumented({"m": text}) == ["m", "m.A", "m.A.f", "m.i"]
    assert undocumented({"m": '"""M."""\ndef f():\n    """F."""\n'}) == []


# Annotations -----------------------------------------------------------------------------------------------------


def postponing(modules: Sources) -> list[str]:
    """Modules whose annotations are text at run time, which DDP refuses in a hook's signature."""
    return [
        name
        for name, text in modules.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if "annotations" in [alias.name for alias in node.names]
    ]


def test_hooks_have_real_annotations() -> None:
    hooks = {name: text for name, text in sources().items() if "GradBucket" in text}
    assert {"thinwire.attaching", "thinwire.sync"} <= set(hooks)
    assert postponing(hooks) == []
    assert postponing({"m": "from __future__ import annotations\n"}) == ["m"]


# Collectives and pickles -----------------------------------------------------------------------------------------

COLLECTIVES = {
    *("all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_single", "all_reduce"),
    *("all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast"),
    *("gather", "irecv", "isend", "monitored_barrier", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor"),
    *("scatter", "send"),
}
OBJECT_COLLECTIVES = {
    *("all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list", "scatter_object_list"),
    "send_object_list",
}
METHODS = {
    *("_allgather_base", "_reduce_scatter_base", "allgather", "allgather_into_tensor_coalesced", "allreduce"),
    *("allreduce_coalesced", "alltoall", "alltoall_base"),
}
"""Collectives as methods of a process group."""
MAY_COLLECT = ("thinwire.wire.", "thinwire.sync._plain_mean", "thinwire.cli.doctor.form_group")
"""The wire; what DDP would do by itself; and a trial in a process of its own."""


def distributed_modules(tree: ast.Module) -> set[str]:
    """What a module calls ``torch.distributed``."""
    names = {"torch.distributed", "torch.distributed.distributed_c10d"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname for a in node.names if a.asname and a.name.startswith("torch.distributed")}
        elif isinstance(node, ast.ImportFrom) and node.module == "torch":
            names |= {a.asname or a.name for a in node.names if a.name == "distributed"}
    return names


def distributed_names(text: str) -> Iterator[tuple[int, str]]:
    """Every use of a name of ``torch.distributed``, with its line."""
    tree = ast.parse(text)
    modules = distributed_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("torch.distributed"):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and (node.attr in METHODS or ast.unparse(node.value) in modules):
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "getattr" and len(node.args) > 1:
            module, wanted = node.args[:2]
            if ast.unparse(module) in modules and isinstance(wanted, ast.Constant):
                yield node.lineno, str(wanted.value)


def scattered_collectives(modules: Sources) -> list[str]:
    """Collectives that start somewhere else than in the few places meant for it; object collectives anywhere."""
    offences = []
    for name, text in modules.items():
        places = {
            line: path
            for path, function in functions(name, text)
            for line in range(function.lineno, (function.end_lineno or 0) + 1)
        }
        for line, used in distributed_names(text):
            place = places.get(line, f"{name}.<module>")
            if used in OBJECT_COLLECTIVES or (used in COLLECTIVES | METHODS and not place.startswith(MAY_COLLECT)):
                offences.append(f"{place} uses {used}")
    return offences


def test_collectives_start_in_one_place() -> None:
    assert scattered_collectives(sources()) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch.distributed as dist\ndef f(x):\n    dist.all_reduce(x)\n",
        "import torch.distributed as anything\ndef f(x):\n    anything.barrier()\n",
        "import torch\ndef f(x):\n    torch.distributed.broadcast(x, 0)\n",
        "from torch import distributed\ndef f(x):\n    distributed.send(x, 0)\n",
        "from torch.distributed import all_gather\n",
        "def f(group, x):\n    group.allreduce([x])\n",
        "import torch.distributed as dist\ndef f(x):\n    g = getattr(dist, 'all_gather_single', None)\n",
        "import torch.distributed as dist\ndef f(x):\n    dist.distributed_c10d.all_gather_object([], x)\n",
    ],
)
def test_a_collective_elsewhere_is_found(text: str) -> None:
    elsewhere = text.replace("dist.distributed_c10d.", "dist.")
    assert len(scattered_collectives({"thinwire.sync": elsewhere})) == 1
    assert bool(scattered_collectives({"thinwire.wire": elsewhere})) == ("_object" in text)


def pickles(modules: Sources) -> list[str]:
    """Uses of pickle, and of ``torch.load`` without ``weights_only=True``."""
    offences = []
    for name, text in modules.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                whole = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                if whole & {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve"}:
                    offences.append(f"{name}:{node.lineno} imports {ast.unparse(node)}")
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.load":
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                if given.get("weights_only") != "True":
                    offences.append(f"{name}:{node.lineno} loads pickles")
    return offences


def test_no_pickle_is_read() -> None:
    library = {name: text for name, text in sources().items() if not name.startswith("thinwire.lab")}
    assert pickles(library) == []
    assert pickles({page.name: python_of(page) for page in pages()}) == []


def python_of(page: Path) -> str:
    """A page's Python, so that what users copy is held to the same."""
    return "".join(block.code for block in blocks(page) if block.language == "python")


@pytest.mark.parametrize(
    "text",
    [
        "import pickle\n",
        "from pickle import loads\n",
        "x = torch.load('f')\n",
        "x = torch.load('f', weights_only=False)\n",
        "x = torch.load('f', weights_only=safe)\n",
    ],
)
def test_a_pickle_is_found(text: str) -> None:
    assert len(pickles({"m": text})) == 1
    assert pickles({"m": "x = torch.load('f', weights_only=True)\n"}) == []


# Paths -----------------------------------------------------------------------------------------------------------

_OF_A_MACHINE = re.compile(r"(?<![\w.~-])/(?:home|root|work|opt|Users|mnt|tmp)/[\w.][\w./-]*")


def machine_paths(text: str) -> list[str]:
    """Absolute paths that exist on one machine only."""
    return _OF_A_MACHINE.findall(text)


def test_no_file_names_a_path_of_one_machine() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    offences = {}
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and path != Path(__file__):
            try:
                if found := machine_paths(path.read_text()):
                    offences[name] = found
            except UnicodeDecodeError:
                continue
    assert offences == {}


@pytest.mark.parametrize("path", ["/home/me/x", "see /root/.cache", "'/work/main/src'", "(/opt/tools/a)", "/tmp/x/y"])
def test_a_path_of_one_machine_is_found(path: str) -> None:
    assert len(machine_paths(path)) == 1


@pytest.mark.parametrize("path", ["/proc/self/ns/net", "docs/home/x", "https://a.org/home/x", "../work/x", "/usr/sbin"])
def test_other_paths_are_fine(path: str) -> None:
    assert machine_paths(path) == []
