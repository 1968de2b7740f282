"""Ray Train: attach to what prepare_model returns. Ray needs a folder that all workers see.

python examples/ray_train.py FOLDER
"""

import sys

import ray.train.torch
import torch
from ray.train import RunConfig, ScalingConfig
from torch import nn

import thinwire


def work() -> None:
    """One worker."""
    torch.manual_seed(0)
    model = ray.train.torch.prepare_model(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sync = thinwire.attach(model, thinwire.recipes.topk_allgather(density=0.05))
    for _ in range(10):
        pictures = torch.randn(32, 64)
        loss = nn.functional.cross_entropy(model(pictures), pictures[:, :10].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    stats = sync.stats()
    print(f"{stats.steps} steps, {stats.total.bytes_sent} bytes sent, density {stats.total.density:.3f}")


if __name__ == "__main__":
    trainer = ray.train.torch.TorchTrainer(
        work, scaling_config=ScalingConfig(num_workers=2), run_config=RunConfig(storage_path=sys.argv[1])
    )
    trainer.fit()
