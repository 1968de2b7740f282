"""Lightning: a callback. Lightning's own argument for communication hooks is silently ignored on CPUs."""

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch.nn.parallel import DistributedDataParallel

from thinwire.attaching import attach
from thinwire.control.controller import Controller
from thinwire.errors import AttachError
from thinwire.optimizers import arrange
from thinwire.plans import Plan
from thinwire.sync import SyncState


class ThinwireCallback(Callback):
    """Attaches thinwire when training starts: ``Trainer(strategy="ddp", callbacks=[ThinwireCallback(plan)])``.

    Its state is a rank's own, and Lightning's checkpoints are written by rank 0 alone: save `sync.state_dict()` of
    every rank beside them, in a file of each rank, where a run is to go on to the bit.

    Args:
        plan: What to send and how; None for the default.

    Attributes:
        sync: The synchroniser, once training has started.
    """

    def __init__(self, plan: Plan | Controller | None = None) -> None:
        self._plan = plan
        self.sync: SyncState | None = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Attach.

        Args:
            trainer: Whose strategy has wrapped the model.
            pl_module: Of no use here.
        """
        model: Any = trainer.strategy.model
        if not isinstance(model, DistributedDataParallel):
            raise AttachError(
                f"Lightning has not wrapped the model in DistributedDataParallel but in {type(model).__name__}; "
                f"write Trainer(strategy='ddp', devices=2) or more devices"
            )
        plan = self._plan
        for optimizer in trainer.optimizers:
            plan = arrange(optimizer, plan) if plan is not None else None
        self.sync = attach(model, plan)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Deliver what is still owed in one last step, and let go.

        Args:
            trainer: Whose optimizers step.
            pl_module: Of no use here.
        """
        if self.sync is not None:
            self.sync.flush()
            for optimizer in trainer.optimizers:
                optimizer.step()
            self.sync.detach()
