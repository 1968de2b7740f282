"""Gaussian-k: what each rule selects, how often it looks, and what top-k keeps of real gradients through training.

    python benchmarks/papers/gaussian_k.py --steps 40

One run for each density, with the corrected rule and error feedback; in every step all rules see what rank 0 owes.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from thinwire import recipes
from thinwire.analysis.contraction import contractions
from thinwire.analysis.distribution import distribution
from thinwire.analysis.pictures import Sheet, curves, histogram
from thinwire.analysis.thresholds import hits, rules
from thinwire.debt import Debt
from thinwire.tasks.byte_lm import Corpus
from thinwire.tasks.simulated import Job, Simulation

RESULTS = Path(__file__).resolve().parents[1] / "results" / "papers"
DENSITIES = (0.001, 0.01)
MADE = 1_000_000


def made() -> dict[str, torch.Tensor]:
    """Vectors of known distributions."""
    rng = np.random.default_rng(0)
    layers = np.repeat([0.05, 0.3, 2.0], [MADE * 6 // 10, MADE * 3 // 10, MADE // 10])
    found = {
        "normal": rng.standard_normal(MADE),
        "Laplace": rng.laplace(size=MADE),
        "Student-t, 4 degrees": rng.standard_t(4, MADE),
        "Student-t, 2 degrees": rng.standard_t(2, MADE),
        "mixture of three normals": layers * rng.standard_normal(MADE),
        "uniform": rng.random(MADE),
    }
    return {name: torch.from_numpy(values).float() for name, values in found.items()}


def table_of_made() -> list[dict[str, Any]]:
    """Every rule on every vector; no rule has a memory there."""
    rows = []
    for name, values in made().items():
        for density in DENSITIES:
            debt = Debt(torch.zeros_like(values), values, torch.empty_like(values))
            rows.append({"vector": name, "density": density, "hits": [hit._asdict() for hit in hits(debt, density, 1)]})
    return rows


def through_training(density: float, steps: int, corpus: Corpus) -> dict[str, Any]:
    """What every step's error-fed gradient is like."""
    run = Simulation(Job(steps=steps), corpus)
    plan = recipes.gaussian_k(density)
    found: dict[str, Any] = {"density": density, "elements": run.layout.numel, "steps": [], "histograms": []}
    for step in range(steps):
        gradients = run.gradients()
        debt = Debt(run.owed()[0], gradients[0], torch.empty_like(gradients[0]))
        found["steps"].append(
            {
                "step": step,
                "hits": [hit._asdict() for hit in hits(debt, density, step)],
                "contraction": contractions(debt.total, [density])[0]._asdict(),
                "loss": run.loss,
            }
        )
        if step in {0, steps // 4, steps // 2, steps - 1}:
            found["histograms"].append({"step": step, **distribution(debt.total)._asdict()})
        run.step(plan, gradients)
    found["held_out_bits"] = run.held_out_bits()
    return found


def draw(result: dict[str, Any], folder: Path) -> None:
    """Selected/k, contraction and histograms."""
    runs = result["training"]
    sheet = Sheet(2 * len(runs))
    for place, run in enumerate(runs):
        steps = [each["step"] for each in run["steps"]]
        lines = {
            name: [next(hit["ratio"] for hit in each["hits"] if hit["rule"] == name) for each in run["steps"]]
            for name in rules(run["density"])
        }
        curves(sheet.axes[2 * place], steps, lines, ylabel="selected / k", title=f"{100 * run['density']:g} %")
        kinds = {"measured": "measured", "paper's bound": "bound", "normal numbers": "gaussian", "k/n": "random"}
        lines = {label: [each["contraction"][key] for each in run["steps"]] for label, key in kinds.items()}
        curves(
            sheet.axes[2 * place + 1], steps, lines, ylabel="delta", title=f"contraction, {100 * run['density']:g} %"
        )
    sheet.save(folder / "gaussian_k.png")
    sheet = Sheet(len(runs[-1]["histograms"]))
    for axes, each in zip(sheet.axes, runs[-1]["histograms"], strict=True):
        histogram(axes, each["edges"], each["counts"], title=f"step {each['step']}, kurtosis {each['kurtosis']:.0f}")
    sheet.save(folder / "gaussian_k_histograms.png")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    began, corpus = time.monotonic(), Corpus.standard_library()
    result = {
        "made": {"elements": MADE, "rows": table_of_made()},
        "training": [through_training(density, asked.steps, corpus) for density in DENSITIES],
    }
    asked.results.mkdir(parents=True, exist_ok=True)
    (asked.results / "gaussian_k.json").write_text(json.dumps(result) + "\n")
    draw(result, asked.results)
    print(f"{time.monotonic() - began:.0f} s, {asked.results / 'gaussian_k.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
