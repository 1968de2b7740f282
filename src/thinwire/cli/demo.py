"""`thinwire demo`: dense and compressed training side by side over a thin wire, for real, on this machine."""

import time
from collections.abc import Sequence
from pathlib import Path

from thinwire.cli._results import Result, cells, head, summarise
from thinwire.cli._shown import Watcher, print_table
from thinwire.errors import PlanError

_NOTABLE = 0.02  # bits per byte; seeds differ by about as much
_INTERRUPTED = 130
_NET = "home-20m-10ms-jitter"
_LOOPBACK = "loopback"
_STEPS = {_LOOPBACK: 400}
_SOME_STEPS = 50


def demo(*, ranks: int = 4, steps: int | None = None, density: float = 0.05, seed: int = 0, net: str = "") -> int:
    """Train a small language model twice, dense and compressed, and compare; and once more without any exchange.

    The last one is no training, but the floor of the step time, and so the ceiling of what compression can gain. All
    start from the same weights and see the same batches of the Python standard library's sources. They take turns step
    by step in the same processes, so that noise on this machine hits all alike.

    Args:
        ranks: How many processes train together, each on a host of its own.
        steps: Training steps for each of them; 50 over a thin wire and 400 over loopback, if not given.
        density: The part of each gradient that the compressed run sends.
        seed: Of the weights and the batches.
        net: An emulated network, or loopback; home-20m-10ms-jitter where this machine can emulate it, if not given.

    Returns:
        The exit status: 0, or 130 after Ctrl-C.

    Raises:
        PlanError: An option has no meaning.
        ThinwireError: A rank failed; the message has its traceback.
    """
    _check(ranks, steps, density)
    began = time.monotonic()
    net = net or _choose_net()
    steps = steps or _STEPS.get(net, _SOME_STEPS)
    print(f"Training twice on {ranks} ranks over {net}, {steps} steps each, on Python's own source code:")
    print("  dense  every gradient element of every step, as plain DDP does")
    print(f"  top-k  {100 * density:.3g} % of them by size in 8 bits each, the rest owed to later steps")
    print("  none   nothing at all: no training, but the fastest that any method could be\n", flush=True)
    from thinwire.lab.errors import LabFailed, LabMissing

    folder = Path("runs", f"demo-{time.strftime('%Y%m%d-%H%M%S')}-{seed}")
    try:
        try:
            _train(folder, ranks, (net, steps, density, seed))
        except (LabFailed, LabMissing) as error:
            print(f"This machine cannot emulate {net} now: {error}\nSo the ranks talk over loopback, not thin.\n")
            _train(folder, ranks, (_LOOPBACK, steps, density, seed))
    except KeyboardInterrupt:
        print(f"\nstopped after {time.monotonic() - began:.0f} s; all ranks are gone")
        return _INTERRUPTED
    return _conclude(folder, steps)


def _check(ranks: int, steps: int | None, density: float) -> None:
    if steps is not None and steps < 1:
        raise PlanError(f"asked for {steps} steps; write 1 or more")
    if ranks < 2:
        raise PlanError(f"asked for {ranks} ranks; write 2 or more, so that there is somebody to send to")
    if not 0.0 < density <= 1.0:
        raise PlanError(f"asked for a density of {density}; write more than 0 and at most 1, for example 0.01")


def _choose_net() -> str:
    """A thin wire where there can be one; where not, the reason is said."""
    from thinwire.lab.entrance import missing

    lacking = missing()
    if not lacking:
        return _NET
    print(f"This machine cannot emulate a thin wire ({lacking}), so the ranks talk over loopback.\n")
    return _LOOPBACK


def _train(folder: Path, ranks: int, how: tuple[str, int, float, int]) -> None:
    from thinwire.cli._launch import launch
    from thinwire.tasks.methods import methods
    from thinwire.tasks.side_by_side import EVENTS, Race

    net, steps, density, seed = how
    asked = methods(f"dense,topk_allgather(density={density!r}, to='int8'),none")
    job = Race(methods=asked, steps=steps, seeds=(seed,), folder=str(folder), network=net)
    with Watcher(folder / EVENTS).watching():
        launch(job, ranks)


def _conclude(folder: Path, steps: int) -> int:
    from thinwire.cli.report import write
    from thinwire.observe.records import Began, events_in
    from thinwire.tasks.side_by_side import EVENTS

    events = list(events_in((folder / EVENTS).read_text().splitlines()))
    thin = any(event.thin for event in events if isinstance(event, Began))
    results = summarise(events)
    print()
    print_table(head(results, thin=thin), [cells(result, thin=thin) for result in results])
    if len(results) < 3 or results[0].steps < steps:
        print("\nstopped early; all ranks are gone")
        return _INTERRUPTED
    print("\n" + "\n".join([*closing_words(*results[:2], thin=thin), *(_race(folder, results) if thin else [])]))
    print(f"\nThe report: open {write([str(folder)], folder / 'report.html')}")
    return 0


def _race(folder: Path, results: Sequence[Result]) -> list[str]:
    """Who was first at the quality of dense training, and how much there was to gain."""
    from thinwire.report.quality import seconds_to, target
    from thinwire.report.read import read

    dense, compressed, floor = results
    story = read([str(folder)])
    wanted = target(story)
    ceiling = f"a step without any exchange is {dense.pace / floor.pace:.1f} times as fast as a dense one"
    assert wanted is not None
    plain, taken = (seconds_to(story.methods[each.name].courses[0], wanted) for each in (dense, compressed))
    if plain is None or taken is None:
        return [f"- Top-k did not reach dense's final loss, and 1 % for luck, in these steps; {ceiling}."]
    return [
        f"- Dense's final loss, and 1 % for luck, took {plain:.0f} s dense and {taken:.0f} s with top-k: "
        f"{plain / taken:.1f} times as fast.",
        f"  No method can gain more than this wire takes: {ceiling}.",
    ]


def closing_words(dense: Result, compressed: Result, *, thin: bool = False) -> Sequence[str]:
    """Say what the figures show, and what they do not.

    Args:
        dense: The plain run.
        compressed: The other one.
        thin: Whether the wire was a thin one.

    Returns:
        Lines of text.
    """
    gap = compressed.quality - dense.quality
    lines = ["What this shows, and what it does not:", *(_on_thin_wire if thin else _on_loopback)(dense, compressed)]
    if gap > _NOTABLE:
        lines += [
            f"- Top-k pays in quality: {gap:+.2f} bits/byte after the same steps. More steps, which are quick, or a",
            "  higher density make up for it; the report has the time to equal quality.",
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


def _on_thin_wire(dense: Result, compressed: Result) -> list[str]:
    return [
        f"- Over this wire a step took {dense.pace:.0f} ms dense and {compressed.pace:.0f} ms with top-k: "
        f"{dense.pace / compressed.pace:.1f} times as fast.",
        "  The links are emulated, the bytes and the waiting are real. All hosts share this machine's processors.",
    ]


def _on_loopback(dense: Result, compressed: Result) -> list[str]:
    sending = [each.seconds_on_link or 0.0 for each in (dense, compressed)]
    return [
        "- The wire here is not thin: the ranks talk over loopback, where bytes cost next to nothing, so dense is",
        f"  quick: {dense.pace:.0f} ms a step against {compressed.pace:.0f} ms. Compression is for slower wires.",
        f"- On a link of 100 Mbit/s the bytes alone would take {sending[0]:.1f} s dense and "
        f"{sending[1]:.1f} s with top-k.",
        "  That is arithmetic (bytes x 8 / 100 Mbit/s, no latency, no overlap with compute), not a measurement.",
    ]
