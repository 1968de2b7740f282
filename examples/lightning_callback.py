"""Lightning: thinwire as a callback. (DDPStrategy's own ddp_comm_hook is silently ignored on CPUs.)

python examples/lightning_callback.py
"""

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import thinwire
from thinwire.integrations.lightning import ThinwireCallback


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        pictures, classes = batch
        return nn.functional.cross_entropy(self.net(pictures), classes)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Teller(pl.Callback):
    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.is_global_zero and thin.sync is not None:
            stats = thin.sync.stats()
            print(f"{stats.steps} steps, {stats.total.bytes_sent} bytes sent, density {stats.total.density:.3f}")


thin = ThinwireCallback(thinwire.recipes.topk_allgather(density=0.05))

if __name__ == "__main__":
    pl.seed_everything(0)
    pictures = torch.randn(512, 64)
    data = DataLoader(TensorDataset(pictures, pictures[:, :10].argmax(1)), batch_size=32)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=1,
        callbacks=[Teller(), thin],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), data)
    thinwire.shutdown()
