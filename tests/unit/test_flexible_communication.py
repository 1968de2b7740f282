"""The closed forms of Flexible Communication, against the numbers that its tables print."""

import itertools
import math

import pytest

from thinwire.papers import flexible_communication as paper
from thinwire.papers.flexible_communication import Setting

RESNET18, RESNET50, ALEXNET = (4.0 * parameters for parameters in (11_689_512, 25_557_032, 61_100_840))
GBPS = 1.25e8


def setting(size: float, density: float, milliseconds: float, gbps: float, ranks: int = 8) -> Setting:
    return Setting(ranks=ranks, size=size, density=density, latency=milliseconds / 1e3, bandwidth=gbps * GBPS)


@pytest.mark.parametrize(
    ("size", "gbps", "printed"),
    [
        (RESNET50, 5, (232.0, 94.7, 156.2)),
        (RESNET50, 1, (1148.0, 405.5, 745.0)),
        (RESNET18, 10, (54.0, 35.0, 43.2)),
    ],
)
def test_the_costs_are_those_of_table_6(size: float, gbps: float, printed: tuple[float, ...]) -> None:
    """Milliseconds at 1 ms and 8 ranks, a tenth kept."""
    case = setting(size, 0.1, 1.0, gbps)
    found = [1e3 * cost(case) for cost in (paper.all_gather, paper.ring, paper.tree)]
    assert found == pytest.approx(printed, rel=0.031)


def test_the_costs_of_resnet50_are_printed_to_the_last_digit() -> None:
    case = setting(RESNET50, 0.1, 1.0, 5)
    found = [round(1e3 * cost(case), 1) for cost in (paper.all_gather, paper.ring, paper.tree)]
    assert found == [232.0, 94.7, 156.2]


def test_dense_costs_are_those_of_table_2() -> None:
    """Of 1e8 elements on 8 ranks, a tenth of the bandwidth is a tenfold of the second term."""
    found = [1e3 * paper.dense_ring(setting(4e8, 1.0, 10, gbps)) for gbps in (10, 5, 1)]
    assert found == pytest.approx([716, 1271, 5773], rel=0.03)
    assert paper.dense_tree(setting(4e8, 1.0, 10, 10)) > paper.dense_ring(setting(4e8, 1.0, 10, 10))


def test_the_thresholds_of_equation_5() -> None:
    table = {
        2: (math.inf, 0.0, -0.5), 4: (1.25, 0.417, 0.0), 8: (0.531, 0.661, 0.833), 16: (0.278, 0.804, 2.25),
        32: (0.155, 0.888, 4.70), 64: (0.088, 0.937, 9.0),
    }  # fmt: skip
    for ranks, printed in table.items():
        limits = paper.thresholds(ranks)
        found = (limits.ring_tree, limits.ring_gather, limits.tree_gather)
        assert found == pytest.approx(printed, abs=6e-4), ranks


@pytest.mark.parametrize(
    ("ranks", "ratio", "wanted"),
    [
        (8, 0.530, paper.RING), (8, 0.532, paper.TREE), (8, 0.832, paper.TREE), (8, 0.834, paper.GATHER),
        (4, 0.416, paper.RING), (4, 0.418, paper.GATHER), (2, 1e-6, paper.GATHER), (16, 2.0, paper.TREE),
    ],
)  # fmt: skip
def test_one_number_decides(ranks: int, ratio: float, wanted: str) -> None:
    case = Setting(ranks=ranks, size=1e8, density=0.01, latency=ratio * 1e6 / 1e9, bandwidth=1e9)
    assert paper.chosen(case) == wanted


def test_the_rule_chooses_what_the_formulas_say_is_cheapest() -> None:
    for ranks, density, latency, gbps in itertools.product(
        (2, 3, 4, 5, 8, 16), (0.1, 0.033, 0.011, 0.004, 0.001), (0.1, 1, 4, 16, 50), (1, 5, 25)
    ):
        case = setting(RESNET50, density, latency, gbps, ranks)
        costs = {name: cost(case) for name, cost in paper.COSTS.items()}
        assert costs[paper.chosen(case)] == pytest.approx(min(costs.values()), rel=1e-12)


@pytest.mark.parametrize(
    ("milliseconds", "gbps", "size", "wanted"),
    [
        (1, 25, RESNET18, "TAAAA"), (1, 25, RESNET50, "RAAAA"), (1, 25, ALEXNET, "RRAAA"),
        (2, 20, RESNET18, "AAAAA"), (2, 20, ALEXNET, "RTAAA"), (4, 15, RESNET50, "TAAAA"),
        (1, 1, RESNET18, "RRRTA"), (1, 1, RESNET50, "RRRRA"), (1, 1, ALEXNET, "RRRRR"), (50, 25, ALEXNET, "AAAAA"),
    ],
)  # fmt: skip
def test_the_policy_over_densities(milliseconds: float, gbps: float, size: float, wanted: str) -> None:
    letters = {paper.RING: "R", paper.TREE: "T", paper.GATHER: "A"}
    densities = (0.1, 0.033, 0.011, 0.004, 0.001)
    assert "".join(letters[paper.chosen(setting(size, c, milliseconds, gbps))] for c in densities) == wanted
