"""Put the measured figures into the documentation: `python benchmarks/pages.py`, from the runs under `results`."""

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from thinwire.analysis import tables
from thinwire.bench.kernels import picture, table
from thinwire.bench.kernels.record import Run

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "benchmarks" / "results" / "kernels.json"
PAGE = ROOT / "docs" / "kernels.md"
PICTURE = ROOT / "docs" / "figures" / "kernels.svg"
PAPERS = ROOT / "benchmarks" / "results" / "papers"
FIGURES = {
    "gaussian-k.md": ("gaussian_k", (tables.made_hits, tables.training_hits, tables.contraction)),
    "importance-weighted-pruning.md": ("iwp", (tables.quality,)),
}
"""Which page has which tables of which run."""


def filled(page: str, name: str, text: str) -> str:
    """The page with a text in the place that is marked for it.

    Raises:
        ValueError: No place, or more than one, is marked.
    """
    marked = re.compile(rf"(<!-- figures of {re.escape(name)} -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)
    page, count = marked.subn(lambda match: f"{match[1]}\n{text}\n{match[3]}", page)
    if count != 1:
        raise ValueError(f"{count} places are marked for figures of {name}; there should be one")
    return page


def renewed(page: str, run: Run) -> str:
    """The kernels' page with the run's table in the place that is marked for it."""
    return filled(page, "benchmarks/results/kernels.json", table.for_page(run))


def paper(page: str, name: str, parts: tuple[Callable[[tables.Result], str], ...]) -> str:
    """A paper's page with its tables."""
    result = json.loads((PAPERS / f"{name}.json").read_text())
    for part in parts:
        page = filled(page, f"benchmarks/results/papers/{name}.json: {part.__name__}", part(result))
    return page


def main() -> int:
    run = Run.read(RUN)
    PAGE.write_text(renewed(PAGE.read_text(), run))
    picture.draw(run, PICTURE)
    for file, (name, parts) in FIGURES.items():
        path = ROOT / "docs" / "papers" / file
        path.write_text(paper(path.read_text(), name, parts))
    for drawn in PAPERS.glob("*.png"):
        shutil.copy(drawn, ROOT / "docs" / "figures" / drawn.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
