"""The mind beside fixed plans, on emulated networks: prediction, regret, reaction to a change, overhead.

    python benchmarks/control/regret.py --net office-100m --json benchmarks/results/control/office-100m.json
    python benchmarks/control/regret.py --net office-100m --change rate=10mbit
    python benchmarks/control/regret.py --net loopback --hosts 2 --parameters 25000000

Every rank is a process on a host of its own (`thinwire.lab`; needs root), or on loopback. The adaptive plan trains
first; each fixed plan, for some steps, behind it, on the same network. A plan's *rate* is the square root of its
gain, by the curve that the controller has seen, over the median of its steps: dense steps' worth for each second.
*Regret* is the best fixed rate over the adaptive one, less one, among plans with at least the gain that the policy
demands. With ``--change`` all links change in the middle of the adaptive run.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire import lab
from thinwire.bench.machine import facts
from thinwire.control.controller import Controller, offers_of
from thinwire.control.menu import FAMILIES, Choice, menu_of
from thinwire.control.pilot import Pilot
from thinwire.control.policies import MostProgress
from thinwire.observe import events

CHANGE = "half of the adaptive run is over"
NEAREST = (("own-int4", 0.004), ("own-int4", 0.04), ("own-f32", 0.01), ("owners", 0.04), ("leader", 0.05))


def model(parameters: int) -> nn.Module:
    """Square layers of a million weights each."""
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(1000, 1000) for _ in range(round(parameters / 1_001_000))))


class Clock:
    """Seconds that the pilots of this process take."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps: list[float] = []
        for name in ("look", "note", "hear", "turn"):
            setattr(Pilot, name, self._timed(getattr(Pilot, name)))

    def _timed(self, method: Any) -> Any:
        def timed(*args: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*args)
            finally:
                self.seconds += time.perf_counter() - began
                if method.__name__ == "turn":
                    self.steps.append(self.seconds)
                    self.seconds = 0.0

        return timed


def trained(plan: Any, parameters: int, steps: int, change: bool = False) -> tuple[Any, list[float]]:
    """Train, and say how long each step took."""
    ddp = DistributedDataParallel(model(parameters))
    sync = None if plan is None else thinwire.attach(ddp, plan)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1e-3)
    chance = torch.Generator().manual_seed(dist.get_rank())
    taken = []
    for step in range(steps):
        if change and step == steps // 2 and dist.get_rank() == 0:
            print(CHANGE, flush=True)
        began = time.perf_counter()
        optimizer.zero_grad()
        batch = torch.randn(8, 1000, generator=chance)
        (ddp(batch) - batch).square().mean().backward()
        optimizer.step()
        taken.append(time.perf_counter() - began)
    if sync is not None:
        sync.state_dict()
    return sync, taken


def nearest(family: str, density: float) -> Choice:
    """The candidate of a family with about that density."""
    densities = FAMILIES[family].densities
    return Choice(family, min(range(len(densities)), key=lambda place: abs(densities[place] - density)))


def work(asked: argparse.Namespace) -> None:
    """One rank."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    clock, decisions = Clock(), []
    stop = events.listen(lambda event: decisions.append(dict(event)) if event.get("kind") == "decision" else None)
    controller = Controller()
    sync, taken = trained(controller, asked.parameters, asked.steps, change=bool(asked.change))
    stop()
    mind, state = list(clock.steps), sync._pilot._state
    menu = menu_of(controller.families, tuple(sync._pilot._sizes), dist.get_world_size(), controller.feedback)
    offers = offers_of(state, menu)
    explained = sync.explain()
    fixed: dict[str, Any] = {}
    choices = {str(each): each for each in (*(nearest(*each) for each in NEAREST), state.choice, Choice("dense", 0))}
    for name, choice in choices.items() if not asked.change else ():
        _, seconds = trained(choice.plan(controller.feedback), asked.parameters, asked.fixed)
        place = menu.places[choice]
        fixed[name] = {
            "seconds": seconds[asked.fixed // 3 :],
            "predicted": float(offers.steps[place]),
            "gain": float(offers.gains[place]),
        }
    plain = trained(None, asked.parameters, asked.fixed)[1][asked.fixed // 3 :] if not asked.change else []
    if dist.get_rank() == 0:
        found = {"seconds": taken, "decisions": decisions, "mind_seconds": mind, "fixed": fixed, "plain": plain}
        print(json.dumps({**found, "explained": explained, "sizes": menu.sizes}, default=str), flush=True)
    thinwire.shutdown()


def measured(asked: argparse.Namespace) -> dict[str, Any]:
    """All ranks on one network."""
    options = [f"--parameters={asked.parameters}", f"--steps={asked.steps}", f"--fixed={asked.fixed}"]
    program = [sys.executable, str(Path(__file__).resolve()), "--work", *options, f"--change={asked.change}"]
    net = "rate=4gbit" if asked.net == "loopback" else asked.net
    with lab.cluster(hosts=asked.hosts, net=net, check=asked.net != "loopback") as cluster:

        def heard(rank: int, stream: str, line: str) -> None:
            if line.strip() == CHANGE:
                cluster.set_net(asked.change)

        ended = cluster.start(program, on_line=heard).wait(timeout=170.0)
    if any(each.code for each in ended):
        sys.exit("\n".join(str(each.output)[-2000:] for each in ended))
    found: dict[str, Any] = json.loads(str(ended[0].output).strip().splitlines()[-1])
    return found


def summary(found: dict[str, Any], steps: int) -> dict[str, Any]:
    """What is to be said about it."""
    decisions, late = found["decisions"], found["seconds"][-20:]
    wrong = sorted(abs(d["predicted"] / d["measured"] - 1) for d in decisions if d["measured"] and d["predicted"])
    said: dict[str, Any] = {
        "step": median(late),
        "plan": decisions[-1]["choice"],
        "switches": [d["step"] for d in decisions if d["switched"]],
        "prediction_error": [median(wrong), quantiles(wrong, n=10)[-1]] if len(wrong) > 2 else None,
        "mind_share": sum(found["mind_seconds"][-20:]) / sum(late),
    }
    if found["fixed"]:
        rates = {name: each["gain"] ** 0.5 / median(each["seconds"]) for name, each in found["fixed"].items()}
        mine = decisions[-1]["gain"] ** 0.5 / said["step"]
        allowed = {name: rate for name, rate in rates.items() if found["fixed"][name]["gain"] >= MostProgress().floor}
        best = max(allowed, key=lambda name: allowed[name])
        said |= {"best": best, "regret": allowed[best] / mine - 1, "plain": median(found["plain"])}
    return said


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", action="store_true", help="be one rank")
    parser.add_argument("--net", default="office-100m", help="of `thinwire lab list`, or a description, or loopback")
    parser.add_argument("--change", default="", help="the network of the second half of the adaptive run")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--parameters", type=int, default=4_000_000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--fixed", type=int, default=9, help="steps of each fixed plan; the first third is left out")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.work:
        work(asked)
        return
    found = measured(asked)
    said = summary(found, asked.steps)
    net = f"{asked.net} -> {asked.change}" if asked.change else asked.net
    print(f"{net}, {asked.hosts} hosts, {asked.parameters:,} parameters")
    for name, value in said.items():
        print(f"  {name}: {value}")
    for name, each in found["fixed"].items():
        print(f"  {name}: {1e3 * median(each['seconds']):.1f} ms a step, predicted {1e3 * each['predicted']:.1f} ms")
    print(f"  {found['explained']}")
    if asked.json:
        options = {name: value for name, value in vars(asked).items() if name not in ("work", "json")}
        asked.json.write_text(
            json.dumps({"machine": facts(), "options": options, **said, **found}, default=str, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
