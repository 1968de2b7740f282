"""One honest comparison of methods in training: `python -m benchmarks.training` (`--steps`, `--net`).

Runs `thinwire train bytes` on four emulated hosts, every method with the same learning rate, and keeps what it
came to in benchmarks/results/training.json. It needs the rights to make network namespaces.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from thinwire.cli import main as thinwire
from thinwire.report.quality import seconds_to, target
from thinwire.report.read import Method, read

RESULT = Path(__file__).resolve().parent / "results" / "training.json"
METHODS = (
    "dense,fp16,powersgd(rank=4),topk_allgather(density=0.05,to='int8'),topk_allgather(density=0.01),"
    "ar_topk(density=0.05),adaptive,none"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--net", default="wan-100m-20ms")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="training-") as folder:
        run = str(Path(folder, "run"))
        words = ["train", "bytes", "--hosts", "4", "--net", asked.net, "--sync", METHODS, "--steps", str(asked.steps)]
        if status := thinwire([*words, "--out", run, "--save-every", "0", "--no-report"]):
            return status
        story = read([run])
    wanted = target(story)
    record = {
        "command": f"python -m benchmarks.training --steps {asked.steps} --net {asked.net}",
        "network": story.began.network,
        "hosts": story.began.world,
        "steps": story.began.steps,
        "parameters": story.began.parameters,
        "machine": story.began.machine,
        "unit": story.began.unit,
        "methods": {name: figures(method, wanted) for name, method in story.methods.items()},
    }
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    return 0


def figures(method: Method, wanted: float | None) -> dict[str, object]:
    """What is kept of one method."""
    course = method.courses[0]
    trains = not method.is_floor
    return {
        "words": method.words,
        "trains": trains,
        "quality": method.quality,
        "seconds_per_step": method.pace,
        "bytes_sent": method.bytes_sent,
        "seconds_to_dense_loss": seconds_to(course, wanted) if trains and wanted is not None else None,
    }


if __name__ == "__main__":
    sys.exit(main())
