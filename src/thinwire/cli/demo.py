"""`thinwire demo`: dense and compressed training side by side, for real, on this machine."""

import time
from collections.abc import Sequence
from pathlib import Path

from thinwire.cli._results import Result, cells, head, summarise
from thinwire.cli._shown import Watcher, print_table
from thinwire.errors import PlanError

_NOTABLE = 0.02  # bits per byte; seeds differ by about as much
_INTERRUPTED = 130


def demo(*, ranks: int = 2, steps: int = 400, density: float = 0.05, seed: int = 0) -> int:
    """Train a small language model twice, dense and compressed, and compare.

    Both start from the same weights and see the same batches of the Python standard library's sources. They
    take turns step by step in the same processes, so that noise on this machine hits both alike.

    Args:
        ranks: How many processes train together.
        steps: Training steps for each of the two.
        density: The part of each gradient that the compressed run sends.
        seed: Of the weights and the batches.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        PlanError: An option has no meaning.
        RankFailed: A rank failed; the message has its traceback.
    """
    if steps < 1:
        raise PlanError(f"asked for {steps} steps; write 1 or more")
    if ranks < 2:
        raise PlanError(f"asked for {ranks} ranks; write 2 or more, so that there is somebody to send to")
    if not 0.0 < density <= 1.0:
        raise PlanError(f"asked for a density of {density}; write more than 0 and at most 1, for example 0.01")
    began = time.monotonic()
    print(f"Training twice on {ranks} ranks, {steps} steps each, on Python's own source code:")
    print("  dense  every gradient element of every step")
    print(f"  top-k  {100 * density:.3g} % of them by size, the rest owed to later steps\n", flush=True)
    folder = Path("runs", f"demo-{time.strftime('%Y%m%d-%H%M%S')}-{seed}")
    try:
        _train(folder, ranks, steps, (density, seed))
    except KeyboardInterrupt:
        print(f"\nstopped after {time.monotonic() - began:.0f} s; all ranks are gone")
        return _INTERRUPTED
    return _conclude(folder, steps)


def _train(folder: Path, ranks: int, steps: int, how: tuple[float, int]) -> None:
    from thinwire.cli._launch import launch
    from thinwire.tasks.methods import methods
    from thinwire.tasks.side_by_side import EVENTS, Race

    density, seed = how
    asked = methods(f"dense,topk_allgather(density={density!r})")
    job = Race(methods=asked, steps=steps, seeds=(seed,), folder=str(folder))
    with Watcher(folder / EVENTS).watching():
        launch(job, ranks)


def _conclude(folder: Path, steps: int) -> int:
    from thinwire.cli.report import write
    from thinwire.observe.events import events_in
    from thinwire.tasks.side_by_side import EVENTS

    results = summarise(events_in((folder / EVENTS).read_text().splitlines()))
    print()
    print_table(head(results, thin=False), [cells(result, thin=False) for result in results])
    if len(results) < 2 or results[0].steps < steps:
        print("\nstopped early; all ranks are gone")
        return _INTERRUPTED
    print("\n" + "\n".join(closing_words(*results)))
    print(f"\nThe report: open {write([str(folder)], folder / 'report.html')}")
    return 0


def closing_words(dense: Result, compressed: Result) -> Sequence[str]:
    """Say what the figures show, and what they do not.

    Args:
        dense: The plain run.
        compressed: The other one.

    Returns:
        Lines of text.
    """
    gap = compressed.quality - dense.quality
    sending = [each.seconds_on_link or 0.0 for each in (dense, compressed)]
    lines = [
        "What this shows, and what it does not:",
        "- The wire here is not thin: the ranks talk over loopback, where bytes cost next to nothing, so dense is",
        f"  quick: {dense.pace:.0f} ms a step against {compressed.pace:.0f} ms. Compression is for slower wires.",
        f"- On a link of 100 Mbit/s the bytes alone would take {sending[0]:.1f} s dense and {sending[1]:.1f} s with "
        f"top-k.",
        "  That is arithmetic (bytes x 8 / 100 Mbit/s, no latency, no overlap with compute), not a measurement.",
    ]
    if gap > _NOTABLE:
        lines += [
            f"- Top-k pays in quality: {gap:+.2f} bits/byte after the same steps. A higher density pays less, in loss",
            "  and more in bytes; longer runs close part of the gap.",
        ]
    else:
        lines += [
            f"- Held-out loss differs by {gap:+.2f} bits/byte. One short run with one seed shows no more than that."
        ]
    if dense.replicas_agree and compressed.replicas_agree:
        lines += ["- With either method all ranks ended with bitwise the same weights."]
    else:
        lines += ["- WARNING: the ranks ended with different weights. That is a fault; please report it."]
    return lines
