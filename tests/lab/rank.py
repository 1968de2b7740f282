"""A rank on an emulated host: a few steps with thinwire, and the bytes, by our count and by the interface's."""

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire

STEPS = 4


def sent() -> int:
    """Bytes that this host's interface has sent. There is one rank on each host."""
    line = next(line for line in Path("/proc/thread-self/net/dev").read_text().splitlines() if "eth0:" in line)
    return int(line.split(":")[1].split()[8])


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    ddp = DistributedDataParallel(nn.Sequential(*(nn.Linear(300, 300) for _ in range(4))))
    sync = thinwire.attach(ddp, thinwire.recipes.topk_allgather(density=0.05))
    for step in range(-2, STEPS):
        if step == 0:
            dist.barrier()
            ours, kernel = sync.stats().total.bytes_sent, sent()
        ddp.zero_grad()
        ddp(torch.randn(4, 300, generator=torch.Generator().manual_seed(step + 10 * rank))).sum().backward()
    gradient = float(sum(each.grad.double().sum() for each in ddp.parameters()))
    ours, kernel = sync.stats().total.bytes_sent - ours, sent() - kernel
    values = torch.full((1000,), float(rank))
    (mean,) = thinwire.synchronize([values], thinwire.recipes.dense())
    print(json.dumps({"ours": ours, "kernel": kernel, "gradient": gradient, "mean": float(mean[0])}))
    assert os.environ["LOCAL_RANK"] == "0"
    thinwire.shutdown()


if __name__ == "__main__":
    main()
