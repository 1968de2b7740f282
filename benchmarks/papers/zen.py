"""Zen's claims beside measurements: `python benchmarks/papers/zen.py [--quick]`.

Bytes are those that ranks really send (ranks are threads, every letter is counted), balance is that of the owners that
`thinwire.OwnerReduce` uses, and real gradients are the error-fed ones of a small language model in training. Writes
`benchmarks/results/papers/zen.json`, the picture, and the tables of `docs/papers/zen.md`. `--read` only renews the
picture and the tables, from the file of the last run.
"""

import argparse
import json
import re
import sys
import tempfile
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from thinwire import traces
from thinwire.analysis.sparsity import characterise
from thinwire.codecs import Cheapest, Delta, IndexValue
from thinwire.exchanges import AllGather, AllReduce, OwnerReduce, RecursiveDoubling, volumes
from thinwire.exchanges.volumes import Profile
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.message import encode
from thinwire.protocols import Codec, Exchange, Outgoing
from thinwire.selectors import TopK
from thinwire.types import Selection, Turn

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "papers" / "zen.json"
PICTURE = ROOT / "docs" / "figures" / "zen.png"
PAGE = ROOT / "docs" / "papers" / "zen.md"
MARKED = r"(<!-- figures of benchmarks/results/papers/zen\.json: {name} -->\n)(.*?)(<!-- end of figures -->)"
WORLD, OWNERS = 8, 16
DENSITIES = (0.001, 0.01, 0.05, 0.1, 0.3)
OVERLAPS = (0.05, 0.1, 0.25, 0.5, 1.0)
NAMES = ("owner-reduce", "recursive doubling", "all-gather", "dense")


def drawn(profile: Profile, numel: int) -> list[Selection]:
    """Ranks that each draw from a common stock, so large that any two of them overlap as the profile says."""
    count = round(numel * profile.density)
    draw = torch.Generator().manual_seed(1)
    stock = torch.randperm(numel, generator=draw)[: round(count / profile.overlap)]
    lists = [stock[torch.randperm(len(stock), generator=draw)[:count]].sort().values.int() for _ in range(WORLD)]
    return [Selection(indices, torch.randn(count, generator=draw), numel) for indices in lists]


def sent(exchange: Exchange, selections: list[Selection], codec: Codec) -> int:
    """Bytes that the busiest rank sends."""

    def deliver(wire: ThreadWire) -> int:
        turn = Turn(step=0, group=0, rank=wire.rank, world=wire.world)
        letter = torch.empty(0, dtype=torch.uint8)
        sizes: list[int] = []
        if exchange.takes_letters:
            letter = encode(selections[wire.rank], codec, turn)
            sizes = [encode(each, codec, turn).numel() for each in selections]
        room = torch.empty(selections[0].numel)
        outgoing = Outgoing(
            selection=selections[wire.rank], room=room, shared=False, letter=letter, sizes=sizes, turn=turn, codec=codec
        )
        exchange.deliver(outgoing, wire)
        return wire.traffic.bytes_sent

    return max(run_threads(deliver, len(selections)))


def by_exchange(selections: list[Selection], codec: Codec) -> dict[str, float]:
    """Bytes of every exchange, as fractions of the dense gradient."""
    dense = 4.0 * selections[0].numel
    reduced = AllReduce().traffic(len(selections), int(dense), 4).bytes_sent
    exchanges: tuple[Exchange, ...] = (OwnerReduce(), RecursiveDoubling(), AllGather())
    return dict(
        zip(NAMES, [*(sent(each, selections, codec) / dense for each in exchanges), reduced / dense], strict=True)
    )


def formulas(profile: Profile) -> dict[str, float]:
    found = (
        volumes.owner_reduce(profile, WORLD),
        volumes.recursive_doubling(profile, WORLD),
        volumes.all_gather(profile, WORLD),
        volumes.all_reduce(WORLD),
    )
    return dict(zip(NAMES, found, strict=True))


def volume_rows(numel: int) -> list[dict[str, Any]]:
    """Formula, indices as whole numbers, and whatever is cheapest, at 8 ranks."""
    rows = []
    for density in DENSITIES:
        for overlap in OVERLAPS:
            # Ranks that draw by lot have at least so much in common.
            if overlap < density:
                continue
            profile = Profile(density=density, overlap=overlap)
            selections = drawn(profile, max(numel, round(numel / 20 / density)))
            rows.append(
                {
                    "density": density,
                    "overlap": overlap,
                    "densification": profile.grown(WORLD),
                    "formula": formulas(profile),
                    "index+value": by_exchange(selections, IndexValue()),
                    "cheapest": by_exchange(selections, Cheapest()),
                }
            )
            print(f"volumes at density {density}, overlap {overlap}", file=sys.stderr, flush=True)
    return rows


def zipf(rank: int, draws: int, units: int) -> Tensor:
    """Rows of a vocabulary sorted by frequency that one rank touches."""
    weights = np.arange(1, units + 1, dtype=float) ** -1.1
    return torch.from_numpy(np.unique(np.random.default_rng(rank).choice(units, draws, p=weights / weights.sum())))


def balance_rows() -> list[dict[str, Any]]:
    """How evenly three maps deal out skewed rows, and the elements of skewed rows, to 16 owners."""
    rows = [zipf(rank, 60_000, 400_000) for rank in range(4)]
    wide = [(torch.arange(64) + 64 * zipf(rank, 4_000, 100_000)[:, None]).reshape(-1) for rank in range(4)]
    found = []
    for name, lists, units in (("Zipf rows", rows, 400_000), ("elements of Zipf rows", wide, 6_400_000)):
        seen = characterise(lists, units, OWNERS)
        kinds = {kind: vars(getattr(seen, kind)) for kind in ("hashed", "striped", "cut")}
        found.append({"what": name, "density": seen.density, "skewness": seen.skewness, **kinds})
    return found


def real_rows(quick: bool) -> list[dict[str, Any]]:
    """Error-fed gradients of a language model in training on 8 ranks."""
    steps = (0, 5) if quick else (0, 20, 60)
    recording = traces.Recording(steps=steps, world=WORLD, elements=60_000 if quick else 600_000)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        trace = traces.record(folder, recording)
        for step in steps:
            for density in (0.001, 0.01, 0.05):
                selector = TopK(density=density)
                selections = [selector.select(trace.gradient(step, rank)) for rank in range(WORLD)]
                seen = characterise([each.indices for each in selections], trace.numel)
                row = {"step": step, "density": density, "overlap": seen.overlap, "skewness": seen.skewness}
                row |= {"densification": seen.densification[-1], "formula": formulas(seen.profile)}
                row |= {"hashed": vars(seen.hashed), "cut": vars(seen.cut)}
                found.append(row | {"index+value": by_exchange(selections, IndexValue())})
                found[-1]["delta gathered"] = by_exchange(selections, Delta())["all-gather"]
                found[-1]["cheapest"] = by_exchange(selections, Cheapest())
    return found


def agreement(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """How often two exchanges are in the same order by formula and by counted bytes, of how many."""
    same = [
        (row["formula"][one] < row["formula"][other]) == (row["index+value"][one] < row["index+value"][other])
        for row in rows
        for one, other in combinations(NAMES, 2)
    ]
    return sum(same), len(same)


def volume_table(run: dict[str, Any]) -> str:
    lines = ["| density | overlap | owner-reduce | doubling | all-gather | owner-reduce, `Cheapest` |"]
    lines += ["|" + "---:|" * 6]
    for row in run["volumes"]:
        pairs = " | ".join(f"{row['formula'][name]:.4f} / {row['index+value'][name]:.4f}" for name in NAMES[:3])
        cheapest = f"{row['cheapest']['owner-reduce']:.4f}"
        lines.append(f"| {100 * row['density']:g} % | {row['overlap']:g} | {pairs} | {cheapest} |")
    same, of = agreement(run["volumes"])
    worst = max(abs(row["index+value"][name] / row["formula"][name] - 1) for row in run["volumes"] for name in NAMES)
    lines += [
        "",
        f"Dense all-reduce sends {run['volumes'][0]['index+value']['dense']:.2f}. Of {of} pairs of exchanges, ",
    ]
    lines[-1] += f"{same} are in the order of the formulas; the largest difference to a formula is {100 * worst:.1f} %."
    return "\n".join(lines)


def balance_table(run: dict[str, Any]) -> str:
    lines = ["| what | skewness | hashed: push / pull | striped: push / pull | even cut: push / pull |"]
    lines += ["|---|" + "---:|" * 4]
    for row in run["balance"]:
        pairs = " | ".join(
            f"{row[kind]['push']:.3f} / {row[kind]['pull']:.3f}" for kind in ("hashed", "striped", "cut")
        )
        lines.append(f"| {row['what']} | {row['skewness']:.1f} | {pairs} |")
    return "\n".join(lines)


def real_table(run: dict[str, Any]) -> str:
    lines = ["| step | sent | overlap | densification | owner-reduce | doubling | all-gather | hashed | even cut |"]
    lines += ["|" + "---:|" * 9]
    for row in run["real"]:
        sizes = [row["cheapest"][name] for name in NAMES[:2]] + [row["delta gathered"]]
        worst = " | ".join(f"{max(row[kind].values()):.2f}" for kind in ("hashed", "cut"))
        head = f"| {row['step']} | {100 * row['density']:g} % | {row['overlap']:.2f} | {row['densification']:.2f}"
        lines.append(f"{head} | {' | '.join(f'{size:.4f}' for size in sizes)} | {worst} |")
    return "\n".join(lines)


TABLES = {"volumes": volume_table, "balance": balance_table, "real": real_table}


def renewed(page: str, run: dict[str, Any]) -> str:
    """The page with the tables of a run."""
    for name, table in TABLES.items():
        text = table(run)
        page, count = re.subn(
            MARKED.format(name=name),
            lambda match, text=text: f"{match[1]}\n{text}\n\n{match[3]}",
            page,
            flags=re.DOTALL,
        )
        if count != 1:
            raise ValueError(f"{count} places are marked for {name}; there should be one")
    return page


def draw(run: dict[str, Any], path: Path) -> None:
    """Volumes over overlap, a panel for each density: lines are formulas, marks are counted bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 3).reshape(-1)
    colours = ("#0072B2", "#D55E00", "#009E73", "#8c959f")
    for axes, density in zip(panels, DENSITIES, strict=False):
        rows = [row for row in run["volumes"] if row["density"] == density]
        line = np.geomspace(rows[0]["overlap"], 1.0, 50)
        for name, colour in zip(NAMES, colours, strict=True):
            said = [formulas(Profile(density=density, overlap=float(o)))[name] for o in line]
            axes.plot(line, said, color=colour, label=name)
            axes.plot([r["overlap"] for r in rows], [r["index+value"][name] for r in rows], "o", color=colour)
        cheapest = [r["cheapest"]["owner-reduce"] for r in rows]
        axes.plot([r["overlap"] for r in rows], cheapest, "x", color=colours[0], label="owner-reduce, cheapest codec")
        axes.set(title=f"density {100 * density:g} %", xscale="log", yscale="log", xlabel="overlap of two ranks")
    panels[0].set_ylabel("sent by the busiest rank / dense gradient")
    panels[0].legend(fontsize="x-small")
    axes = panels[-1]
    for place, row in enumerate(run["balance"]):
        worst = [max(row[kind].values()) for kind in ("hashed", "striped", "cut")]
        axes.bar([x + 0.4 * place for x in range(3)], worst, 0.38, color=colours[place], label=row["what"])
    axes.axhline(1.1, color="#8c959f", linewidth=0.8)
    axes.set_xticks([0.2, 1.2, 2.2], ["hashed", "striped", "even cut"])
    axes.set(title=f"imbalance at {OWNERS} owners", yscale="log")
    axes.legend(fontsize="x-small")
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller tensors; only print the tables")
    parser.add_argument("--read", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    if asked.read:
        run = json.loads(RESULT.read_text())
    else:
        run = {
            "world": WORLD,
            "owners": OWNERS,
            "crossover": {world: volumes.least_overlap(world) for world in (2, 3, 4, 8, 16, 64)},
            "volumes": volume_rows(20_000 if asked.quick else 400_000),
            "balance": balance_rows(),
            "real": real_rows(asked.quick),
        }
    if asked.quick:
        print("\n\n".join(table(run) for table in TABLES.values()))
        return 0
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(run, indent=1) + "\n")
    draw(run, PICTURE)
    PAGE.write_text(renewed(PAGE.read_text(), run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
