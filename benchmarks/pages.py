"""Put the measured figures into the documentation: `python benchmarks/pages.py`, from the runs under `results`."""

import re
import sys
from pathlib import Path

from thinwire.bench.kernels import picture, table
from thinwire.bench.kernels.record import Run

ROOT = Path(__file__).resolve().parents[1]
RUN = ROOT / "benchmarks" / "results" / "kernels.json"
PAGE = ROOT / "docs" / "kernels.md"
PICTURE = ROOT / "docs" / "figures" / "kernels.svg"
MARKED = re.compile(
    r"(<!-- figures of benchmarks/results/kernels\.json -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL
)


def renewed(page: str, run: Run) -> str:
    """The page with the run's table in the place that is marked for it."""
    text, count = MARKED.subn(lambda match: f"{match[1]}\n{table.for_page(run)}\n{match[3]}", page)
    if count != 1:
        raise ValueError(f"{count} places are marked for figures; there should be one")
    return text


def main() -> int:
    run = Run.read(RUN)
    PAGE.write_text(renewed(PAGE.read_text(), run))
    picture.draw(run, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
