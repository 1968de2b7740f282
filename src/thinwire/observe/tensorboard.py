"""Events as scalars for TensorBoard. Needs the extra ``tensorboard``."""

from pathlib import Path
from typing import Any

from thinwire.observe.records import Event, Examined, Owing, Planned, Stepped


class TensorBoard:
    """Writes scalars, one folder for each method and seed, so that TensorBoard lays their curves over each other.

    Args:
        folder: Where ``tensorboard --logdir`` will look.

    Raises:
        ModuleNotFoundError: The package is not there; the message says how to get it.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise ModuleNotFoundError(
                "TensorBoard needs the package tensorboard: write pip install 'thinwire[tensorboard]'"
            ) from error
        self._make: Any = SummaryWriter
        self._folder = Path(folder)
        self._writers: dict[str, Any] = {}

    def write(self, event: Event) -> None:
        """Write an event's figures.

        Args:
            event: Any; those without figures are passed over.
        """
        if not isinstance(event, Stepped | Planned | Owing | Examined):
            return
        name = f"{event.method}-seed{event.seed}"
        if name not in self._writers:
            self._writers[name] = self._make(str(self._folder / name))
        writer = self._writers[name]
        if isinstance(event, Planned):
            writer.add_text("plan", event.plan, event.step)
        for tag, value in _scalars(event).items():
            if value is not None:
                writer.add_scalar(tag, value, event.step)

    def close(self) -> None:
        """Write out what is kept back."""
        for writer in self._writers.values():
            writer.close()


def _scalars(event: Event) -> dict[str, float | None]:
    if isinstance(event, Stepped):
        stages = {f"comm/seconds/{stage}": seconds for stage, seconds in event.stages.items()}
        return {
            "train/loss": event.loss,
            "train/seconds_per_step": event.seconds,
            "comm/bytes_sent": event.bytes_sent,
            "comm/density": event.density,
            "comm/gain": event.gain,
            **stages,
        }
    if isinstance(event, Owing):
        return {"debt/norm": event.norm}
    return {"exam/quality": event.quality} if isinstance(event, Examined) else {}
