"""Accelerate: attach to what prepare() returns. (Its own comm_hook is a fixed list of names.)

torchrun --nproc-per-node 2 examples/accelerate_prepare.py
"""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import thinwire

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
pictures = torch.randn(1024, 64)
data = DataLoader(TensorDataset(pictures, pictures[:, :10].argmax(1)), batch_size=32)

plan = thinwire.optimizers.arrange(optimizer, thinwire.recipes.topk_allgather(density=0.05))  # before prepare
model, optimizer, data = accelerator.prepare(model, optimizer, data)
sync = thinwire.attach(model, plan)

for batch, classes in data:
    loss = nn.functional.cross_entropy(model(batch), classes)
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()

if accelerator.is_main_process:
    stats = sync.stats()
    print(f"{stats.steps} steps, {stats.total.bytes_sent} bytes sent, density {stats.total.density:.3f}")
thinwire.shutdown()
