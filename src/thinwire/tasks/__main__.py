"""One rank of a run that is written down in a folder: ``torchrun ... -m thinwire.tasks FOLDER``."""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

import torch
import torch.distributed as dist

from thinwire.lifecycle import shutdown
from thinwire.tasks.runner import Finish
from thinwire.tasks.side_by_side import STOP, Race, race


def take_part(job: Race) -> list[Finish]:
    """Run a job on the rank that the environment says, as torchrun sets it. The first Ctrl-C finishes the step.

    Args:
        job: What to run.

    Returns:
        As `race`.
    """
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

    def stop(number: int, frame: FrameType | None) -> None:
        if job.folder:
            Path(job.folder, STOP).touch()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // local))
    dist.init_process_group("gloo")
    try:
        return race(rank, world, job)
    finally:
        shutdown()


if __name__ == "__main__":
    take_part(Race.load(sys.argv[1]))
