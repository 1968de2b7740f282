"""A run that never was: events with everything that a report can show."""

from collections.abc import Iterator
from pathlib import Path

from thinwire.observe.records import Began, Ended, Event, Examined, Owing, Planned, Predicted, Stepped, Wired
from thinwire.observe.sinks import Jsonl

STEPS, SEEDS = 60, (0, 1, 2)
PACE = {"dense": 1.0, "topk_allgather(density=0.05)": 0.2, "fp16": 0.6, "none": 0.1}
BYTES = {"dense": 4_000_000, "topk_allgather(density=0.05)": 300_000}
TOP = "topk_allgather(density=0.05)"


def whole(**changes: object) -> Iterator[Event]:
    """Three seeds of four methods over a wire that changes."""
    plain = {
        "time": 1000.0,
        "task": "bytes",
        "about": "a model <b>on</b> text & more",
        "unit": "bits/byte",
        "counted": "tokens",
        "methods": tuple(PACE),
        "plans": {name: f"what {name} does" for name in PACE},
        "rates": dict.fromkeys(PACE, 0.004),
        "world": 4,
        "steps": STEPS,
        "seeds": SEEDS,
        "network": "wan-100m-20ms",
        "thin": True,
        "parameters": 1_000_000,
        "machine": {"processors": "2"},
    }
    yield Began(**{**plain, **changes})  # type: ignore[arg-type]
    yield Wired(time=1000.0, bandwidth=1e8, latency=0.02)
    yield Wired(time=1030.0, bandwidth=1e7, latency=0.05)
    for seed in SEEDS:
        for name in PACE:
            yield from course(name, seed)


def course(name: str, seed: int) -> Iterator[Event]:
    """One method with one seed."""
    who = {"method": name, "seed": seed}
    yield Planned(**who, step=0, elapsed=0.0, plan=f"what {name} does")
    worse = 0.1 if name == TOP else 0.0
    for step in range(STEPS):
        elapsed = PACE[name] * (step + 1)
        sent = BYTES.get(name)
        ours = sent is not None
        yield Stepped(
            **who,
            step=step,
            seconds=PACE[name],
            elapsed=elapsed,
            time=1000.0 + elapsed,
            loss=8.0 - 5.0 * step / STEPS + 0.05 * seed + worse * (1 - step / STEPS),
            samples=100,
            bytes_sent=sent,
            bytes_total=sent * (step + 1) if sent else None,
            stages={"select": 0.01, "exchange": 0.1} if ours else {},
            density=(0.05 if name == TOP else 1.0) if ours else None,
            gain=0.4 if ours else None,
        )
        if (step + 1) % 10 == 0:
            quality = 8.0 - 5.0 * (step + 1) / STEPS + 0.01 * seed
            yield Examined(**who, step=step + 1, elapsed=elapsed, quality=quality)
        if name == TOP and (step + 1) % 25 == 0:
            yield Owing(
                **who, step=step, norm=1.0 + step, layers={"head.weight": 0.98}, histogram=(0,) * 20 + (5, 9, 2)
            )
        if name == TOP and step:
            yield Predicted(**who, step=step, predicted=0.1, measured=0.12)
        if name == TOP and step == 30:
            yield Planned(**who, step=step, elapsed=elapsed, plan="another", short="top-k 1 %", why="the wire is thin")
    last = 8.0 - 5.0 + 0.01 * seed
    yield Ended(**who, steps=STEPS, elapsed=elapsed, quality=last, agree=name != "none")


def written(folder: Path, events: Iterator[Event]) -> Path:
    """A run's folder."""
    sink = Jsonl(folder / "events.jsonl")
    for event in events:
        sink.write(event)
    sink.close()
    return folder
