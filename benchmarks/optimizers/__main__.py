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

import torch

from thinwire.analysis import tables
from thinwire.lab.ranks import RankPool, preload
from thinwire.report.chart import Chart, Line
from thinwire.report.png import save
from thinwire.report.quality import held_out
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
    asked = parser.parse_args()
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
    draw(story)


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


def draw(story: Story) -> None:
    """The curves as a picture."""
    colors = {name: number for number, name in enumerate(story.methods)}
    chart: Chart = held_out(story, colors)
    lines: list[Line] = [
        replace(line, x=line.x[1:], y=line.y[1:], low=line.low[1:], high=line.high[1:]) for line in chart.lines
    ]
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    save(replace(chart, title="Held-out loss by optimizer setting", lines=lines), PICTURE)


if __name__ == "__main__":
    main()
