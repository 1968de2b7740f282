"""`thinwire lab`: programs on emulated hosts with thin links."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from thinwire.lab import NETWORKS, clean, cluster, find, network, read_schedule, run_in
from thinwire.lab.checking import check as checked
from thinwire.lab.entrance import missing
from thinwire.lab.errors import LabRefused
from thinwire.lab.quantities import show_rate, show_time

lab = App(name="lab", help="Run programs on emulated hosts with thin links.", help_format="plaintext")

_COLOURS = (36, 32, 33, 35, 34, 31)


@lab.command
def run(
    *program: Annotated[str, Parameter(allow_leading_hyphen=True)],
    net: str = "lan-1g",
    hosts: int = 2,
    ranks_per_host: int = 1,
    schedule: Path | None = None,
) -> int:
    """Run a program as torchrun would, on every host of an emulated network.

    Args:
        program: What to run, behind two hyphens: -- python train.py ...
        net: A name of `thinwire lab list`, or a description such as "rate=100mbit delay=20ms loss=1%".
        hosts: How many.
        ranks_per_host: How many of the program on each host.
        schedule: A file that says how the network changes during the run.

    Returns:
        0, or the exit status of the first rank that failed.
    """
    if not program:
        raise LabRefused("nothing to run was given; write thinwire lab run --hosts 2 -- python train.py")
    ended = run_in(
        net,
        hosts,
        program,
        ranks_per_host=ranks_per_host,
        schedule=None if schedule is None else read_schedule(schedule),
        on_line=_print_line,
    )
    failed = [each for each in ended if each.code]
    for each in failed:
        print(f"thinwire: rank {each.rank} on host {each.host} ended with {each.code}", file=sys.stderr)
    return abs(failed[0].code) if failed else 0


def _print_line(rank: int, stream: str, text: str) -> None:
    to = sys.stderr if stream == "err" else sys.stdout
    mark = f"[{rank}]"
    if to.isatty():
        mark = f"\x1b[{_COLOURS[rank % len(_COLOURS)]}m{mark}\x1b[0m"
    print(mark, text, file=to, flush=True)


@lab.command(name="list")
def list_() -> int:
    """List the networks that have names, and the labs that run on this machine."""
    width = max(map(len, NETWORKS))
    for net in NETWORKS.values():
        moving = ", changing" if net.schedule else ""
        print(f"{net.name:{width}}  {net.path}{moving}: {net.about}")
    print()
    labs = find()
    for each in labs:
        whose = "left behind: thinwire lab clean" if each.orphaned else f"of process {each.owner}"
        print(f"a lab of {each.hosts} hosts, {whose}; kept by process {each.keeper}")
    print(missing() or ("" if labs else "no lab runs on this machine"))
    return 0


@lab.command(name="clean")
def clean_() -> int:
    """Remove labs whose owners are gone. A lab of a process that still runs is never touched."""
    removed = clean()
    left = find()
    print(f"removed {len(removed)} labs; {len(left)} of live processes stay")
    return 1 if any(each.orphaned for each in left) else 0


@lab.command
def check(*, net: str = "lan-1g", hosts: int = 4, seconds: float = 2.0) -> int:
    """Measure what the links of a network really carry, beside what they were set to.

    Args:
        net: A name, or a description.
        hosts: How many.
        seconds: Of each measurement of throughput.

    Returns:
        The exit status.
    """
    chosen = network(net)
    print(f"{hosts} hosts on {chosen.name}: {chosen.path}; one TCP stream for each pair, all pairs at once")
    print(f"{'from':>5} {'to':>3} {'rate set':>10} {'carried':>10} {'':>6} {'round trip set':>15} {'found':>9}")
    with cluster(hosts, chosen) as made:
        for path in checked(made, seconds):
            ratio = "" if path.rate is None else f"{100 * path.found_rate / path.rate:.1f}%"
            trip = "-" if path.found_round_trip is None else show_time(path.found_round_trip)
            print(
                f"{path.sender:>5} {path.receiver:>3} {show_rate(path.rate):>10} {show_rate(path.found_rate):>10} "
                f"{ratio:>6} {show_time(path.round_trip):>15} {trip:>9}"
            )
    return 0
