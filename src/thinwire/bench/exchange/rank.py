"""One rank of a sweep: ``python -m thinwire.bench.exchange.rank JOB``, or in a process that torchrun has started."""

import json
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from thinwire.bench.exchange.asked import Asked
from thinwire.bench.exchange.record import Run
from thinwire.bench.exchange.sweep import sweep
from thinwire.lifecycle import shutdown

_PATIENCE = timedelta(hours=1)


def take_part(asked: Asked) -> Run:
    """Join the others that the environment tells of, as under torchrun, and measure.

    Args:
        asked: What; the same on every rank.

    Returns:
        The run; whole on rank 0 only.
    """
    dist.init_process_group(asked.backend, timeout=_PATIENCE)
    try:
        return sweep(asked, _tell)
    finally:
        shutdown()


def _die_with_parent() -> None:
    """Whoever started this rank holds the other end of its standard input, until it is gone."""
    # Not by the buffered sys.stdin: its lock, held by this thread, would keep the interpreter from ending.
    while os.read(0, 1):
        continue
    os._exit(1)


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(job: str) -> int:
    """Read what is asked, measure, and write the run beside it, on rank 0.

    Args:
        job: A file that `launch` has written.

    Returns:
        The exit status.
    """
    said = json.loads(Path(job).read_text())
    if said["leash"]:
        threading.Thread(target=_die_with_parent, daemon=True).start()
    sys.path[:0] = [path for path in said["path"] if path not in sys.path]
    run = take_part(Asked(**said["asked"]))
    if os.environ["RANK"] == "0":
        run.write(Path(said["result"]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
