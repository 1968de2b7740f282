"""Hugging Face's Trainer: thinwire as a callback, which has to be told the trainer.

torchrun --nproc-per-node 2 examples/transformers_callback.py
"""

import tempfile

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

import thinwire
from thinwire.integrations.transformers import ThinwireCallback


class Pictures(Dataset):
    def __init__(self) -> None:
        self.pictures = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"pictures": self.pictures[index], "labels": self.pictures[index, :10].argmax()}


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))

    def forward(self, pictures: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.net(pictures)
        return {"loss": nn.functional.cross_entropy(scores, labels), "logits": scores}


with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, max_steps=10, per_device_train_batch_size=16, use_cpu=True, report_to="none",
        save_strategy="no", ddp_backend="gloo", ddp_find_unused_parameters=False,
    )  # fmt: skip
    callback = ThinwireCallback(thinwire.recipes.topk_allgather(density=0.05))
    trainer = Trainer(model=Classifier(), args=arguments, train_dataset=Pictures(), callbacks=[callback])
    callback.trainer = trainer
    trainer.train()
    if trainer.is_world_process_zero():
        stats = callback.sync.stats()
        print(f"{stats.steps} steps, {stats.total.bytes_sent} bytes sent, density {stats.total.density:.3f}")
thinwire.shutdown()
