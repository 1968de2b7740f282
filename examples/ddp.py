"""The smallest program: plain DistributedDataParallel, and the one line.

torchrun --nproc-per-node 2 examples/ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import thinwire

dist.init_process_group("gloo")
torch.manual_seed(0)  # the same weights on every rank
model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

# Top-k of each rank's own gradient. Adam's first moment moves into thinwire's ledger, where it belongs then.
plan = thinwire.optimizers.arrange(optimizer, thinwire.recipes.topk_allgather(density=0.05))
sync = thinwire.attach(model, plan)

torch.manual_seed(1 + dist.get_rank())  # other data on every rank
for _ in range(100):
    pictures = torch.randn(32, 64)
    loss = nn.functional.cross_entropy(model(pictures), pictures[:, :10].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

if dist.get_rank() == 0:
    stats = sync.stats()
    print(f"loss {loss.item():.3f}, {stats.total.bytes_sent} bytes sent, density {stats.total.density:.3f}")
thinwire.shutdown()
