"""`thinwire train`: train a real model by several methods side by side, and see which one gets there first."""

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from thinwire.cli._results import cells, head, summarise
from thinwire.cli._shown import Watcher, print_table
from thinwire.errors import PlanError

if TYPE_CHECKING:
    from thinwire.tasks.side_by_side import Race

_INTERRUPTED = 130
_METHODS = "dense,adaptive,topk_allgather(density=0.05),powersgd,fp16"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options:
    """How to run it."""

    sync: Annotated[str, Parameter(help="Methods with commas between them: recipes, ddp, fp16, powersgd, none.")] = ""
    hosts: Annotated[int, Parameter(help="Ranks, one on each host; torchrun's own count under torchrun.")] = 4
    net: Annotated[str, Parameter(help="An emulated network, for example wan-100m-20ms; loopback if not given.")] = ""
    steps: Annotated[int | None, Parameter(help="For each method and seed; the task's own if not given.")] = None
    seeds: Annotated[int, Parameter(help="How many runs of each method, with seeds 0, 1, ...")] = 1
    out: Annotated[str, Parameter(help="The run's folder; a new one below runs/ if not given.")] = ""
    exams: Annotated[int, Parameter(help="Examinations on held-out data in each run.")] = 10
    save_every: Annotated[int, Parameter(help="Steps between checkpoints; 0 for only at Ctrl-C.")] = 100
    resume: Annotated[bool, Parameter(help="Go on with the run in --out from its last checkpoint.", negative=())] = (
        False
    )
    tensorboard: Annotated[bool, Parameter(help="Write scalars for TensorBoard too.", negative=())] = False
    prometheus: Annotated[int | None, Parameter(help="Serve the latest figures on this port of loopback.")] = None
    report: Annotated[bool, Parameter(help="Write report.html at the end.")] = True


def train(task: str = "bytes", *, options: Options | None = None) -> int:
    """Train a real model by several methods side by side, under equal conditions.

    Every method starts from the same weights and sees the same batches in the same order. They take turns step by step,
    so that whatever happens to the machine or its network hits all of them alike. Ctrl-C finishes the step, saves and
    reports; --resume goes on bitwise. Under torchrun the same words train on the ranks that torchrun started.

    Args:
        task: bytes (a language model), fashion (pictures), movielens (embeddings), wide or wider (step time).
        options: See below.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.
    """
    asked = options or Options()
    _check(asked)
    from thinwire.cli._launch import launch, under_torchrun

    job = _job(task, asked)
    if under_torchrun():
        return _as_rank(job, asked)
    print(f"Training {job.task} on {asked.hosts} ranks over {job.network}, {job.steps} steps each, by:")
    for method in job.methods:
        print(f"  {method.name}: {method.words}")
    print(f"Events and checkpoints go to {job.folder}\n", flush=True)
    began = time.monotonic()
    try:
        with Watcher(Path(job.folder, "events.jsonl")).watching():
            launch(job, asked.hosts)
    except KeyboardInterrupt:
        print(f"\nstopped after {time.monotonic() - began:.0f} s; all ranks are gone")
        return _INTERRUPTED
    return conclude(job.folder, report=asked.report)


def conclude(folder: str, *, report: bool) -> int:
    """Say what a run came to, and write its report.

    Args:
        folder: Of the run.
        report: Write one.

    Returns:
        The exit status.
    """
    from thinwire.observe.records import Began, Ended, events_in

    path = Path(folder, "events.jsonl")
    events = list(events_in(path.read_text(errors="replace").splitlines()))
    began = [event for event in events if isinstance(event, Began)][-1]
    results = summarise(events)
    print()
    print_table(head(results, thin=began.thin), [cells(result, thin=began.thin) for result in results])
    if not began.thin:
        print(
            "\nThe wire was this machine's loopback, where bytes cost next to nothing: the seconds are not those of a"
        )
        print("thin wire. The last column is arithmetic: bytes x 8 / 100 Mbit/s, no latency, no overlap with compute.")
    print(f"\nEvents: {path}")
    if report:
        _report(folder)
    ends = {(event.method, event.seed): event for event in events if isinstance(event, Ended)}
    if any(end.stopped for end in ends.values()):
        words = f"thinwire train {began.task} --hosts {began.world} --out {folder} --resume"
        print(f"Stopped early, all ranks are gone. Go on with: {words}")
        return _INTERRUPTED
    return 0


def _report(folder: str) -> None:
    from thinwire.cli.report import write

    print(f"Report: {write([folder], Path(folder, 'report.html'))}")


def _check(asked: Options) -> None:
    if asked.steps is not None and asked.steps < 1:
        raise PlanError(f"asked for {asked.steps} steps; write 1 or more")
    if asked.hosts < 2:
        raise PlanError(f"asked for {asked.hosts} hosts; write 2 or more, so that there is somebody to send to")
    if asked.seeds < 1:
        raise PlanError(f"asked for {asked.seeds} seeds; write 1 or more")
    if min(asked.exams, asked.save_every) < 0:
        raise PlanError("--exams and --save-every are whole numbers from 0")
    if asked.resume and not asked.out:
        raise PlanError("--resume goes on with a run: name its folder with --out")


def _job(name: str, asked: Options) -> "Race":
    from thinwire.cli._launch import LOOPBACK
    from thinwire.tasks import make_task
    from thinwire.tasks.methods import methods
    from thinwire.tasks.side_by_side import JOB, Race

    if asked.resume:
        return replace(Race.load(asked.out), resume=True)
    steps = asked.steps or make_task(name).steps
    folder = asked.out or str(Path("runs", f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"))
    if Path(folder, JOB).exists() and os.environ.get("RANK", "0") == "0":
        raise PlanError(f"there is a run in {folder} already; write --resume to go on with it, or name another folder")
    return Race(
        task=name,
        methods=methods(asked.sync or _METHODS),
        steps=steps,
        seeds=tuple(range(asked.seeds)),
        folder=folder,
        exams=asked.exams,
        save_every=asked.save_every,
        network=asked.net or LOOPBACK,
        tensorboard=asked.tensorboard,
        prometheus=asked.prometheus,
    )


def _as_rank(job: "Race", asked: Options) -> int:
    """One rank among those that torchrun started: rank 0 shows and reports."""
    from thinwire.tasks.__main__ import take_part

    job = replace(job, network="the network between torchrun's hosts")
    if os.environ["RANK"] != "0":
        take_part(job)
        return 0
    job.save()
    with Watcher(Path(job.folder, "events.jsonl")).watching():
        take_part(job)
    return conclude(job.folder, report=asked.report)
