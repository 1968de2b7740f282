"""`thinwire probe`, started by torchrun on every host: what is the network like, link by link?"""

import json
import os
import struct
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import torch.distributed as dist
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from thinwire.control.network import Network
from thinwire.control.probing import Link, fit, matrix, pairs, probe_pair
from thinwire.errors import AttachError
from thinwire.lifecycle import shutdown
from thinwire.pace import Pace
from thinwire.planning.picture import check, draw_links
from thinwire.wire import GroupWire

_RECORD = struct.Struct("<II6d")


def probe(
    *, out: Annotated[list[Path] | None, Parameter(help="A picture, .png or .svg; or all figures, .json.")] = None
) -> int:
    """Measure latency and bandwidth between ranks: ``torchrun --nproc-per-node 1 --no-python thinwire probe``.

    Every two ranks exchange less than a megabyte each way. Of more than 8 ranks, each talks to a few.

    Raises:
        AttachError: It was not started by torchrun.
        PlanError: A file cannot be written there.
    """
    if "RANK" not in os.environ or int(os.environ.get("WORLD_SIZE", "1")) < 2:
        raise AttachError(
            "probe measures between ranks; start it on every host by torchrun with 2 ranks or more, for example "
            "torchrun --nproc-per-node 2 --no-python thinwire probe"
        )
    for path in out or ():
        if path.suffix != ".json":
            check(path)
    dist.init_process_group("gloo")
    try:
        links = measured(dist.get_rank(), dist.get_world_size())
        if dist.get_rank() == 0:
            report(links, dist.get_world_size(), out or [])
    finally:
        shutdown()
    return 0


def measured(rank: int, world: int) -> list[Link]:
    """All links, on every rank. Every rank must call it."""
    everybody = GroupWire(dist.new_group(list(range(world))), Pace(patience=120.0), life="probe")
    mine: list[Link] = []
    for pair in pairs(world):
        group = dist.new_group(list(pair))
        if rank in pair:
            mine += probe_pair(GroupWire(group, Pace(patience=120.0), life="probe"), pair)
        everybody.swap(b" ")  # one pair at a time
    rows = 2 * len(pairs(world))
    note = b"".join(map(_packed, mine)).ljust(rows * _RECORD.size, b"\0")
    links = [_unpacked(record) for heard in everybody.swap(note) for record in _RECORD.iter_unpack(heard)]
    return sorted((link for link in links if link.per_byte > 0.0), key=lambda link: (link.source, link.target))


def _packed(link: Link) -> bytes:
    ranges = (*link.latency_range, *link.per_byte_range)
    return _RECORD.pack(link.source, link.target, link.latency, link.per_byte, *ranges)


def _unpacked(record: tuple[int, int, float, float, float, float, float, float]) -> Link:
    source, target, latency, per_byte, *ranges = record
    return Link(
        source=source, target=target, latency=latency, per_byte=per_byte, latency_range=(ranges[0], ranges[1]),
        per_byte_range=(ranges[2], ranges[3]),
    )  # fmt: skip


def report(links: list[Link], world: int, files: list[Path]) -> None:
    """Show the matrices and the fit, and write what was asked for."""
    whole = fit(links)
    console = Console() if Console().is_terminal else Console(width=120)
    console.print(table_of(links, world))
    for line in (
        f"The slowest link: {whole}.",
        f"For a model: thinwire plan --hosts {world} --net FILE.json, with the file of --out FILE.json.",
        f"Dense synchronisation of 25 M parameters takes about {_dense_seconds(whole, world):.3g} s on it.",
    ):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for path in files:
        if path.suffix == ".json":
            found = {"world": world, "fit": asdict(whole), "links": [asdict(link) for link in links]}
            path.write_text(json.dumps(found, indent=1) + "\n")
        else:
            draw_links(links, world, path)


def table_of(links: list[Link], world: int) -> Table:
    """Who sends downwards, who receives to the right: milliseconds of a round, Mbit/s."""
    table = Table("from \\ to", *map(str, range(world)))
    latencies = matrix(links, world, lambda link: 1e3 * link.latency)
    rates = matrix(links, world, lambda link: 8e-6 / link.per_byte)
    for source, (times, speeds) in enumerate(zip(latencies, rates, strict=True)):
        cells = ["" if t is None or s is None else f"{t:.3g} ms, {s:.3g}" for t, s in zip(times, speeds, strict=True)]
        table.add_row(str(source), *cells)
    table.caption = "milliseconds of a round, Mbit/s one way"
    return table


def _dense_seconds(network: Network, world: int) -> float:
    return network.seconds(2 * (world - 1), 2 * (world - 1) / world * 1e8)
