"""What the kernels are held to: ratios within one run, of medians, with one thread and 25 million elements."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from thinwire.bench.kernels.moved import index_bytes
from thinwire.bench.kernels.record import Heat, Role, Run, Times, Yardstick

SIZE = 25_000_000
_VALUE_BYTES = 4

Measure = Callable[[Heat, Times], float | None]
"""A figure of a kernel's times in a heat; None where something is missing that it is compared with."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One bar, and how high the kernel came.

    Attributes:
        bar: What was asked for.
        measured: What was found.
        passed: Whether that is enough.
    """

    bar: str
    measured: str
    passed: bool


@dataclass(frozen=True, kw_only=True)
class _Bar:
    """A figure with a limit.

    Attributes:
        case: Of which kernel.
        densities: Where it holds.
        figure: What is measured.
        limit: The worst figure that passes.
        unit: Behind the figure; ``{}`` in it is the figure.
        least: Whether the limit is the least figure that passes, and not the most.
    """

    case: str
    densities: tuple[float | None, ...]
    figure: Measure
    limit: float
    unit: str
    least: bool = False


def verdicts(run: Run) -> list[Verdict]:
    """How every bar came out that the run has the figures for.

    Args:
        run: The run.
    """
    return [verdict for bar in _BARS for verdict in _judged(bar, run)]


def _judged(bar: _Bar, run: Run) -> Iterator[Verdict]:
    for heat in run.heats:
        if heat.case != bar.case or heat.density not in bar.densities or heat.size != SIZE:
            continue
        one = next(
            (one for one in heat.times if one.role is Role.KERNEL and one.threads == 1 and one.nanoseconds), None
        )
        figure = bar.figure(heat, one) if one else None
        if one and figure is not None:
            where = "" if heat.density is None else f", {100 * heat.density:g} %"
            edge = "at least" if bar.least else "at most"
            yield Verdict(
                bar=f"{heat.case}{where}: {edge} {bar.unit.format(f'{bar.limit:g}')}",
                measured=f"{figure:.3g} ({one.name})",
                passed=figure >= bar.limit if bar.least else figure <= bar.limit,
            )


def _additions(heat: Heat, one: Times) -> float | None:
    add = heat.yardstick(Yardstick.ADD, 1)
    return one.median / add.median if add else None


def _torch(heat: Heat, one: Times) -> float | None:
    rival = heat.torch(1)
    return rival.median / one.median if rival else None


def _count(heat: Heat) -> int:
    return max(1, round(heat.size * (heat.density or 0.0)))


def _of_indices(heat: Heat, one: Times) -> float:
    return index_bytes(heat.size, _count(heat)) / one.median


def _of_entries(heat: Heat, one: Times) -> float:
    return (index_bytes(heat.size, _count(heat)) + _VALUE_BYTES * _count(heat)) / one.median


def _above_entropy(heat: Heat, one: Times) -> float:
    """What the bytes written take more than telling one from all sets of so many indices, in percent."""
    del one
    n, k = heat.size, _count(heat)
    bits = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)
    written = heat.moves - index_bytes(n, k)
    return 100.0 * (8 * written / bits - 1.0)


_ALL = (0.001, 0.01, 0.1)
_ADD = "{} times residual.add_(gradient)"
_FASTER = "{} times as fast as torch"

_BARS = (
    _Bar(case="take_top_k", densities=(0.001,), figure=_additions, limit=2.0, unit=_ADD),
    _Bar(case="take_top_k", densities=(0.01,), figure=_additions, limit=2.5, unit=_ADD),
    _Bar(case="take_top_k", densities=(0.1,), figure=_additions, limit=4.0, unit=_ADD),
    _Bar(case="take_top_k", densities=(0.001, 0.01), figure=_torch, limit=40.0, unit=_FASTER, least=True),
    _Bar(case="scatter_sum_", densities=(0.01,), figure=_torch, limit=4.0, unit=_FASTER, least=True),
    *(
        _Bar(case=case, densities=_ALL, figure=figure, limit=1.0, unit=f"{{}} GB/s of {payload}", least=True)
        for case in ("rice_write", "rice_read")
        for payload, figure in (("indices (4 bytes each)", _of_indices), ("entries (8 bytes each)", _of_entries))
    ),
    _Bar(case="rice_write", densities=_ALL, figure=_above_entropy, limit=8.0, unit="{} % more than the entropy"),
    _Bar(case="spectrum", densities=(None,), figure=_additions, limit=2.0, unit=_ADD),
    _Bar(case="sampled_spectrum", densities=(None,), figure=_additions, limit=0.3, unit=_ADD),
)
