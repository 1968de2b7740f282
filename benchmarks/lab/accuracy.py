"""How true the lab is: what links carry, delay and lose, beside what they were set to.

python benchmarks/lab/accuracy.py --json benchmarks/results/lab.json
"""

import argparse
import json
import math
import sys
import time
from typing import Any

from thinwire import lab
from thinwire.lab.checking import check

RATES = (10e6, 30e6, 100e6, 300e6, 1e9, 2e9)
DELAYS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
LOSSES = (0.001, 0.01, 0.05)
CHANGES = ((100e6, 10e6), (10e6, 100e6), (100e6, 1e9), (1e9, 20e6))
WINDOW = 0.05

# Sends for ever from host 0 to host 1, by datagrams, so that only the link decides when which byte arrives, or by TCP.
# What has arrived is told every few milliseconds.
STREAM = """
import os, socket, sys, time
kind = getattr(socket, os.environ["KIND"])
there = ("10.77.0.2", int(os.environ["MASTER_PORT"]))
end = socket.socket(socket.AF_INET, kind)
if os.environ["RANK"] == "1":
    end.bind(there)
    if kind == socket.SOCK_STREAM:
        end.listen()
        end = end.accept()[0]
    buffer, total, told = bytearray(1 << 18), 0, 0.0
    while data := end.recv_into(buffer):
        total, now = total + data, time.monotonic()
        if now > told + 0.005:
            told = now
            print(now, total)
else:
    time.sleep(0.3)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
    end.connect(there)
    while True:
        end.send(bytes(1472))
"""


def throughput(hosts: int, rate: float, delay: float, seconds: float) -> dict[str, Any]:
    net = lab.Network(name="trial", path=lab.Link(rate=rate, delay=delay))
    row: dict[str, Any] = {"hosts": hosts, "rate": rate, "delay": delay}
    try:
        with lab.cluster(hosts, net) as cluster:
            paths = check(cluster, seconds)
    except (lab.LabFailed, lab.LabRefused) as error:
        return {**row, "refused": str(error)}
    trips = [path.found_round_trip for path in paths]
    return {**row, "found": [path.found_rate for path in paths], "round_trips": trips}


def round_trip(hosts: int, delay: float) -> dict[str, Any]:
    net = lab.Network(name="trial", path=lab.Link(rate=100e6, delay=delay))
    with lab.cluster(hosts, net) as cluster:
        pairs = [(host, (host + 1) % hosts) for host in range(hosts)]
        return {"hosts": hosts, "delay": delay, "found": cluster.round_trips(pairs, 15)}


def loss(share: float, count: int) -> dict[str, Any]:
    net = lab.Network(name="trial", path=lab.Link(rate=100e6, loss=share))
    with lab.cluster(2, net) as cluster:
        return {"loss": share, "count": count, "lost": cluster.lost(0, 1, count)}


def live_change(before: float, after: float, kind: str) -> dict[str, Any]:
    seen: list[tuple[float, float]] = []

    def hear(rank: int, stream: str, text: str) -> None:
        now, total = text.split()
        seen.append((float(now), float(total)))

    with lab.cluster(2, lab.Network(name="trial", path=lab.Link(rate=before))) as cluster:
        job = cluster.start([sys.executable, "-u", "-c", STREAM], on_line=hear, env={"KIND": kind})
        wait(job, 1.3)
        began = time.monotonic()
        cluster.set_link(0, rate=after)
        cluster.set_link(1, rate=after)
        wait(job, 1.5)
        alive = job.running
    frame = (1472 if kind == "SOCK_DGRAM" else 1448) / 1514
    return {"before": before, "after": after, "by": kind, "alive": alive, "effect": effect(seen, began, after * frame)}


def wait(job: lab.Job, seconds: float) -> None:
    end = time.monotonic() + seconds
    while job.running and time.monotonic() < end:
        time.sleep(0.01)


def effect(seen: list[tuple[float, float]], changed: float, rate: float) -> float | None:
    """Seconds until the rate of the following moment is the new one, within 10 %."""
    for number, (start, total) in enumerate(seen):
        later = next(((now, then) for now, then in seen[number:] if now >= start + WINDOW), None)
        if start >= changed and later:
            found = 8 * (later[1] - total) / (later[0] - start)
            if abs(found / rate - 1) <= 0.1:
                return start - changed
    return None


def sigmas(row: dict[str, Any]) -> float:
    expected = row["loss"] * row["count"]
    return (row["lost"] - expected) / math.sqrt(expected * (1 - row["loss"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--only", default="rate,delay,loss,live")
    parser.add_argument("--hosts", default="4,8")
    parser.add_argument("--seconds", type=float, default=2.0)
    asked = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    hosts, kinds = [int(word) for word in asked.hosts.split(",")], asked.only.split(",")
    if "rate" in kinds:
        cases = [(n, rate, delay) for n in hosts for delay in (0.0, 0.005, 0.02) for rate in RATES]
        found["throughput"] = [say(throughput(*case, asked.seconds)) for case in cases]
    if "delay" in kinds:
        found["round_trips"] = [say(round_trip(n, delay)) for n in hosts for delay in DELAYS]
    if "loss" in kinds:
        found["losses"] = [say(loss(share, 50_000)) for share in LOSSES]
    if "live" in kinds:
        kinds_of_socket = ("SOCK_DGRAM", "SOCK_STREAM")
        found["changes"] = [say(live_change(*change, kind)) for kind in kinds_of_socket for change in CHANGES]
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(found, file, indent=1)
    return 0


def say(row: dict[str, Any]) -> dict[str, Any]:
    print(row, flush=True)
    return row


if __name__ == "__main__":
    sys.exit(main())
