"""What `stats` calls bytes on the wire, beside what the kernel counts on an interface that nobody else uses."""

import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire
from thinwire.lab.ranks import run_ranks

ROOT = Path(__file__).resolve().parents[2]
WORLD, STEPS = 3, 4
PLANS = {
    "dense": thinwire.recipes.dense(),
    "own": thinwire.recipes.topk_allgather(density=0.05),
    "leader": thinwire.recipes.ar_topk(density=0.05),
}


def loopback_bytes() -> int:
    """Bytes that the loopback interface of this network namespace has carried."""
    line = next(line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])


def measured(rank: int, world: int, name: str) -> tuple[int, int]:
    """Bytes by our count, on this rank, and by the kernel's, on all ranks together."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(nn.Sequential(*(nn.Linear(400, 400) for _ in range(4))))
    sync = thinwire.attach(ddp, PLANS[name])
    for step in range(-2, STEPS):
        if step == 0:
            torch.distributed.barrier()
            before, kernel = sync.stats().total.bytes_sent, loopback_bytes()
            torch.distributed.barrier()
        ddp.zero_grad()
        ddp(torch.randn(4, 400, generator=torch.Generator().manual_seed(step + 10 * rank))).sum().backward()
    torch.distributed.barrier()
    ours = sync.stats().total.bytes_sent - before
    return ours, loopback_bytes() - kernel


def loopback_up() -> None:
    """As ``ip link set lo up``, which not every machine has."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
@pytest.mark.parametrize("name", PLANS)
def test_bytes_are_what_the_kernel_counts(name):
    options = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    if subprocess.run(["unshare", *options, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no network namespace: run as root, or allow unprivileged user namespaces")
    command = ["unshare", *options, sys.executable, __file__, name]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=110, env=environ)
    assert done.returncode == 0, done.stderr
    ours, kernel = map(int, done.stdout.split()[-2:])
    # The kernel also counts TCP's headers and acknowledgements, and the few bytes of the barriers.
    assert 0.98 * ours <= kernel <= 1.08 * ours + 100_000, f"{ours} by our count, {kernel} by the kernel's"


if __name__ == "__main__":
    loopback_up()
    results = run_ranks(measured, WORLD, sys.argv[1])
    print(sum(ours for ours, _ in results), max(kernel for _, kernel in results))
