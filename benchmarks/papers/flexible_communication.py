"""AR-Topk and the exchanges built for latency, measured on emulated networks.

    python benchmarks/papers/flexible_communication.py

Every rank is a process on a host of its own (`thinwire.lab`; needs root), and synchronises one gradient of normal
numbers under one plan after the other, in turns. Time is that of the slowest rank, from the gradient to the mean,
selection included; rounds and bytes are what the busiest rank's wire counts. Beside them stands what the paper's
formulas say for the delay and the rate of the emulated links. Writes `flexible_communication.json` and prints the
tables of `docs/papers/flexible-communication.md`; ``--show`` prints them from the file.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from thinwire import lab, recipes
from thinwire.carry import Cargo, carry
from thinwire.exchanges import DirectGather
from thinwire.layout import Layout
from thinwire.ledger import Ledger
from thinwire.membership import Membership
from thinwire.papers import flexible_communication as paper
from thinwire.plans import Plan
from thinwire.types import Turn

RESULT = Path(__file__).resolve().parents[1] / "results" / "papers" / "flexible_communication.json"
NUMEL = 1_000_000
DENSITIES = (0.1, 0.01, 0.001)
MEGABITS, MILLISECONDS = (100, 100, 1000), (20, 2, 20)
PAPER = {"all-gather": paper.GATHER, "ART backend": paper.RING, "ART doubling": paper.TREE}


def plans(density: float) -> dict[str, Plan]:
    """What is compared."""
    gathered = recipes.topk_allgather(density)
    ways = {f"ART {way}": recipes.ar_topk(density, exchange=way) for way in ("backend", "ring", "doubling", "direct")}
    strongest = recipes.ar_topk(density, leader="norm")
    return {
        "all-gather": gathered,
        "direct gather": gathered.replace(exchange=DirectGather()),
        **ways,
        "VAR": strongest,
    }


def work(repeats: int) -> None:
    """One rank: time each plan, in turns, and print what came of it."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    assert dist.group.WORLD is not None
    wire = Membership(dist.group.WORLD, 120.0, 1).wire
    fresh = torch.randn(NUMEL, generator=torch.Generator().manual_seed(rank))
    layout = Layout.of({"w": NUMEL})
    found: dict[str, list[tuple[float, int, int]]] = {}
    step = 0
    with torch.no_grad():
        for density in DENSITIES:
            ledgers = {name: Ledger() for name in plans(density)}
            for number in range(repeats + 2):  # letters find out twice how long they are
                for name, plan in plans(density).items():
                    dist.barrier()
                    turn = Turn(step=step, group=0, rank=rank, world=world)
                    before, began = wire.traffic, time.perf_counter()
                    carried = carry(Cargo(gradient=fresh, layout=layout, turn=turn), plan, ledgers[name], wire)
                    seconds, after = time.perf_counter() - began, wire.traffic
                    assert carried.page is not None
                    carried.page.commit()
                    cost = (seconds, after.rounds - before.rounds, after.bytes_sent - before.bytes_sent)
                    found.setdefault(f"{density} {name}", []).extend([cost] if number > 1 else [])
                    step += 1
    print(json.dumps(found))


def measured(world: int, megabits: int, milliseconds: int, repeats: int) -> dict[str, Any]:
    """All plans on one network."""
    net = f"rate={megabits}mbit delay={milliseconds}ms"
    with lab.cluster(hosts=world, net=net) as cluster:
        program = [sys.executable, str(Path(__file__).resolve()), "--work", "--repeats", str(repeats)]
        ended = cluster.run(program, timeout=170.0)
    if any(each.code for each in ended):
        sys.exit("\n".join(str(each.output) for each in ended))
    ranks = [json.loads(str(each.output).splitlines()[-1]) for each in ended]
    cells = {}
    for name in ranks[0]:
        runs = list(zip(*(rank[name] for rank in ranks), strict=True))
        cells[name] = {
            "seconds": [max(cost[0] for cost in run) for run in runs],
            "rounds": max(cost[1] for cost in runs[-1]),
            "bytes": max(cost[2] for cost in runs[-1]),
        }
    return {"world": world, "megabits": megabits, "milliseconds": milliseconds, "numel": NUMEL, "cells": cells}


def predicted(network: dict[str, Any], density: float, name: str) -> float | None:
    """Seconds by the paper's formula, where it has one."""
    if name not in PAPER:
        return None
    bandwidth, latency = network["megabits"] * 1e6 / 8, network["milliseconds"] / 1e3
    case = paper.Setting(
        ranks=network["world"], size=4.0 * NUMEL, density=density, latency=latency, bandwidth=bandwidth
    )
    return paper.COSTS[PAPER[name]](case)


def show(networks: list[dict[str, Any]]) -> None:
    """The tables."""
    for network in networks:
        print(f"\n{network['world']} ranks, {network['megabits']} Mbit/s, {network['milliseconds']} ms one way:\n")
        print("| density | plan | ms | rounds | kB sent | ms by the paper's formula |")
        print("|---:|---|---:|---:|---:|---:|")
        for key, cell in network["cells"].items():
            density, name = key.split(" ", 1)
            formula = predicted(network, float(density), name)
            said = "" if formula is None else f"{1e3 * formula:.0f}"
            numbers = f"{1e3 * median(cell['seconds']):.0f} | {cell['rounds']} | {cell['bytes'] / 1e3:.1f}"
            print(f"| {density} | {name} | {numbers} | {said} |")


def main() -> None:
    """Measure, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", action="store_true", help="be one rank")
    parser.add_argument("--show", action="store_true", help="print the tables of the last run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=4)
    options = parser.parse_args()
    if options.work:
        work(options.repeats)
        return
    if not options.show:
        networks = [
            measured(options.ranks, *link, options.repeats) for link in zip(MEGABITS, MILLISECONDS, strict=True)
        ]
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(networks, indent=1) + "\n")
    show(json.loads(RESULT.read_text()))


if __name__ == "__main__":
    main()
