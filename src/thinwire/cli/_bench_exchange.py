"""`thinwire bench exchange`: how fast gradients meet, beside other ways, on this machine or on a cluster."""

import os
from dataclasses import asdict, dataclass
from functools import reduce
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from thinwire.bench import drawing, files
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange import launch, picture, table
from thinwire.bench.exchange.asked import PLANS, Asked
from thinwire.bench.exchange.rank import take_part
from thinwire.bench.exchange.record import Run
from thinwire.bench.words import words

QUICK: dict[str, Any] = {"sizes": "100k", "densities": "1%", "rounds": 2, "seconds": 0.5}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure. Lists are written with commas."""

    sizes: Annotated[str, Parameter(help="Elements of the messages; 1M if not given.")] = ""
    densities: Annotated[str, Parameter(help="Parts that are sent; 0.1%,1% if not given.")] = ""
    plans: Annotated[str, Parameter(help=f"Recipes, with formats if you like: {PLANS} if not given.")] = PLANS
    peers: Annotated[str, Parameter(help="A module with other methods; in a checkout: benchmarks.peers.")] = ""
    only: Annotated[str, Parameter(help="Names of methods, with * for any letters; all if not given.")] = ""
    traces: Annotated[str, Parameter(help="Where gradients are recorded and found again.")] = "runs/traces"
    hosts: Annotated[int, Parameter(help="Ranks to start here; 4. Under torchrun, nobody is started.")] = 4
    net: Annotated[str, Parameter(help="Networks of thinwire lab, to measure in; under torchrun, what to call it.")] = (
        ""
    )
    rate: Annotated[str, Parameter(help="Bits per second of every rank's link, for the wire floor: 100M.")] = ""
    rounds: Annotated[int | None, Parameter(help="Turns of every method; 5 if not given.")] = None
    seconds: Annotated[float | None, Parameter(help="Measured for one method and size; 4 if not given.")] = None
    limit: Annotated[float, Parameter(help="Who will take longer on the link is left out; 60 seconds.")] = 60.0
    backend: Annotated[str, Parameter(help="Of the process group; gloo.")] = "gloo"
    threads: Annotated[int, Parameter(help="Of torch and the kernels, in each rank; 1.")] = 1
    train: Annotated[str, Parameter(help="Train this instead, and time whole steps: byte_lm.")] = ""
    steps: Annotated[int, Parameter(help="Of training; 60.")] = 60
    quick: Annotated[bool, Parameter(help="One small size, one density: within a minute.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the figures go."""

    json: Annotated[Path | None, Parameter(help="Write all times and the machine's facts here.")] = None
    csv: Annotated[Path | None, Parameter(help="Write the table here, in SI units.")] = None
    plot: Annotated[Path | None, Parameter(help="Draw a picture here, .png or .svg.")] = None
    markdown: Annotated[bool, Parameter(help="Print the table in Markdown.")] = False
    read: Annotated[str, Parameter(help="Measure nothing: show files of --json again, several as one.")] = ""


def exchange(options: Options | None = None, output: Output | None = None) -> int:
    """Measure how fast gradients meet: thinwire's plans, and others beside them.

    Methods take turns on recorded gradients, and every mean is checked. The exit status is 1 if one was wrong.
    """
    options, output = options or Options(), output or Output()
    for path in filter(None, (output.json, output.csv, output.plot)):
        files.check(path)
    if output.plot:
        drawing.check(output.plot)
    run = _read(output.read) if output.read else measure(options, output.json)
    if os.environ.get("RANK", "0") == "0":
        _deliver(run, output)
    return 1 if run.failures else 0


def _read(names: str) -> Run:
    """Several runs as one: a cell is of one run in any case, and ratios are within cells."""
    first, *others = (Run.read(Path(name)) for name in words(names))
    return reduce(lambda whole, more: whole.with_cells(more.cells), others, first)


def measure(options: Options, keep: Path | None = None) -> Run:
    """Measure what the options ask for.

    Args:
        options: As they were written.
        keep: A file for what there is after each network.

    Returns:
        The run; under torchrun whole on rank 0 only.

    Raises:
        BenchError: Something does not exist or has no meaning, or a rank failed.
    """
    asked = asked_of(options)
    if launch.started_by_others():
        return take_part(asked)
    nets = tuple(words(options.net))
    if nets and options.rate:
        raise BenchError("asked for --net and --rate; a network of the lab has a rate of its own, so leave --rate out")
    if not nets:
        return launch.on_loopback(asked, options.hosts)
    return launch.in_lab(asked, options.hosts, nets, on_run=lambda run: run.write(keep) if keep else None)


def asked_of(options: Options) -> Asked:
    """What the options ask for.

    Args:
        options: As they were written.

    Raises:
        BenchError: Something has no meaning.
    """
    known = set(Asked.__dataclass_fields__)
    given: dict[str, Any] = {
        name: value for name, value in asdict(options).items() if name in known and value not in ("", None)
    }
    if options.quick and (clash := [f"--{name}" for name in QUICK if name in given]):
        raise BenchError(f"asked for --quick and {', '.join(clash)}; write one of them")
    return Asked(**given, **(QUICK if options.quick else {}))


def _deliver(run: Run, output: Output) -> None:
    """Write and show it."""
    if output.json:
        run.write(output.json)
    if output.csv:
        files.write(output.csv, run.csv())
    if output.markdown:
        print(table.for_page(run), end="")
    else:
        # A pipe has no width: the table is as wide as it is.
        console = Console() if Console().is_terminal else Console(width=220)
        console.print(table.for_terminal(run))
        for line in [f"{cell.net}: {table.verdict(*each)}" for cell in run.cells for each in table.verdicts(cell)]:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        for note in table.notes(run):
            console.print(note, highlight=False, markup=False, soft_wrap=True)
    if output.plot:
        picture.draw(run, output.plot)
