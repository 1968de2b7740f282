"""Checkpoints: every rank saves its own debts beside the model, and a resumed run goes on to the bit.

torchrun --nproc-per-node 2 examples/resume.py FOLDER        # trains 20 steps from the last checkpoint, if any
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire

dist.init_process_group("gloo")
folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
path = folder / f"rank-{dist.get_rank()}.pt"

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
ddp = DistributedDataParallel(model)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
sync = thinwire.attach(ddp, thinwire.recipes.ar_topk(density=0.05, momentum=0.9))

first = 0
if path.exists():
    saved = torch.load(path, weights_only=True)
    first = saved["step"]
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    sync.load_state_dict(saved["sync"])

for step in range(first, first + 20):
    torch.manual_seed(1000 * step + dist.get_rank())  # the batch follows from step and rank
    pictures = torch.randn(32, 64)
    loss = nn.functional.cross_entropy(ddp(pictures), pictures[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

state = {
    "step": first + 20,
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "sync": sync.state_dict(),
}
draft = path.with_suffix(".draft")
torch.save(state, draft)
draft.replace(path)  # whole or not at all
if dist.get_rank() == 0:
    total = sum(parameter.double().sum().item() for parameter in model.parameters())
    print(f"step {first + 20}, sum of all weights {total.hex()}")
thinwire.shutdown()
