"""Importance weighted pruning at 1/58.8 of dense bytes, coordinates included, beside leader top-k and dense.

    python benchmarks/papers/iwp.py --steps 200 --seeds 0 1 2

A byte-level language model on four simulated ranks. Leader top-k gets the density at which it sends as many bytes. Runs
that are in the results with the same settings are not made again, so a run that was stopped goes on.
"""

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from thinwire import recipes
from thinwire.analysis.pictures import Sheet, curves
from thinwire.analysis.quality import Runner, train
from thinwire.plans import Plan
from thinwire.tasks.byte_lm import Corpus, Shape, optimizer_for
from thinwire.tasks.simulated import Job, Simulation

RESULTS = Path(__file__).resolve().parents[1] / "results" / "papers"
RATIO = 58.8
"""The paper's, of ResNet-50; it seems not to count coordinates."""
IWP = 0.0062
"""The density of each of two leaders, at which it stays below that ratio even where they hardly agree."""
SHAPE = Shape(width=64, layers=2, context=64)
RATES = {"SGD": 0.3, "AdamW": 4e-3}
WARM = 0.25
"""The part of a run that is warm-up, in the rows that have one."""


def sgd(model: nn.Module, momentum: float) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=RATES["SGD"], momentum=momentum)


def adamw(model: nn.Module, momentum: float) -> torch.optim.Optimizer:
    optimizer = optimizer_for(model)
    for group in optimizer.param_groups:
        group["betas"] = (momentum, group["betas"][1])
    return optimizer


OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"SGD": sgd, "AdamW": adamw}


def density_for(recipe: Callable[[float], Plan], ratio: float, job: Job, corpus: Corpus) -> float:
    """The density at which a recipe sends so small a part of dense bytes: what one step sends, along a line."""

    def sent(plan: Plan) -> float:
        run = Simulation(job, corpus)
        run.step(plan)
        return float(run.bytes_sent)

    low, high = 0.004, 0.012
    few, many = sent(recipe(low)), sent(recipe(high))
    wanted = sent(recipes.dense()) / ratio
    return low + (high - low) * (wanted - few) / (many - few)


def runners(optimizer: str, densities: dict[str, float]) -> list[Runner]:
    """All rows."""
    plain = partial(OPTIMIZERS[optimizer], momentum=0.9)
    bare = partial(OPTIMIZERS[optimizer], momentum=0.0)

    def warm(density: float, step: int, steps: int) -> float:
        return recipes.warm_up(density, step / (WARM * steps))

    iwp, leader = partial(recipes.iwp, momentum=0.9), partial(recipes.ar_topk, momentum=0.9)
    a, b = densities["iwp"], densities["leader top-k"]
    return [
        Runner(name="dense", plan=lambda step, steps: recipes.dense(), optimizer=plain),
        Runner(name="iwp", plan=lambda step, steps: iwp(a), optimizer=bare),
        Runner(name="iwp, warmed up", plan=lambda step, steps: iwp(warm(a, step, steps)), optimizer=bare),
        Runner(name="leader top-k", plan=lambda step, steps: leader(b), optimizer=bare),
        Runner(name="leader top-k, warmed up", plan=lambda step, steps: leader(warm(b, step, steps)), optimizer=bare),
    ]


def draw(result: dict[str, Any], path: Path) -> None:
    """Training losses of the first seed."""
    sheet = Sheet(len(RATES))
    for axes, optimizer in zip(sheet.axes, RATES, strict=True):
        runs = [run for run in result["runs"] if run["optimizer"] == optimizer and run["seed"] == result["seeds"][0]]
        if runs:
            tenths = [(place + 1) * result["steps"] / 10 for place in range(len(runs[0]["losses"]))]
            lines = {run["name"]: run["losses"] for run in runs}
            curves(axes, tenths, lines, ylabel="training loss, bits per byte", title=optimizer)
    sheet.save(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    corpus, path = Corpus.standard_library(), asked.results / "iwp.json"
    settings = {"steps": asked.steps, "seeds": asked.seeds, "ratio": RATIO, "warm": WARM, "world": 4}
    old = json.loads(path.read_text()) if path.exists() else {}
    result: dict[str, Any] = {**settings, "runs": old.get("runs", []) if settings.items() <= old.items() else []}
    job = Job(steps=asked.steps, shape=SHAPE, batch=4)
    result["densities"] = {"iwp": IWP, "leader top-k": density_for(recipes.ar_topk, RATIO * 1.005, job, corpus)}
    done = {(run["optimizer"], run["name"], run["seed"]) for run in result["runs"]}
    asked.results.mkdir(parents=True, exist_ok=True)
    for optimizer, rate in RATES.items():
        for seed in asked.seeds:
            for runner in runners(optimizer, result["densities"]):
                if (optimizer, runner.name, seed) in done:
                    continue
                outcome = train(runner, Job(steps=asked.steps, seed=seed, shape=SHAPE, batch=4, rate=rate), corpus)
                result["runs"].append({"optimizer": optimizer, **outcome.plain()})
                path.write_text(json.dumps(result) + "\n")
                print(f"{optimizer:6} {seed} {runner.name:24} {outcome.bits:.4f} {outcome.bytes_sent:>12}", flush=True)
    draw(result, asked.results / "iwp.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
