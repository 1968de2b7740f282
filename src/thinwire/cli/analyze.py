"""`thinwire analyze`: what the gradients of several ranks have in common, and which exchange would suit them."""

import dataclasses
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from thinwire.errors import PlanError

if TYPE_CHECKING:
    from thinwire.analysis.sparsity import Sparsity
    from thinwire.traces import Trace

Measured = list[tuple[int, "Sparsity"]]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """What is looked at."""

    density: Annotated[float, Parameter(help="What each rank sends: its largest values.")] = 0.01
    nonzero: Annotated[bool, Parameter(help="What each rank sends: all that is not zero.", negative="")] = False
    parameter: Annotated[str, Parameter(help="Of one parameter only, in units of its rows.")] = ""
    width: Annotated[int, Parameter(help="Elements of one unit; 0 for one, or a row of --parameter.")] = 0
    owners: Annotated[int, Parameter(help="How many owners to deal units out to; 0 for as many as ranks.")] = 0
    bandwidth: Annotated[float, Parameter(help="Of the link, megabits in a second.")] = 100.0
    delay: Annotated[float, Parameter(help="Of the link, milliseconds one way.")] = 1.0


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Live:
    """What is trained where no trace is given."""

    ranks: Annotated[int, Parameter(help="How many train together.")] = 4
    steps: Annotated[str, Parameter(help="Which steps are looked at, with commas.")] = "0,5,20"
    elements: Annotated[int, Parameter(help="About how many parameters the model has.")] = 600_000
    keep: Annotated[Path | None, Parameter(help="Keep the trace in this folder.")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where the figures go."""

    picture: Annotated[Path | None, Parameter(help="Draw a picture here: .png, .svg or .pdf.")] = None
    json: Annotated[Path | None, Parameter(help="Write the figures here.")] = None


def analyze(
    trace: Path | None = None,
    options: Options | None = None,
    live: Live | None = None,
    output: Output | None = None,
) -> int:
    """Measure overlap, densification, skewness and imbalance of gradients, and say which exchange suits them.

    Args:
        trace: A folder that thinwire.traces.record made; without one, a small language model is trained now.
        options: What is looked at.
        live: What is trained.
        output: Where the figures go.

    Returns:
        The exit status.

    Raises:
        PlanError: An option has no meaning.
    """
    options, live, output = options or Options(), live or Live(), output or Output()
    from thinwire import traces
    from thinwire.analysis import sparsity_pictures as pictures

    if output.picture is not None:
        pictures.check(output.picture)
    with tempfile.TemporaryDirectory() as folder:
        opened = traces.open(trace) if trace is not None else _record(live, Path(folder))
        measured = [(step, _measure(opened, step, options)) for step in opened.steps]
        _print(opened, measured, options)
    if output.json is not None:
        output.json.write_text(json.dumps(described(measured), indent=1) + "\n")
    if output.picture is not None:
        pictures.draw([(f"step {step}", each) for step, each in measured], output.picture)
    return 0


def _record(live: Live, folder: Path) -> "Trace":
    from thinwire import traces

    try:
        steps = tuple(int(step) for step in live.steps.split(","))
    except ValueError:
        raise PlanError(
            f"asked for the steps {live.steps!r}; write numbers with commas, for example 0,50,100"
        ) from None
    if live.ranks < 2:
        raise PlanError(f"asked for {live.ranks} ranks; write 2 or more, so that there is something to have in common")
    print(f"Training a language model on {live.ranks} ranks, {max(steps) + 1} steps ...", file=sys.stderr, flush=True)
    recording = traces.Recording(steps=steps, world=live.ranks, elements=live.elements)
    return traces.record(live.keep if live.keep is not None else folder, recording)


def _measure(trace: "Trace", step: int, options: Options) -> "Sparsity":
    """What every rank would send in one step, measured."""
    from thinwire.analysis.sparsity import characterise
    from thinwire.selectors import NonZero, TopK
    from thinwire.types import unit_count

    begin, end, width = _part(trace, options)
    selector = NonZero(width=width) if options.nonzero else TopK(density=options.density, width=width)
    chosen = [selector.select(trace.gradient(step, rank)[begin:end]).indices for rank in range(trace.world)]
    return characterise(chosen, unit_count(end - begin, width), options.owners or None)


def _part(trace: "Trace", options: Options) -> tuple[int, int, int]:
    """Where what is looked at begins and ends, and how wide a unit of it is."""
    from thinwire.registry import unknown

    if options.owners < 0 or options.width < 0:
        raise PlanError(f"asked for {options.owners} owners and width {options.width}; write numbers from 0")
    if not options.parameter:
        return 0, trace.numel, options.width or 1
    shapes = dict(trace.parameters)
    if options.parameter not in shapes:
        raise PlanError(unknown("parameter", options.parameter, shapes))
    (span,) = (span for span in trace.layout.spans if span.name == options.parameter)
    row = shapes[options.parameter][-1] if len(shapes[options.parameter]) > 1 else 1
    return span.start, span.stop, options.width or row


def _print(trace: "Trace", measured: Measured, options: Options) -> None:
    """A line for each step, and what follows from the last one."""
    from thinwire.exchanges.chooser import Group, Link, estimates

    begin, end, width = _part(trace, options)
    what = "all that is not zero" if options.nonzero else f"the largest {100 * options.density:g} %"
    print(f"{trace.task}: {what} of {end - begin} elements in units of {width}, {trace.world} ranks")
    print("  step  density  overlap  densification  skewness  imbalance: hashed  striped  even cut")
    for step, each in measured:
        worst = [max(kind.push, kind.pull) for kind in (each.hashed, each.striped, each.cut)]
        print(
            f"{step:6}  {100 * each.density:5.2f} %  {each.overlap:7.3f}  {each.densification[-1]:13.3f}  "
            f"{each.skewness:8.2f}  {worst[0]:17.3f}  {worst[1]:7.3f}  {worst[2]:8.3f}"
        )
    last = measured[-1][1]
    if not last.density:
        print("Nothing was sent in the last step.")
        return
    link = Link(bandwidth=options.bandwidth * 125_000, delay=options.delay / 1000)
    print(f"On a link of {options.bandwidth:g} Mbit/s and {options.delay:g} ms one way, like in the last step:")
    for estimate in estimates(last.profile, Group(numel=end - begin, width=width, world=trace.world), link):
        name = "dense all-reduce" if estimate.is_dense else type(estimate.exchange).__name__
        sent, spent = estimate.bytes_sent / 1e6, 1000 * estimate.seconds
        print(f"  {name:18} {sent:9.3f} MB sent, {estimate.delays:2} delays, {spent:9.1f} ms")


def described(measured: Measured) -> list[dict[str, Any]]:
    """The figures as plain data."""
    return [{"step": step, **dataclasses.asdict(each)} for step, each in measured]
