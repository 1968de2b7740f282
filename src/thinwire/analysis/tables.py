"""Figures of an analysis as tables for a page, from the JSON that the commands in ``benchmarks/papers`` write."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean, median
from typing import Any

Result = Mapping[str, Any]


def made_hits(result: Result) -> str:
    """Selected / k of every rule on made vectors, with the passes it took."""
    rows = result["made"]["rows"]
    names = [hit["rule"] for hit in rows[0]["hits"]]
    lines = [
        [row["vector"], _percent(row["density"]), *(f"{hit['ratio']:.2f} ({hit['passes']})" for hit in row["hits"])]
        for row in rows
    ]
    return _table(["vector", "k/n", *names], lines)


def training_hits(result: Result) -> str:
    """Selected / k of every rule over the steps of a training run."""
    lines = []
    for run in result["training"]:
        for place, first in enumerate(run["steps"][0]["hits"]):
            hits = [step["hits"][place] for step in run["steps"]]
            ratios = [hit["ratio"] for hit in hits]
            near = mean(1 / 1.1 <= ratio <= 1.1 for ratio in ratios)
            passes = [hit["passes"] for hit in hits]
            cells = [f"{least:.2f}" for least in (min(ratios), median(ratios), max(ratios))]
            looks = f"{mean(passes):.1f}, at most {max(passes)}"
            exact = _percent(mean(hit["exact"] > 0 for hit in hits))
            lines.append([_percent(run["density"]), first["rule"], *cells, _percent(near), looks, exact])
    heads = [
        "k/n",
        "rule",
        "least",
        "median",
        "most",
        "steps within a tenth",
        "passes",
        "exact selections",
    ]
    return _table(heads, lines)


def contraction(result: Result) -> str:
    """The contraction of top-k at some steps, beside what is proved."""
    lines = []
    for run in result["training"]:
        steps = run["steps"]
        for step in (steps[0], steps[len(steps) // 4], steps[len(steps) // 2], steps[-1]):
            found = step["contraction"]
            kinds = (found[kind] for kind in ("measured", "bound", "random", "gaussian"))
            lines.append([_percent(run["density"]), str(step["step"]), *(f"{kind:.4f}" for kind in kinds)])
    return _table(["k/n", "step", "measured", "(2kn - k²)/n²", "k/n", "normal numbers"], lines)


def quality(result: Result) -> str:
    """Loss on held-out text and bytes of every way to train."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for run in result["runs"]:
        groups.setdefault((run["optimizer"], run["name"]), []).append(run)
    lines = []
    for (optimizer, name), runs in groups.items():
        dense = groups[optimizer, "dense"]
        bits = [run["bits"] for run in runs]
        loss = f"{mean(bits):.3f} ({min(bits):.3f} to {max(bits):.3f})"
        ratios = [_ratio(dense, runs, key) for key in ("last_bytes", "bytes_sent")]
        share = _percent(mean(run["sent"] for run in runs))
        lines.append([optimizer, name, str(len(runs)), loss, *ratios, share])
    ratio = "dense bytes / bytes, last step"
    heads = ["optimizer", "plan", "seeds", "bits per byte", ratio, "whole run", "elements sent"]
    return _table(heads, lines)


def _ratio(dense: Iterable[Result], runs: Iterable[Result], key: str) -> str:
    return f"{mean(run[key] for run in dense) / mean(run[key] for run in runs):.1f}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def settings(result: Result) -> str:
    """Every optimizer setting with its final loss over the seeds."""
    lines = [
        [name, _spread(found["final"]), f"{found['rate']:g}", f"{found['megabytes']:.1f}"]
        for name, found in result["settings"].items()
    ]
    return _table(["setting", f"{result['unit']}: mean (least to most)", "learning rate", "MB sent by rank 0"], lines)


def side_by_side(result: Result) -> str:
    """Every method of a run of `thinwire train`: its loss, its step, and when it was as good as dense training."""
    lines = []
    for name, found in result["methods"].items():
        taken = found["seconds_to_dense_loss"]
        lines.append(
            [
                f"`{name}`",
                f"{found['quality']:.2f}" if found["trains"] else "does not train",
                f"{1e3 * found['seconds_per_step']:.0f}",
                f"{result['methods']['dense']['seconds_per_step'] / found['seconds_per_step']:.1f}",
                f"{found['bytes_sent'] / 1e6:.1f}",
                f"{taken:.0f} s" if taken is not None else "not reached" if found["trains"] else "",
            ]
        )
    heads = ["method", result["unit"], "ms for a step", "times dense", "MB sent by rank 0", "dense's loss + 1 %"]
    return _table(heads, lines)


def _spread(figures: Sequence[float]) -> str:
    return f"{mean(figures):.2f} ({min(figures):.2f} to {max(figures):.2f})"
