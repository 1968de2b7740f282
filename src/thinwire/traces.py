"""Traces: error-fed gradients of a real run, kept as files, for whoever measures what is done to them.

Gradients that were made up have other tails, other layers and other overlaps between ranks than real ones, so
selectors, codecs and exchanges are judged on recorded ones:

    trace = traces.record("trace", traces.Recording(steps=(0, 100, 200)))
    trace = traces.open("trace")
    gradient = trace.gradient(step=100, rank=0)  # flat, float32: what rank 0 owed before it selected anything

A trace is a folder. ``trace.json`` says what is in it: ``{"format": 1, "task", "world", "density", "steps": [...],
"parameters": [{"name", "shape"}, ...]}``. ``step000100.rank0.npy`` is one flat float32 vector, the parameters one
behind the other in this order.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thinwire import recipes
from thinwire.errors import ThinwireError
from thinwire.layout import Layout
from thinwire.tasks.byte_lm import Corpus, Shape
from thinwire.tasks.simulated import Job, Simulation

FORMAT = 1
TASK = "byte_lm"


class TraceError(ThinwireError, ValueError):
    """There is no trace where one was looked for, or it is damaged."""


@dataclass(frozen=True)
class Trace:
    """A recorded trace; its gradients are read when they are asked for.

    Attributes:
        path: Its folder.
        task: What was trained.
        world: How many ranks there were.
        density: Of the top-k under which it was recorded.
        steps: The steps that were kept, increasing, counted from 0.
        parameters: Name and shape of each parameter, in order.
    """

    path: Path
    task: str
    world: int
    density: float
    steps: tuple[int, ...]
    parameters: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def layout(self) -> Layout:
        """Where each parameter lies in a gradient."""
        return Layout.of({name: math.prod(shape) for name, shape in self.parameters})

    @property
    def numel(self) -> int:
        """Elements of a gradient."""
        return sum(math.prod(shape) for _, shape in self.parameters)

    def gradient(self, step: int, rank: int) -> Tensor:
        """What one rank owed in one step before it selected anything: old debts plus gradient.

        Args:
            step: One of `steps`.
            rank: Below `world`.

        Returns:
            A flat float32 tensor, memory-mapped; changes to it reach no file.

        Raises:
            TraceError: There is none, or it has another size.
        """
        path = self.path / _name(step, rank)
        try:
            values = np.load(path, mmap_mode="c")
        except (OSError, ValueError) as error:
            raise TraceError(
                f"step {step} of rank {rank} cannot be read from {path} ({error}); this trace has the steps "
                f"{list(self.steps)} of {self.world} ranks"
            ) from error
        if values.dtype != np.float32 or values.shape != (self.numel,):
            raise TraceError(f"{path} has {values.shape} of {values.dtype} instead of ({self.numel},) of float32")
        return torch.from_numpy(values)

    def describe(self) -> dict[str, Any]:
        """What ``trace.json`` says."""
        return {
            "format": FORMAT,
            "task": self.task,
            "world": self.world,
            "density": self.density,
            "steps": list(self.steps),
            "parameters": [{"name": name, "shape": list(shape)} for name, shape in self.parameters],
        }


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What to record: a byte-level language model, trained with top-k and error feedback.

    Attributes:
        steps: The steps to keep; training ends behind the last of them.
        world: How many ranks.
        density: Of each rank's own top-k.
        elements: About how many parameters the model has. 600 000 are trained in seconds; 5 and 25 million take about
            as much longer for each step, so record few steps of those.
        seed: Of the weights and of the batches.
        batch: Windows for each rank and step.
    """

    steps: tuple[int, ...] = (0, 50, 100, 200)
    world: int = 4
    density: float = 0.01
    elements: int = 600_000
    seed: int = 0
    batch: int = 8


def record(path: str | Path, recording: Recording | None = None, corpus: Corpus | None = None) -> Trace:
    """Train, and keep what every rank owes at some steps.

    Args:
        path: The folder to make; one that holds a trace is overwritten.
        recording: What to record.
        corpus: The text; by default the standard library's sources.

    Returns:
        The trace.

    Raises:
        TraceError: There is no step to keep.
    """
    wanted = recording if recording is not None else Recording()
    steps = tuple(sorted(set(wanted.steps)))
    if not steps or steps[0] < 0:
        raise TraceError(f"Recording(steps={wanted.steps!r}) keeps no step; name some, counted from 0: steps=(0, 100)")
    job = Job(
        steps=steps[-1] + 1, world=wanted.world, seed=wanted.seed, shape=shape_for(wanted.elements), batch=wanted.batch
    )
    simulation = Simulation(job, corpus)
    plan = recipes.topk_allgather(wanted.density)
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    for step in range(job.steps):
        gradients = simulation.gradients()
        if step in steps:
            for rank, owed in enumerate(simulation.debts(gradients)):
                np.save(folder / _name(step, rank), owed.numpy())
        if step != steps[-1]:
            simulation.step(plan, gradients)
    shapes = tuple((name, tuple(p.shape)) for name, p in simulation.parameters.items())
    trace = Trace(folder, TASK, wanted.world, wanted.density, steps, shapes)
    (folder / "trace.json").write_text(json.dumps(trace.describe(), indent=1) + "\n")
    return trace


def open(path: str | Path) -> Trace:
    """Open a recorded trace.

    Args:
        path: Its folder.

    Returns:
        The trace.

    Raises:
        TraceError: This is no trace.
    """
    folder = Path(path)
    try:
        said = json.loads((folder / "trace.json").read_text())
        if said["format"] != FORMAT:
            raise ValueError(f"format {said['format']!r}, this version reads format {FORMAT}")
        shapes = tuple((str(p["name"]), tuple(int(n) for n in p["shape"])) for p in said["parameters"])
        steps = tuple(int(step) for step in said["steps"])
        return Trace(folder, str(said["task"]), int(said["world"]), float(said["density"]), steps, shapes)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TraceError(
            f"{folder} holds no trace ({type(error).__name__}: {error}); make one with thinwire.traces.record(path)"
        ) from error


def shape_for(elements: int) -> Shape:
    """A model with about so many parameters: always three blocks, as wide as it takes."""
    context = Shape().context
    # 36 width^2 in the blocks, 512 + context + 41 widths in embeddings, head, biases and norms.
    linear = 512 + context + 41
    width = (math.sqrt(linear * linear + 144.0 * elements) - linear) / 72.0
    return Shape(width=max(4, 4 * round(width / 4)))


def _name(step: int, rank: int) -> str:
    return f"step{step:06d}.rank{rank}.npy"
