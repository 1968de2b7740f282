"""Make a lab, kill something, look what is left: `python -m benchmarks.lab.cycles 100`.

By turns the lab is closed, its keeper is killed, or the process that owns it is.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from thinwire import lab

OWNER = """
import os, sys, time
from thinwire import lab
c = lab.cluster(2, sys.argv[1], check=False)
c.start(["sh", "-c", "setsid sleep 600 & sleep 600"])
print("ready", flush=True)
time.sleep(600)
"""
HELD = "rate=10mbit delay=1ms"


def inhabitants(keeper: int) -> set[int]:
    """Everything in a lab: what is in the keeper's pid namespace."""
    here = os.stat(f"/proc/{keeper}/ns/pid").st_ino
    return {pid for pid in processes() if of(pid, "pid") == here}


def processes() -> set[int]:
    return {int(path.name) for path in Path("/proc").glob("[0-9]*")}


def of(pid: int, kind: str) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except OSError:
        return 0


def world() -> dict[str, set[str]]:
    """Interfaces here, namespaces of processes, names of namespaces, and labs."""
    names = Path("/run/netns")
    return {
        "interfaces": {path.name for path in Path("/sys/class/net").iterdir()},
        "network namespaces": {str(of(pid, "net")) for pid in processes()} - {"0"},
        "named namespaces": {path.name for path in names.iterdir()} if names.exists() else set(),
        "labs": {str(each.keeper) for each in lab.find() if each.owner == os.getpid() or each.orphaned},
    }


def cycle(number: int) -> None:
    """One life of a lab, and one of its three deaths."""
    net = HELD if number % 2 else "rate=10mbit"
    if number % 3 == 2:
        owner = subprocess.Popen([sys.executable, "-c", OWNER, net], stdout=subprocess.PIPE, text=True)
        assert owner.stdout is not None
        with owner.stdout:
            assert owner.stdout.readline() == "ready\n"
        owner.kill()
        owner.wait()
        return
    with lab.cluster(2, net, check=False) as made:
        made.start(["sh", "-c", "setsid sleep 600 & sleep 600"])
        if number % 3 == 1:
            (mine,) = [each for each in lab.find() if each.owner == os.getpid()]
            os.kill(mine.keeper, signal.SIGKILL)


def settled(before: dict[str, set[str]], seconds: float = 10.0) -> list[str]:
    """What is there now that was not before, once killed processes have had time to go."""
    deadline = time.monotonic() + seconds
    while True:
        now = world()
        left = [f"{kind}: {sorted(now[kind] - before[kind])}" for kind in now if now[kind] - before[kind]]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    before, began = world(), time.monotonic()
    for number in range(count):
        cycle(number)
    left = settled(before)
    print(f"{count} labs made and killed in {time.monotonic() - began:.0f} s; left behind: {left or 'nothing'}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
