"""`thinwire bench`: measure thinwire on this machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from thinwire.bench import drawing, figures, files, machine, words
from thinwire.bench.errors import BenchError
from thinwire.bench.kernels import asked, picture, table
from thinwire.bench.kernels.cases import FAMILIES
from thinwire.bench.kernels.measure import Broom
from thinwire.bench.kernels.record import Heat, Role, Run
from thinwire.bench.kernels.sweep import points, sweep

bench = App(
    name="bench",
    help="Measure thinwire on this machine.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False, negative=()),
)


bench.command("thinwire.cli._bench_exchange:exchange", name="exchange", help="Measure how fast gradients meet.")


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What is measured where nothing else is said."""

    sizes: str
    densities: str
    threads: str
    rounds: int
    seconds: float


USUAL = Preset(sizes="1M,25M", densities="0.1%,1%,10%", threads="", rounds=20, seconds=2.0)
QUICK = Preset(sizes="1M", densities="1%", threads="1", rounds=7, seconds=0.2)
FULL = Preset(sizes="10k,100k,1M,10M,25M,100M", densities="0.1%,1%,10%", threads="", rounds=20, seconds=2.0)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What to measure. Lists are written with commas."""

    only: Annotated[str, Parameter(help="Kernels or families, for example top-k,rice*; all if not given.")] = ""
    sizes: Annotated[str, Parameter(help="Elements of the gradient; 1M,25M if not given.")] = ""
    densities: Annotated[str, Parameter(help="Parts that are selected; 0.1%,1%,10% if not given.")] = ""
    threads: Annotated[str, Parameter(help="For kernels and torch; 1 and all CPUs, 4 at most, if not given.")] = ""
    kernels: Annotated[str, Parameter(help="Implementations, or all; the one in use if not given.")] = ""
    data: Annotated[str, Parameter(help="gaussian (the default), laplace, student, mixture or rows.")] = "gaussian"
    rounds: Annotated[int | None, Parameter(help="Turns of every contestant; 20 if not given.")] = None
    seconds: Annotated[float | None, Parameter(help="For one contestant in one heat; 2 if not given.")] = None
    clock: Annotated[str, Parameter(help="wall (the default), or cpu for single threads on a busy machine.")] = "wall"
    seed: Annotated[int, Parameter(help="Of the inputs.")] = 0
    quick: Annotated[bool, Parameter(help="One size, one density, one thread: within a minute.")] = False
    full: Annotated[bool, Parameter(help="All sizes from 10k to 100M: about an hour.")] = False


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the figures go."""

    json: Annotated[Path | None, Parameter(help="Write raw samples and the machine's facts here.")] = None
    plot: Annotated[Path | None, Parameter(help="Draw a picture here, .png or .svg.")] = None
    markdown: Annotated[bool, Parameter(help="Print the table in Markdown.")] = False
    read: Annotated[Path | None, Parameter(help="Measure nothing: show this file of --json again.")] = None
    list: Annotated[bool, Parameter(help="Measure nothing: name the kernels that can be.")] = False


@bench.command(name="kernels")
def kernels(options: Options | None = None, output: Output | None = None) -> int:
    """Measure every kernel beside torch and beside what the memory allows.

    Everything takes turns, out of cache, and every result is checked. The exit status is 1 if one was wrong.
    """
    options, output = options or Options(), output or Output()
    if output.list:
        for family, cases in FAMILIES.items():
            print(f"{family}: {', '.join(case.name for case in cases) or 'none yet'}")
        return 0
    for path in filter(None, (output.json, output.plot)):
        files.check(path)
    if output.plot:
        drawing.check(output.plot)
    run = Run.read(output.read) if output.read else _measure(sweep_of(options))
    if output.json:
        run.write(output.json)
    _show(run, output)
    return 1 if run.failures else 0


def sweep_of(options: Options) -> asked.Asked:
    """What the options ask for.

    Args:
        options: As they were written.

    Returns:
        The sweep.

    Raises:
        BenchError: Something does not exist or has no meaning.
        KernelError: An implementation does not exist or cannot run here.
    """
    if options.quick and options.full:
        raise BenchError("asked for --quick and --full; write one of them")
    preset = QUICK if options.quick else FULL if options.full else USUAL
    every = "1" if options.clock == "cpu" else f"1,{min(4, machine.usable_cpus())}"
    return asked.Asked(
        only=asked.cases(options.only),
        sizes=words.sizes(options.sizes or preset.sizes),
        densities=words.densities(options.densities or preset.densities),
        threads=asked.threads(options.threads or preset.threads or every),
        implementations=asked.implementations(options.kernels),
        data=asked.data(options.data),
        effort=asked.effort(
            preset.rounds if options.rounds is None else options.rounds,
            preset.seconds if options.seconds is None else options.seconds,
            options.clock,
        ),
        seed=options.seed,
    )


def _measure(wanted: asked.Asked) -> Run:
    """Measure, and say on stderr how far it is."""
    kept = machine.keep_memory()
    console = Console(stderr=True)
    every = points(wanted)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(str(every[0]), total=len(every))
        done = 0

        def tell(heat: Heat | str) -> None:
            nonlocal done
            done += 1
            progress.console.print(_line(heat), highlight=False, markup=False, soft_wrap=True)
            progress.update(bar, completed=done, description=str(every[min(done, len(every) - 1)]))

        run = sweep(wanted, tell, broom=Broom())
    return replace(run, facts={**run.facts, "memory_kept": kept})


def _line(heat: Heat | str) -> str:
    if isinstance(heat, str):
        return f"skipped {heat}"
    words = [
        f"{one.name} {one.threads}T " + (figures.duration(one.best) if one.nanoseconds else one.error)
        for one in heat.times
        if one.role is not Role.YARDSTICK
    ]
    return f"{heat.case}, {table.heading(heat)}: {', '.join(words)}"


def _show(run: Run, output: Output) -> None:
    if output.markdown:
        print(table.for_page(run), end="")
    else:
        # A pipe has no width: the table is as wide as it is.
        console = Console() if Console().is_terminal else Console(width=200)
        console.print(table.for_terminal(run))
        for note in (*table.verdicts(run), *table.notes(run)):
            console.print(note, highlight=False, markup=False, soft_wrap=True)
    if output.plot:
        picture.draw(run, output.plot)
