"""Which optimizer setting goes with which selection: a small byte LM, four ranks, three seeds.

    python -m benchmarks.optimizers

Every setting is tried with each learning rate in a short run, and trains on all seeds with its best one. Writes
benchmarks/results/optimizers.json, prints a table, and draws docs/figures/optimizers.svg.
"""

import argparse
import json
import platform
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import torch

from thinwire.analysis import tables
from thinwire.bench import drawing
from thinwire.lab.ranks import RankPool, preload
from thinwire.report.read import Story, read
from thinwire.tasks.byte_lm import Shape
from thinwire.tasks.methods import Method, methods
from thinwire.tasks.runner import Finish
from thinwire.tasks.side_by_side import Race, race

HERE = Path(__file__).resolve().parents[1]
RESULT, PICTURE = HERE / "results" / "optimizers.json", HERE.parent / "docs" / "figures" / "optimizers.svg"
WORLD, SHAPE, SIZE = 4, Shape(width=64, layers=2, heads=4, context=64), 8
RATES = (2e-3, 4e-3, 8e-3)
SETTINGS = {
    "dense, AdamW": "dense",
    "own 5 %, AdamW as it is": "topk_allgather(density=0.05, arrange=False)",
    "own 1 %, AdamW as it is": "topk_allgather(density=0.01, arrange=False)",
    "own 5 %, momentum in the ledger": "topk_allgather(density=0.05)",
    "own 1 %, momentum in the ledger": "topk_allgather(density=0.01)",
    "leader's 5 %, AdamW as it is": "ar_topk(density=0.05, arrange=False)",
    "leader's 1 %, AdamW as it is": "ar_topk(density=0.01, arrange=False)",
    "leader's 5 %, momentum in the ledger": "ar_topk(density=0.05)",
    "leader's 1 %, momentum in the ledger": "ar_topk(density=0.01)",
}
"""What is compared, by the name in the table."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--tries", type=int, default=60, help="steps with each learning rate")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    asked = parser.parse_args()
    if asked.draw:
        draw(json.loads(RESULT.read_text()))
        return
    began = time.monotonic()
    preload("thinwire.tasks.side_by_side")
    with RankPool(WORLD) as pool, tempfile.TemporaryDirectory(prefix="optimizers-") as folder:
        best = tune(pool, asked.tries)
        story = final(pool, asked.steps, tuple(range(asked.seeds)), (best, folder))
    record = {
        "command": f"python -m benchmarks.optimizers --steps {asked.steps} --tries {asked.tries} --seeds {asked.seeds}",
        "what": {"ranks": WORLD, "model": vars(SHAPE), "windows": SIZE, "steps": asked.steps, "seeds": asked.seeds},
        "machine": {"python": platform.python_version(), "torch": torch.__version__, "system": platform.platform()},
        "seconds": round(time.monotonic() - began, 1),
        "unit": story.began.unit,
        "settings": {name: figures(story, name, best) for name in SETTINGS},
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    print(tables.settings(record))
    draw(record)


def job(chosen: dict[str, Method], steps: int) -> Race:
    """A race of settings under the names of the table."""
    named = tuple(replace(method, name=name) for name, method in chosen.items())
    options = {"shape": SHAPE, "size": SIZE}
    return Race(options=options, methods=named, steps=steps, exams=8)


def tune(pool: RankPool, steps: int) -> dict[str, float]:
    """The best learning rate of each setting, on the first seed."""
    found: dict[str, dict[float, float]] = {name: {} for name in SETTINGS}
    for rate in RATES:
        chosen = {name: replace(methods(text)[0], rate=rate) for name, text in SETTINGS.items()}
        finishes: list[Finish] = pool.run(race, job(chosen, steps), timeout=1200)[0]
        for finish in finishes:
            found[finish.method][rate] = finish.quality
    return {name: min(qualities, key=qualities.__getitem__) for name, qualities in found.items()}


def final(pool: RankPool, steps: int, seeds: tuple[int, ...], how: tuple[dict[str, float], str]) -> Story:
    """All seeds with the best rates."""
    best, folder = how
    chosen = {name: replace(methods(text)[0], rate=best[name]) for name, text in SETTINGS.items()}
    pool.run(race, replace(job(chosen, steps), seeds=seeds, folder=folder), timeout=2400)
    return read([folder])


def figures(story: Story, name: str, best: dict[str, float]) -> dict[str, object]:
    """What is written down of one setting."""
    method = story.methods[name]
    curve = {
        str(step): [course.exams[step].quality for course in method.courses] for step in sorted(method.courses[0].exams)
    }
    return {
        "method": SETTINGS[name],
        "words": method.words,
        "rate": best[name],
        "final": method.qualities,
        "megabytes": round((method.bytes_sent or 0.0) / 1e6, 3),
        "curve": curve,
    }


def draw(record: dict[str, Any]) -> None:
    """The curves as a picture: the median of the seeds, and a band from the best to the worst."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(drawing.SETTINGS):
        figure = Figure(figsize=(8.0, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        for number, (name, setting) in enumerate(record["settings"].items()):
            colour = drawing.COLOURS[number % len(drawing.COLOURS)]
            curve = {int(step): sorted(found) for step, found in setting["curve"].items() if int(step) > 0}
            steps, found = list(curve), list(curve.values())
            style = "-" if number < len(drawing.COLOURS) else "--"
            axes.plot(steps, [each[len(each) // 2] for each in found], style, color=colour, label=name)
            axes.fill_between(
                steps, [e[0] for e in found], [e[-1] for e in found], color=colour, alpha=0.15, linewidth=0
            )
        axes.set(xlabel="step", ylabel=f"held-out loss, {record['unit']}")
        axes.legend(fontsize="small", frameon=False)
        drawing.plain(axes)
        finals = "; ".join(f"{name}: {median(each['final']):.2f}" for name, each in record["settings"].items())
        title = "Held-out loss by optimizer setting"
        drawing.save(figure, PICTURE, title, f"At the end, in {record['unit']}: {finals}.")


if __name__ == "__main__":
    main()
