"""The benchmark of exchanges: its plumbing on two ranks, its judgement on methods that do wrong, its refusals."""

import csv
import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from benchmarks import headline
from tests.docs.pages import ROOT
from thinwire.bench import words
from thinwire.bench.errors import BenchError
from thinwire.bench.exchange import feed, launch, ours, picture, table
from thinwire.bench.exchange.asked import Asked
from thinwire.bench.exchange.feed import Feed
from thinwire.bench.exchange.judge import Judge
from thinwire.bench.exchange.method import Contract, Message, gather_bytes, ring_bytes
from thinwire.bench.exchange.record import Cell, Row, Run
from thinwire.bench.sockets import bytes_sent, can_count
from thinwire.cli import _bench_exchange, main
from thinwire.lab.entrance import missing
from thinwire.lab.threads import ThreadWire, run_threads
from thinwire.traces import Recording, record

WORLD = 2
SIZE = "20k"


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of a model that is trained in no time."""
    folder = tmp_path_factory.mktemp("traces")
    record(folder / f"{SIZE}-{WORLD}", Recording(steps=(1, 3), world=WORLD, elements=20_000, batch=2))
    return folder


@pytest.fixture(scope="module")
def run(traces: Path) -> Run:
    """Plans, peers and liars, for real, on two ranks of this machine."""
    asked = Asked(
        sizes=SIZE,
        densities="1%,10%",
        plans="dense,topk_allgather,ar_topk,topk_allgather:int4",
        peers="tests.cli.liars",
        traces=str(traces),
        rate="100M",
        rounds=1,
        seconds=0.5,
        limit=1.0,
    )
    return launch.on_loopback(asked, WORLD)


def rows(run: Run) -> dict[str, Row]:
    return {row.label: row for row in run.cells[0].rows}


# Plans and peers -------------------------------------------------------------------------------------------------

OURS = ["dense", *(f"{name} {d} %" for name in ("topk_allgather", "ar_topk", "topk_allgather:int4") for d in (1, 10))]
THEIRS = ["ddp", "fp16", "powersgd-1", "powersgd-2", "powersgd-4", "naive-topk 1 %", "naive-topk 10 %"]
ELSEWHERE = ["grace-topk 1 %", "grace-qsgd", "demo", "epfml-powersgd-4"]


@pytest.mark.parametrize("label", [*OURS, *THEIRS, *ELSEWHERE])
def test_everybody_keeps_its_promise(run: Run, label: str) -> None:
    row = rows(run)[label]
    if label in ELSEWHERE and row.missing:
        assert row.missing.startswith("absent")
        assert "THINWIRE_PEERS" in row.missing or "pip install" in row.missing
        return
    assert row.missing == ""
    assert row.wrong == 0
    assert row.seconds
    assert all(seconds > 0.0 for seconds in row.seconds)
    assert row.gain is not None
    assert row.gain <= 1.0


def test_gain_is_the_part_of_the_mean_that_arrives(run: Run) -> None:
    gain = {label: row.gain or 0.0 for label, row in rows(run).items()}
    assert gain["dense"] == pytest.approx(1.0, abs=1e-9)
    assert gain["ddp"] == pytest.approx(1.0, abs=1e-9)
    assert gain["fp16"] > 0.9999
    # Whoever selects the same coordinates brings the same.
    assert gain["naive-topk 1 %"] == pytest.approx(gain["topk_allgather 1 %"], abs=1e-3)
    assert gain["topk_allgather 1 %"] < gain["topk_allgather 10 %"] < 1.0
    assert gain["powersgd-1"] < gain["powersgd-2"] < gain["powersgd-4"]


@pytest.mark.skipif(not can_count(), reason="this system does not tell what sockets send")
def test_bytes_are_those_of_the_sockets(run: Run) -> None:
    sent = {label: row.bytes_sent or 0 for label, row in rows(run).items()}
    numel = run.cells[0].numel
    ring = ring_bytes(4.0)(numel, WORLD)
    # Gloo adds a header to every message, thinwire a roll call and a vote.
    assert ring <= sent["ddp"] < 1.02 * ring + 2000
    assert ring <= sent["dense"] < 1.02 * ring + 4000
    assert ring / 2 <= sent["fp16"] < 1.02 * ring / 2 + 2000
    pairs = 8 * int(0.1 * numel) * (WORLD - 1)
    assert pairs <= sent["naive-topk 10 %"] < pairs + 2000
    assert sent["topk_allgather:int4 10 %"] < sent["topk_allgather 10 %"] < sent["naive-topk 10 %"]


def test_stages_are_told_where_they_are_known(run: Run) -> None:
    known = rows(run)
    assert set(known["topk_allgather 1 %"].stages) == {"compress", "exchange", "decode"}
    assert known["powersgd-1"].stages == {}


def test_steps_of_training_are_timed_and_judged_by_their_loss(tmp_path: Path) -> None:
    asked = Asked(plans="dense,topk_allgather", densities="10%", only="dense,topk*,ddp,broken,naive*,elsewhere",
                  peers="tests.cli.liars", train="byte_lm", steps=4, traces=str(tmp_path))  # fmt: skip
    run = launch.on_loopback(asked, WORLD)
    (cell,) = run.cells
    found = {row.name: row for row in cell.rows}
    assert len(found["ddp"].seconds) == 2
    assert 3.0 < (found["ddp"].loss or 0.0) < 8.0
    # Debts are kept from step to step, so what selects the same learns the same.
    assert found["dense"].loss == found["ddp"].loss
    assert found["naive-topk"].loss == pytest.approx(found["topk_allgather"].loss, abs=0.02)
    assert found["topk_allgather"].loss != found["ddp"].loss
    assert found["broken"].missing.startswith("failed")
    assert found["elsewhere"].loss is None
    assert not any(tmp_path.iterdir())
    assert "loss" in table.columns(run)
    assert "gain" not in table.columns(run)
    assert table.verdicts(cell) == []
    assert "steps of byte_lm" in table.for_page(run)


@pytest.mark.emulated
@pytest.mark.skipif(bool(missing()), reason=missing() or "there is a lab")
def test_a_network_of_the_lab_gives_its_name_and_its_rate(traces: Path) -> None:
    asked = Asked(sizes=SIZE, densities="10%", plans="dense,topk_allgather", traces=str(traces), rounds=1, seconds=0.2)
    (cell,) = launch.in_lab(asked, WORLD, ["rate=50mbit delay=2ms"]).cells
    assert (cell.net, cell.rate, cell.world) == ("rate=50mbit delay=2ms", 50e6, WORLD)
    assert {row.label: row.wrong for row in cell.measured} == {"dense": 0, "topk_allgather 10 %": 0}
    assert all(cell.floor(row) for row in cell.measured)


# Who does wrong --------------------------------------------------------------------------------------------------


def test_who_does_right_is_not_accused(run: Run) -> None:
    assert rows(run)["the-mean"].wrong == 0


@pytest.mark.parametrize("label", ["a-sum", "each-its-own", "nothing", "forgetful"])
def test_who_does_wrong_is_found(run: Run, label: str) -> None:
    assert rows(run)[label].wrong > 0
    assert any(line.startswith(label) for line in run.failures)
    assert f"FAILED: {label}" in table.for_page(run)


def test_who_cannot_is_left_out_and_the_others_go_on(run: Run) -> None:
    known = rows(run)
    assert known["broken"].missing == "failed on rank 0, 1: RuntimeError: no such shape"
    assert known["elsewhere"].missing == "absent: buy one"
    assert known["far-too-slow"].missing.startswith("would take 80000 s at 100 Mbit/s; --limit")
    for label in ("broken", "elsewhere", "far-too-slow"):
        assert known[label].seconds == []
        assert f"not measured: {label}" in table.for_page(run)


class Given:
    """A feed of made-up gradients: what is right here can be told by hand."""

    def __init__(self, *gradients: Tensor) -> None:
        self.gradients = gradients
        self.message = Message((("weight", tuple(gradients[0].shape)),))

    def gradient(self, rank: int) -> Tensor:
        return self.gradients[rank]


def judged(
    wire: ThreadWire, given: Given, delivered: Tensor, contract: Contract, owed: list[Tensor]
) -> tuple[int, float]:
    judge = Judge(cast(Feed, given), wire)
    mine = owed[wire.rank] if owed else None
    return judge.wrong(delivered, contract, mine), judge.gain(delivered)


def verdict_of(delivered: Tensor, contract: Contract, *owed: Tensor) -> tuple[int, float]:
    given = Given(torch.tensor([1.0, 3.0, 0.0, 4.0]), torch.tensor([3.0, 1.0, 2.0, 0.0]))
    found = run_threads(judged, 2, given, delivered, contract, list(owed))
    return cast("tuple[int, float]", found[0])


def test_the_judge_counts_elements_that_are_not_the_mean() -> None:
    mean = torch.tensor([2.0, 2.0, 1.0, 2.0])
    assert verdict_of(mean, Contract.EXACT) == (0, 1.0)
    assert verdict_of(mean * (1.0 + 1e-6), Contract.EXACT)[0] == 0
    off = mean.clone()
    off[1:3] = torch.tensor([2.1, torch.nan])
    assert verdict_of(off, Contract.EXACT)[0] == 2


def test_the_judge_knows_what_is_owed() -> None:
    delivered = torch.tensor([0.0, 2.0, 0.0, 2.0])
    owed = (torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.tensor([3.0, 0.0, 2.0, 0.0]))
    wrong, gain = verdict_of(delivered, Contract.KEEPS, *owed)
    assert wrong == 0
    assert gain == pytest.approx(1.0 - 5.0 / 13.0)
    assert verdict_of(delivered, Contract.KEEPS)[0] > 0
    assert verdict_of(delivered, Contract.LOSSY)[0] == 0


# Tables, files, pictures -----------------------------------------------------------------------------------------


def a_cell(*found: Row, **changes: Any) -> Cell:
    usual: dict[str, Any] = {"net": "thin", "rate": 1e8, "world": 4, "size": 1000, "numel": 1000}
    return Cell(**{**usual, **changes}, rows=list(found))


def test_a_peer_is_held_against_the_quickest_plan_that_brings_as_much() -> None:
    ours_ = [
        Row(name="thin", seconds=[1.0], gain=0.1),
        Row(name="thick", seconds=[2.0, 3.0, 4.0], gain=0.6),
        Row(name="thicker", seconds=[5.0], gain=0.9),
    ]
    peer = Row(name="peer", peer=True, seconds=[6.0], gain=0.6004)
    rich = Row(name="rich", peer=True, seconds=[6.0], gain=0.95)
    cell = a_cell(*ours_, peer, rich, Row(name="lost", peer=True, missing="absent"))
    assert [(one.name, other and other.name) for one, other in table.verdicts(cell)] == [
        ("peer", "thick"),
        ("rich", None),
    ]
    assert table.verdict(peer, ours_[1]) == "peer: ahead 2x with thick (gain 0.600 and 0.600)"
    assert "BEHIND 0.5x" in table.verdict(replace(peer, seconds=[1.5]), ours_[1])
    assert table.verdict(rich, None).startswith("rich: behind, no plan")


def test_figures_follow_from_times_and_bytes() -> None:
    dense = Row(name="ddp", peer=True, seconds=[0.004], bytes_sent=6000, gain=1.0)
    row = Row(name="some", density=0.01, seconds=[0.001, 0.002, 0.003], bytes_sent=12_500, gain=0.5)
    found = table.cells(a_cell(dense, row), row)
    assert found["time"] == "2 ms"
    assert found["IQR"] == "1 ms"
    assert found["algbw"] == "2 MB/s"
    assert found["busbw"] == "6.25 MB/s"
    assert found["dense-eq."] == "24 Mbit/s"
    assert found["vs dense"] == "2x"
    assert found["/ floor"] == "2.00"
    unknown = replace(row, seconds=[0.001], bytes_sent=None)
    assert table.cells(a_cell(unknown, rate=0.0), unknown)["/ floor"] == "-"
    assert table.cells(a_cell(unknown), unknown)["vs dense"] == "-"


def test_a_run_is_written_and_read_again(run: Run, tmp_path: Path) -> None:
    run.write(tmp_path / "run.json")
    assert Run.read(tmp_path / "run.json") == run
    lines = list(csv.DictReader(run.csv().splitlines()))
    assert [line["method"] for line in lines] == [row.name for row in run.cells[0].measured]
    assert {line["count"] for line in lines} == {str(run.cells[0].numel)}
    assert float(lines[0]["gain"]) == pytest.approx(1.0)


def test_a_kept_run_is_shown_again(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.json"
    run.write(path)
    outputs = ["--csv", str(tmp_path / "run.csv"), "--plot", str(tmp_path / "run.svg")]
    assert main(["bench", "exchange", "--read", str(path), *outputs]) == 1  # the liars are in it
    said = capsys.readouterr().out
    assert "loopback at 100 Mbit/s, 2 ranks" in said
    assert "ahead" in said or "BEHIND" in said
    assert (tmp_path / "run.csv").read_text() == run.csv()
    drawn = (tmp_path / "run.svg").read_text()
    assert "<title>" in drawn
    assert "topk_allgather 1 %" in drawn
    assert main(["bench", "exchange", "--read", str(path), "--markdown"]) == 1
    assert capsys.readouterr().out == table.for_page(run)
    assert main(["bench", "exchange", "--read", f"{path},{path}", "--json", str(tmp_path / "both.json")]) == 1
    assert Run.read(tmp_path / "both.json").cells == [*run.cells, *run.cells]


def test_the_summary_has_a_column_for_each_network(run: Run) -> None:
    both = run.with_cells([replace(run.cells[0], net="elsewhere")])
    head, _, *lines = [line for line in table.summary(both).splitlines() if line]
    assert head == "| 20k elements | gain | loopback | elsewhere |"
    assert len(lines) == len(run.cells[0].measured)


def test_nothing_measured_is_nothing_drawn(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="nothing was measured"):
        picture.draw(replace(run, cells=[a_cell()]), tmp_path / "never.png")


# What is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--plans", "topk_sideways"], "'topk_sideways'"),
        (["--plans", "topk_allgather:int5"], "int5"),
        (["--plans", "topk_allgather@0"], "'0'"),
        (["--plans", "dense@10%"], "has no density"),
        (["--plans", "ar_topk:int4"], "ar_topk:int4"),
        (["--sizes", "ten"], "'ten'"),
        (["--densities", "0"], "'0'"),
        (["--only", "nobody"], "'nobody'"),
        (["--peers", "no.such.module"], "'no.such.module'"),
        (["--peers", "json"], "'json'"),
        (["--hosts", "1"], "1 hosts"),
        (["--rate", "fast"], "'fast'"),
        (["--rounds", "0"], "0 rounds"),
        (["--seconds", "0"], "0.0 seconds"),
        (["--limit", "-1"], "-1.0 limit"),
        (["--threads", "0"], "0 threads"),
        (["--net", "no-such-net"], "'no-such-net'"),
        (["--net", "lan-1g", "--rate", "1G"], "--net and --rate"),
        (["--train", "chess"], "'chess'"),
        (["--train", "byte_lm", "--steps", "0"], "0 steps"),
        (["--quick", "--sizes", "1M"], "--quick and --sizes"),
        (["--json", "."], "is a folder"),
        (["--plot", "picture.gif"], "picture.gif"),
        (["--read", "pyproject.toml"], "is no run"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(
    options: list[str], names: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["bench", "exchange", *options]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("thinwire: ")
    assert names in said.err
    assert said.err.count("\n") == 1


def test_a_trace_of_too_few_ranks_is_refused(traces: Path) -> None:
    (traces / f"{SIZE}-3").symlink_to(traces / f"{SIZE}-{WORLD}")
    with pytest.raises(BenchError, match="recorded with 2 ranks and cannot be measured with 3"):
        feed.feed(str(traces), 20_000, 3)


def test_a_rank_that_fails_ends_the_run_with_its_name(traces: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = Asked(sizes=SIZE, traces=str(traces), backend="no-such-backend")
    with pytest.raises(BenchError, match=r"rank 0 \(status 1\)"):
        launch.on_loopback(asked, WORLD)
    assert "no-such-backend" in capfd.readouterr().err


def test_rates_are_bits_per_second() -> None:
    assert [words.rate(text) for text in ("", "100M", "2.5G", "9600")] == [0.0, 1e8, 2.5e9, 9600.0]


def test_recipes_take_every_density_and_format() -> None:
    named = [(one.name, one.density) for one in ours.contestants("dense,topk_allgather:int4", (0.01, 0.1))]
    assert named == [("dense", None), ("topk_allgather:int4", 0.01), ("topk_allgather:int4", 0.1)]
    assert [one.density for one in ours.contestants("ar_topk@20%", (0.01, 0.1))] == [0.2]


def test_forecasts_are_those_of_rings() -> None:
    assert ring_bytes(4.0)(1000, 4) == 6000
    assert gather_bytes(1.0)(1000, 4) == 3000


def test_the_headline_takes_options() -> None:
    said = headline.words(["--sizes", "600k"])
    assert said[:2] == ["bench", "exchange"]
    assert said[-2:] == ["--sizes", "600k"]
    assert said.count("--sizes") == 1
    options = _bench_exchange.Options(
        **{
            name.removeprefix("--"): value
            for name, value in headline.USUAL.items()
            if name in ("--sizes", "--densities", "--plans", "--peers")
        }
    )
    assert _bench_exchange.asked_of(options).contestants()


@pytest.mark.skipif(not can_count(), reason="this system does not tell what sockets send")
def test_what_sockets_send_is_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as here:
        there, _ = server.accept()
        with there:
            before = bytes_sent()
            here.sendall(bytes(100_000))
            there.sendall(b"yes")
            left = 100_000
            while left:
                left -= len(there.recv(left))
            assert bytes_sent() - before == 100_003


def test_a_rank_under_torchrun_starts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    seen: list[Asked] = []
    monkeypatch.setattr(_bench_exchange, "take_part", lambda asked: seen.append(asked) or SimpleNamespace(failures=[]))
    assert _bench_exchange.exchange(_bench_exchange.Options(net="my-cluster", rate="1G")) == 0
    assert [(asked.net, asked.rate) for asked in seen] == [("my-cluster", "1G")]
    assert json.dumps(seen[0].words())
    assert os.environ["RANK"] == "1"
