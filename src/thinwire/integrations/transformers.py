"""Hugging Face's Trainer: a callback. The Trainer wraps the model by itself and has no argument for hooks."""

from typing import Any

from torch.nn.parallel import DistributedDataParallel
from transformers import TrainerCallback

from thinwire.attaching import attach
from thinwire.control.controller import Controller
from thinwire.errors import AttachError
from thinwire.optimizers import arrange
from thinwire.plans import Plan
from thinwire.sync import SyncState


class ThinwireCallback(TrainerCallback):
    """Attaches thinwire when training begins.

        callback = ThinwireCallback(plan)
        trainer = Trainer(..., callbacks=[callback])
        callback.trainer = trainer
        trainer.train()

    Args:
        plan: What to send and how; None for the default.

    Attributes:
        trainer: Set it before training: callbacks are not told.
        sync: The synchroniser, once training has begun.
    """

    def __init__(self, plan: Plan | Controller | None = None) -> None:
        self._plan = plan
        self.trainer: Any = None
        self.sync: SyncState | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Attach.

        Args:
            args: Of no use here.
            state: Of no use here.
            control: Of no use here.
            **more: The optimizer among it.
        """
        model = getattr(self.trainer, "model_wrapped", None)
        if not isinstance(model, DistributedDataParallel):
            raise AttachError(
                f"the Trainer's model is wrapped in {type(model).__name__}, not in DistributedDataParallel; set "
                f"callback.trainer = trainer before training, and start it with torchrun on two ranks or more"
            )
        plan, optimizer = self._plan, more.get("optimizer")
        if plan is not None and optimizer is not None:
            plan = arrange(getattr(optimizer, "optimizer", optimizer), plan)
        self.sync = attach(model, plan)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Deliver what is still owed in one last step, and let go.

        Args:
            args: Of no use here.
            state: Of no use here.
            control: Of no use here.
            **more: The optimizer among it.
        """
        if self.sync is not None:
            self.sync.flush()
            if more.get("optimizer") is not None:
                more["optimizer"].step()
            self.sync.detach()
