"""Put the measured figures into the pages: `python benchmarks/pages.py`, from the runs under `results`.

A page says where a run's figures go, and they are written there::

    <!-- figures of benchmarks/results/kernels.json -->
    <!-- end of figures -->
"""

import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import thinwire.bench.exchange.picture
import thinwire.bench.exchange.table
import thinwire.bench.kernels.picture
import thinwire.bench.kernels.table
from thinwire.analysis import tables
from thinwire.bench.exchange.record import Run as Exchanges
from thinwire.bench.kernels.record import Run as Kernels

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run's figures go."""

    run: Path
    page: Path
    figures: Callable[[Path], str]
    """The text for the page, from the run's file."""
    part: str = ""
    """Which of several places for this run's figures it is."""
    draw: Callable[[Path, Path], None] | None = None
    """Draws the run of the first file into the second."""
    picture: Path = ROOT
    must: bool = True
    """The page must have such a place."""


def _kernels(run: Path) -> str:
    return thinwire.bench.kernels.table.for_page(Kernels.read(run))


def _draw_kernels(run: Path, picture: Path) -> None:
    thinwire.bench.kernels.picture.draw(Kernels.read(run), picture)


def _exchanges(run: Path) -> str:
    table = thinwire.bench.exchange.table
    return table.for_page(Exchanges.read(run), table.SHORT)


def _summary(run: Path) -> str:
    return thinwire.bench.exchange.table.summary(Exchanges.read(run))


def _draw_exchanges(run: Path, picture: Path) -> None:
    thinwire.bench.exchange.picture.draw(Exchanges.read(run), picture)


def _json(part: Callable[[tables.Result], str]) -> Callable[[Path], str]:
    return lambda path: part(json.loads(path.read_text()))


def _paper(page: str, run: str, *parts: Callable[[tables.Result], str]) -> tuple[Place, ...]:
    """The places of a paper's page: each table where its name is."""

    file = ROOT / "benchmarks" / "results" / "papers" / run
    return tuple(
        Place(run=file, page=ROOT / "docs" / "papers" / page, figures=_json(part), part=part.__name__) for part in parts
    )


PLACES = (
    *_paper("gaussian-k.md", "gaussian_k.json", tables.made_hits, tables.training_hits, tables.contraction),
    *_paper("importance-weighted-pruning.md", "iwp.json", tables.quality),
    Place(
        run=ROOT / "benchmarks" / "results" / "kernels.json", page=ROOT / "docs" / "kernels.md",
        figures=_kernels, draw=_draw_kernels, picture=ROOT / "docs" / "figures" / "kernels.svg",
    ),
    Place(
        run=ROOT / "benchmarks" / "results" / "exchange.json", page=ROOT / "docs" / "exchanges.md",
        figures=_exchanges, draw=_draw_exchanges, picture=ROOT / "docs" / "figures" / "exchanges.svg",
    ),
    Place(
        run=ROOT / "benchmarks" / "results" / "exchange.json", page=ROOT / "README.md", figures=_summary, must=False,
    ),
    Place(
        run=ROOT / "benchmarks" / "results" / "optimizers.json", page=ROOT / "docs" / "optimizers.md",
        figures=_json(tables.settings),
    ),
    Place(
        run=ROOT / "benchmarks" / "results" / "training.json", page=ROOT / "docs" / "train.md",
        figures=_json(tables.side_by_side),
    ),
)  # fmt: skip


def renewed(page: str, place: Place) -> str:
    """The page with the run's figures in the place that is marked for them."""
    name = re.escape(place.run.relative_to(ROOT).as_posix() + (f": {place.part}" if place.part else ""))
    marked = re.compile(rf"(<!-- figures of {name} -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)
    figures = place.figures(place.run)
    text, count = marked.subn(lambda match: f"{match[1]}\n{figures}\n{match[3]}", page)
    if count > 1 or (place.must and not count):
        raise ValueError(f"{count} places are marked for {place.run.name}; there should be one")
    return text


def main() -> int:
    for place in (place for place in PLACES if place.run.exists()):
        place.page.write_text(renewed(place.page.read_text(), place))
        if place.draw is not None:
            place.draw(place.run, place.picture)
    for drawn in (ROOT / "benchmarks" / "results" / "papers").glob("*.png"):
        shutil.copy(drawn, ROOT / "docs" / "figures" / drawn.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
