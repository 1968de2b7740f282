"""`thinwire plan` and `thinwire probe`: predictions that follow from prices, and links that are measured."""

import json
from math import prod

import pytest
import torch

from thinwire.cli import main
from thinwire.cli.plan import network_of
from thinwire.control.machine import Machine
from thinwire.control.network import Network
from thinwire.control.probing import SIZES, TURNS, Link, fit, matrix, pairs
from thinwire.errors import PlanError
from thinwire.planning.forecast import Question, answer, crossover, over_bandwidths, over_hosts
from thinwire.planning.models import MODELS, buckets, count, shapes_of
from thinwire.planning.peers import PEERS


def question(**changes) -> Question:
    asked = {"shapes": shapes_of("resnet50"), "network": Network.of(1, 100), "machine": Machine(), **changes}
    return Question(**asked)


def test_known_models_have_the_parameters_they_are_known_for() -> None:
    assert count(MODELS["resnet50"]()) == 25_557_032
    assert count(MODELS["gpt2-small"]()) == 124_439_808


def test_buckets_are_all_of_the_model() -> None:
    for model in MODELS:
        sizes = buckets(shapes_of(model))
        assert sum(sizes) == count(shapes_of(model))
        assert all(4 * size >= 1 << 20 for size in sizes[:-1])


def test_shapes_come_from_files(tmp_path) -> None:
    layer = torch.nn.Linear(5, 7)
    torch.save(layer.state_dict(), tmp_path / "model.pt")
    (tmp_path / "model.json").write_text("[[7, 5], [7]]")
    (tmp_path / "named.json").write_text('{"weight": [7, 5], "bias": [7]}')
    for name in ("model.pt", "model.json", "named.json"):
        assert shapes_of(str(tmp_path / name)) == ((7, 5), (7,))
    (tmp_path / "bad.json").write_text("[[0]]")
    for name in ("bad.json", "none.json"):
        with pytest.raises(PlanError):
            shapes_of(str(tmp_path / name))


def test_compression_helps_on_thin_wires_and_not_on_fast_ones() -> None:
    thin, fast = answer(question(), 4), answer(question(network=Network.of(0.01, 1e6)), 4)
    assert thin.speedup > 5
    assert fast.choice.family in ("dense", "dense-direct")
    assert fast.speedup == pytest.approx(1.0, abs=0.1)


def test_a_crossover_is_where_it_crosses() -> None:
    asked = question(network=Network.of(0.1, 100))
    at = crossover(asked, 4)
    assert at is not None
    below, above = over_bandwidths(asked, 4, (at / 1.05, at * 1.05))
    assert below.seconds < below.peers["dense"]
    assert above.seconds >= above.peers["dense"] * 0.98


def test_times_grow_with_hosts() -> None:
    answers = over_hosts(question(), (2, 8, 64))
    for name in PEERS:
        times = [each.peers[name] for each in answers]
        assert times == sorted(times)


def test_power_sgd_sends_two_thin_factors() -> None:
    work = PEERS["PowerSGD-4"](((1000, 1000), (1000,)), 2)
    assert work.bytes_sent == 4 * (4 * 2000 + 1000)
    assert (
        sum(prod(shape) for shape in ((1000, 1000), (1000,))) * 4
        == PEERS["dense"](((1000, 1000), (1000,)), 2).bytes_sent
    )


def test_the_command_answers_and_writes(tmp_path, capsys) -> None:
    for suffix in (".json", ".png", ".svg"):
        out = tmp_path / f"answer{suffix}"
        assert main(["plan", "--model", "resnet50", "--hosts", "16", "--net", "100mbit,5ms", "--out", str(out)]) == 0
        assert out.stat().st_size > 1000
    printed = capsys.readouterr().out
    for part in (
        "PowerSGD-4",
        "25.6 M parameters",
        "Dense is the faster one",
        "Write: thinwire.attach(model)",
        "16 <",
    ):
        assert part in printed
    rows = json.loads((tmp_path / "answer.json").read_text())
    assert [row["hosts"] for row in rows][:4] == [2, 4, 8, 16]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "resnet51"], "there is no model 'resnet51'"),
        (["--model", "resnet50", "--net", "fast"], "100mbit,20ms"),
        (["--model", "resnet50", "--net=-5mbit"], "out of range"),
        (["--model", "resnet50", "--hosts", "1"], "2 hosts or more"),
        (["--model", "resnet50", "--out", "x.pdf"], ".png or .svg"),
    ],
)
def test_mistakes_are_told(arguments, said, capsys) -> None:
    assert main(["plan", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_network_is_read_as_it_is_written(tmp_path) -> None:
    assert network_of("100mbit,20ms") == Network.of(20, 100)
    assert network_of("2.5gbit,1ms") == Network.of(1, 2500)
    assert network_of("64kbit") == Network.of(0.1, 0.064)
    (tmp_path / "p.json").write_text('{"fit": {"latency": 0.01, "per_byte": 1e-7}}')
    assert network_of(str(tmp_path / "p.json")) == Network(latency=0.01, per_byte=1e-7)


def probed(rank: int, world: int) -> list[Link]:
    """On real ranks."""
    from thinwire.cli.probe import measured

    return measured(rank, world)


def test_links_are_measured_in_both_directions(ranks) -> None:
    results = ranks(probed, 3)
    assert results[0] == results[1] == results[2]
    assert {(link.source, link.target) for link in results[0]} == {(a, b) for a in range(3) for b in range(3) if a != b}
    for link in results[0]:
        assert 0.0 < link.latency < 1.0
        assert 0.0 < link.per_byte < 1e-4
        assert link.latency_range[0] <= link.latency_range[1]
    assert fit(results[0]).latency == max(link.latency for link in results[0])
    rows = list(matrix(results[0], 3, lambda link: link.latency))
    assert rows[1][1] is None
    assert rows[0][1] is not None


def test_a_probe_is_small() -> None:
    assert TURNS * sum(SIZES) < 1_050_000
    assert len(pairs(8)) == 28
    assert len(pairs(64)) <= 64 * 6
    assert pairs(2) == [(0, 1)]
    assert all(a < b < 100 for a, b in pairs(100))


def test_a_probe_without_torchrun_says_how(capsys, monkeypatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    assert main(["probe"]) != 0
    assert "torchrun" in capsys.readouterr().err


def test_links_are_drawn(tmp_path, capsys) -> None:
    from thinwire.cli.probe import report

    links = [
        Link(source=a, target=b, latency=0.01, per_byte=1e-7, latency_range=(0.01, 0.02), per_byte_range=(1e-7, 2e-7))
        for a in range(3) for b in range(3) if a != b
    ]  # fmt: skip
    report(links, 3, [tmp_path / "p.png", tmp_path / "p.json"])
    assert (tmp_path / "p.png").stat().st_size > 1000
    assert network_of(str(tmp_path / "p.json")) == Network(latency=0.01, per_byte=1e-7)
    assert "80" in capsys.readouterr().out
