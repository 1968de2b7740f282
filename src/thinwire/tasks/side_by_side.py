"""Train the same model on the same batches by several methods at once, step by step in turn.

Taking turns in the same processes is what makes the seconds comparable: whatever else the machine or its network does
meanwhile hits every method alike.
"""

import dataclasses
import json
import os
import platform
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch

from thinwire.errors import StateError
from thinwire.observe.records import Began, Ended
from thinwire.observe.sinks import Jsonl, Several, Sink
from thinwire.tasks import make_task
from thinwire.tasks.checkpoints import Checkpoints, Place
from thinwire.tasks.meeting import Meeting
from thinwire.tasks.methods import Method, methods
from thinwire.tasks.runner import Finish, Runner
from thinwire.tasks.task import Task
from thinwire.version import __version__

EVENTS = "events.jsonl"
JOB = "job.json"
STOP = "stop"
"""The file in a run's folder that asks it to end after the step it is in."""


@dataclass(frozen=True, kw_only=True)
class Race:
    """What to run.

    Attributes:
        task: Its name.
        options: Its own.
        methods: Which.
        steps: For each method and seed.
        seeds: One run each, one after the other.
        folder: Where events and checkpoints go; empty for none of them.
        exams: Examinations in each run, evenly spread; the last one is at its end.
        save_every: Steps between checkpoints; 0 for only when it is stopped.
        resume: Go on from the last checkpoint that every rank has, if there is one.
        network: The wire in words.
        thin: Somebody made this wire thin: every rank's interface carries its own bytes only.
        tensorboard: Write scalars into the folder too.
        prometheus: The port to serve the latest figures on, on loopback; None for none.
    """

    task: str = "bytes"
    options: dict[str, Any] = field(default_factory=dict)
    methods: tuple[Method, ...]
    steps: int
    seeds: tuple[int, ...] = (0,)
    folder: str = ""
    exams: int = 10
    save_every: int = 0
    resume: bool = False
    network: str = "loopback"
    thin: bool = False
    tensorboard: bool = False
    prometheus: int | None = None

    def save(self) -> None:
        """Write down what to run, so that programs on other hosts, and those that resume, can read it."""
        plain = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        plain["methods"] = ",".join(method.name for method in self.methods)
        path = Path(self.folder, JOB)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(plain, indent=1) + "\n")
        draft.replace(path)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """What `save` wrote, in whichever folder it lies now.

        Args:
            folder: Of the run.

        Raises:
            StateError: There is no such run.
        """
        path = Path(folder, JOB)
        try:
            plain = json.loads(path.read_text())
            plain.update(folder=str(folder), methods=methods(plain["methods"]), seeds=tuple(plain["seeds"]))
            return cls(**plain)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(f"{path} does not tell of a run ({error}); name the folder of one") from error


def race(rank: int, world: int, job: Race) -> list[Finish]:
    """Run in every rank: train by all methods, taking turns, for every seed.

    Args:
        rank: This one.
        world: How many there are.
        job: What to run.

    Returns:
        One for each seed and method that came to an end, or was stopped: then the last seeds have fewer steps.
    """
    return _Race(rank, world, job).run()


class _Race:
    def __init__(self, rank: int, world: int, job: Race) -> None:
        self.rank, self.world, self.job = rank, world, job
        self.task: Task = make_task(job.task, **job.options)
        self.meeting = Meeting(rank, world)
        self.checkpoints = Checkpoints(job.folder, rank) if job.folder else None
        self.sink = _sinks(job) if rank == 0 else Several([])
        self.done: list[Finish] = []
        self.stopped = False

    def run(self) -> list[Finish]:
        place, state = self._begin()
        begun = False
        for index in range(place[0], len(self.job.seeds)):
            runners = [
                Runner(self.task, each, seed=self.job.seeds[index], sink=self.sink, counts=self.job.thin)
                for each in self.job.methods
            ]
            for runner, saved in zip(runners, state["runners"] if state else [], strict=state is not None):
                runner.load_state_dict(saved)
            if not begun:
                self.sink.write(self._began(runners, place[1]))
                begun = True
            self._train(runners, index, place[1])
            self._end(runners)
            if self.stopped:
                break
            place, state = (index + 1, 0), None
        self.sink.close()
        if self.checkpoints is not None and not self.stopped:
            self.checkpoints.clear()
        return self.done

    def _begin(self) -> tuple[Place, dict[str, Any] | None]:
        """Where to begin, and the checkpoint to begin from."""
        if self.checkpoints is None:
            return (0, 0), None
        place = self.checkpoints.common(self.meeting) if self.job.resume else None
        if place is None:
            return (0, 0), None
        state = self.checkpoints.load(place)
        if (state["task"], state["steps"]) != (self.job.task, self.job.steps):
            raise StateError(
                f"the checkpoint is of {state['steps']} steps of {state['task']}, not of {self.job.steps} of "
                f"{self.job.task}; "
                f"resume with the same options"
            )
        self.done = [Finish(**finish) for finish in state["done"]]
        return place, state

    def _train(self, runners: list[Runner], index: int, first: int) -> None:
        job = self.job
        exams = {round(turn * job.steps / job.exams) for turn in range(1, job.exams)} if job.exams else set()
        for step in range(first, job.steps):
            if self.rank == 0 and job.folder and Path(job.folder, STOP).exists():
                self.meeting.stop_after(step)
            turn = step % len(runners)  # so that no method always goes first
            for runner in runners[turn:] + runners[:turn]:
                runner.step(step, self.rank, job.steps)
            if step + 1 in exams:
                for runner in runners:
                    runner.examine()
            self.stopped = self.meeting.stops_after(step) and step + 1 < job.steps
            if self.stopped or (job.save_every and (step + 1) % job.save_every == 0 and step + 1 < job.steps):
                self._save(runners, (index, step + 1))
            if self.stopped:
                return

    def _save(self, runners: list[Runner], place: Place) -> None:
        if self.checkpoints is None:
            return
        state = {
            "task": self.job.task,
            "steps": self.job.steps,
            "runners": [runner.state_dict() for runner in runners],
            "done": [dataclasses.asdict(finish) for finish in self.done],
        }
        self.checkpoints.save(place, state)

    def _end(self, runners: list[Runner]) -> None:
        for runner in runners:
            finish = runner.finish()
            topic = f"checksum/{finish.seed}/{finish.method}"
            agree = len(set(self.meeting.all_say(topic, finish.checksum))) == 1
            self.done.append(dataclasses.replace(finish, agree=agree))
            self.sink.write(
                Ended(
                    method=finish.method,
                    seed=finish.seed,
                    steps=finish.steps,
                    elapsed=finish.seconds,
                    bytes_total=finish.bytes_sent,
                    quality=finish.quality,
                    checksum=finish.checksum,
                    agree=agree,
                    stopped=self.stopped,
                )
            )

    def _began(self, runners: list[Runner], first: int) -> Began:
        job = self.job
        return Began(
            time=time.time(),
            task=job.task,
            about=self.task.about,
            unit=self.task.unit,
            counted=self.task.counted,
            methods=tuple(each.name for each in job.methods),
            plans={runner.method.name: runner.words for runner in runners},
            rates={runner.method.name: runner.rate for runner in runners},
            world=self.world,
            steps=job.steps,
            seeds=job.seeds,
            network=job.network,
            thin=job.thin,
            parameters=sum(parameter.numel() for parameter in runners[0].model.parameters()),
            machine={
                "processors": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
                "system": f"{platform.system()} {platform.release()} {platform.machine()}",
                "python": platform.python_version(),
                "torch": torch.__version__,
                "thinwire": __version__,
            },
            resumed=first,
        )


def _sinks(job: Race) -> Several:
    sinks: list[Sink] = [Jsonl(Path(job.folder, EVENTS))] if job.folder else []
    if job.tensorboard:
        from thinwire.observe.tensorboard import TensorBoard

        sinks.append(TensorBoard(Path(job.folder, "tensorboard")))
    if job.prometheus is not None:
        from thinwire.observe.prometheus import Prometheus

        sinks.append(Prometheus(job.prometheus))
    return Several(sinks)
