"""The kernel benchmark's plumbing, at tiny sizes. How fast anything is, no test asks."""

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from benchmarks import pages
from tests.docs.pages import ROOT
from tests.native import oracle
from thinwire import kernels
from thinwire.bench import figures, machine, words
from thinwire.bench.errors import BenchError
from thinwire.bench.kernels import asked, bars, checks, picture, table
from thinwire.bench.kernels.asked import Asked
from thinwire.bench.kernels.case import Case
from thinwire.bench.kernels.cases import FAMILIES
from thinwire.bench.kernels.data import KINDS, Task
from thinwire.bench.kernels.measure import Broom, Clock, Contestant, Effort, Slots, race
from thinwire.bench.kernels.moved import line_bytes, tensors_in
from thinwire.bench.kernels.record import Heat, Role, Run, Times, Yardstick
from thinwire.bench.kernels.sweep import points, shortage, sweep
from thinwire.cli import main
from thinwire.errors import KernelError

CASES = {case.name: case for members in FAMILIES.values() for case in members}
NOT_MEASURED: set[str] = set()
"""Kernels that are not worth a case."""


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Where cores are rare, torch's threads wait for each other longer than such small work takes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def an_ask(*names: str, cases: Sequence[Case] = (), **changes: Any) -> Asked:
    tiny: dict[str, Any] = {
        "only": tuple(("some", case) for case in (*(CASES[name] for name in names), *cases)) or asked.cases(""),
        "sizes": (3000,),
        "densities": (0.01,),
        "threads": (1,),
        "implementations": ("reference",),
        "data": "gaussian",
        "effort": Effort(rounds=3, seconds=60.0),
    }
    return Asked(**{**tiny, **changes})


def run_of(ask: Asked) -> Run:
    return sweep(ask, lambda heat: None, broom=Broom(4096))


@pytest.fixture(scope="module")
def run() -> Run:
    """Every case, with several of everything."""
    return run_of(an_ask(densities=(0.01, 0.2), threads=(1, 2), implementations=tuple(oracle.NAMES)))


# Cases -----------------------------------------------------------------------------------------------------------


def test_every_kernel_is_measured() -> None:
    functions = {name for name in kernels.__all__ if hasattr(kernels.Kernels, name)}
    assert {"top_k", "scatter_add_"} <= functions
    assert functions - NOT_MEASURED == functions & set(CASES)


@pytest.mark.parametrize(
    ("size", "density", "data"),
    [
        *((5000, 0.1, data) for data in KINDS),
        *((size, density, "gaussian") for size in (1, 7, 5000) for density in (1e-9, 1.0)),
    ],
)
def test_every_case_is_right_by_its_own_check(size: int, density: float, data: str) -> None:
    ask = an_ask(
        sizes=(size,),
        densities=(density,),
        data=data,
        implementations=tuple(oracle.NAMES),
        effort=Effort(rounds=1, seconds=60.0),
    )
    assert run_of(ask).failures == []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_a_case_does_not_declare_it_does_not_change(case: Case) -> None:
    for call in (case.kernel(kernels.implementation(kernels.active())), case.torch):
        arguments = case.make(Task(size=3000, density=0.01))
        before = [part.clone() if isinstance(part, Tensor) else part for part in arguments]
        call(*arguments)
        for position, (old, new) in enumerate(zip(before, arguments, strict=True)):
            assert position in case.changes or checks.differences(old, new) == 0


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_case_moves_no_less_than_its_largest_list(case: Case) -> None:
    task = Task(size=3000, density=0.5)
    arguments = case.make(task)
    touched = case.moves(*arguments)
    assert isinstance(touched, int)
    assert touched >= 4 * task.k / 8


# Wrong and broken contestants ------------------------------------------------------------------------------------


def forgetful(out: Tensor, indices: Tensor, values: Tensor) -> None:
    out.index_add_(0, indices[2:], values[2:])


def spoiled(case: Case, **changes: Any) -> Run:
    return run_of(an_ask(cases=[replace(case, **changes)]))


def times_of(run: Run, role: Role) -> Times:
    return next(one for one in run.heats[0].times if one.role is role)


def test_a_wrong_contestant_is_counted_and_shown() -> None:
    wrong = spoiled(CASES["scatter_add_"], torch=forgetful)
    assert times_of(wrong, Role.KERNEL).wrong == 0
    # Two elements in each of 32 slots of the warm-up, and in the last slot of the last round.
    slots = 32
    assert times_of(wrong, Role.TORCH).wrong == 2 * (slots + 1)
    assert [line.split(": ")[1] for line in wrong.failures] == [f"{2 * (slots + 1)} elements wrong"]
    rows = dict(zip(("kernel", "torch"), next(table.rows(wrong))[1], strict=True))
    assert rows["kernel"][-1] == "0"
    assert rows["torch"][-1] == str(2 * (slots + 1))
    assert "FAILED" in table.for_page(wrong)


@pytest.mark.skipif(not oracle.COMPILED, reason="there are no compiled kernels here")
def test_a_wrong_kernel_is_counted() -> None:
    def call(implementation: kernels.Kernels, out: Tensor, indices: Tensor, values: Tensor) -> None:
        right = type(implementation) is kernels.Kernels
        (implementation.scatter_add_ if right else forgetful)(out, indices, values)

    case = replace(CASES["scatter_add_"], call=call)
    wrong = run_of(an_ask(cases=[case], implementations=("reference", oracle.COMPILED[0])))
    assert [one.wrong for one in wrong.heats[0].times if one.role is not Role.YARDSTICK] == [0, 2 * 33, 0]
    assert len(wrong.failures) == 1


def test_one_that_raises_does_not_end_the_run() -> None:
    def broken(values: Tensor, k: int) -> Tensor:
        raise IndexError("of no use")

    found = spoiled(CASES["top_k"], torch=broken)
    assert times_of(found, Role.TORCH).error == "IndexError: of no use"
    assert times_of(found, Role.TORCH).nanoseconds == []
    assert len(times_of(found, Role.KERNEL).nanoseconds) == 3
    assert "IndexError: of no use" in found.failures[0]
    assert "IndexError: of no use" in table.for_page(found)


@pytest.mark.parametrize(
    ("expected", "got", "count"),
    [
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]), 0),
        (torch.tensor([1, 2]), torch.tensor([1, 2], dtype=torch.int32), 0),
        (torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 5.0]), 2),
        (torch.tensor([1.0]), torch.tensor([float("nan")]), 1),
        (torch.tensor([1.0, 1.0]), torch.tensor([1.0, 1.0 + 1e-6]), 1),
        (torch.tensor([1.0, 2.0]), None, 2),
        ((torch.tensor([1]), 2.0), (torch.tensor([1]), 2.0 + 1e-7), 0),
        ((torch.tensor([1]), 2.0), (torch.tensor([1]), 2.1), 1),
        ((torch.tensor([1]), 2.0), (torch.tensor([1]),), 2),
        (None, None, 0),
        (None, torch.tensor([1]), 1),
        (float("inf"), float("inf"), 0),
    ],
)
def test_differences_are_counted(expected: Any, got: Any, count: int) -> None:
    assert checks.same((), expected, got) == count


def test_sums_may_differ_in_the_last_places() -> None:
    expected = torch.tensor([1.0, 100.0])
    assert checks.nearly((), expected, torch.tensor([1.0 + 1e-4, 100.0])) == 0
    assert checks.nearly((), expected, torch.tensor([1.1, 100.0])) == 1
    assert checks.nearly((), expected, torch.tensor([1.0, float("nan")])) == 1


def test_sets_have_no_order() -> None:
    assert checks.as_sets((), (torch.tensor([1, 2, 3]),), (torch.tensor([3, 1, 2]),)) == 0
    assert checks.as_sets((), (torch.tensor([1, 2, 3]),), (torch.tensor([3, 1, 1]),)) == 1


def test_chance_may_have_a_part_but_not_in_the_form() -> None:
    assert checks.of_the_same_form((), 1.0, 2.0) == 0
    assert checks.of_the_same_form((), 1.0, torch.ones(1)) == 1
    assert checks.of_the_same_form((), torch.ones(3), torch.zeros(3)) == 0
    assert checks.of_the_same_form((), torch.ones(3), torch.zeros(1)) == 2
    assert checks.of_the_same_form((), torch.ones(3), None) == 3


def test_tensors_are_found_however_deep() -> None:
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    assert [len(part) for part in tensors_in((one, [(two, 5), "x"], ((three,),)))] == [1, 2, 3]


def test_the_largest_may_be_any_of_equal_ones() -> None:
    values = torch.tensor([3.0, -1.0, 1.0, 2.0])
    expected = torch.tensor([0, 1, 3])
    assert checks.largest((values,), expected, torch.tensor([3, 0, 2])) == 0
    assert checks.largest((values,), expected, torch.tensor([3, 3, 2])) == 2
    owed, gradient = values / 2, values / 2
    got = (torch.tensor([3, 0, 2]), torch.tensor([2.0, 3.0, 1.0]))
    left = torch.tensor([0.0, -1.0, 0.0, 0.0])
    assert checks.taken((owed, gradient, 3), ((expected, None, 0.0), None), (got, left)) == 0
    assert checks.taken((owed, gradient, 3), ((expected, None, 0.0), None), (got, values)) == 3


# Inputs ----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 5000), st.floats(1e-6, 1.0), st.sampled_from(sorted(KINDS)), st.integers(0, 99))
def test_inputs_are_what_was_asked_for(size: int, density: float, data: str, seed: int) -> None:
    task = Task(size=size, density=density, data=data, seed=seed)
    gradient, indices = task.gradient(), task.indices()
    assert gradient.shape == (size,)
    assert gradient.dtype == torch.float32
    assert bool(gradient.isfinite().all())
    assert indices.numel() == task.k == max(1, round(size * density))
    assert bool((indices.diff() > 0).all())
    assert 0 <= int(indices[0]) <= int(indices[-1]) < size
    again = Task(size=size, density=density, data=data, seed=seed)
    assert torch.equal(again.gradient(), gradient)
    assert torch.equal(again.indices(), indices)


def test_gradients_differ_as_their_names_say() -> None:
    shapes = {kind: Task(size=64_000, density=0.1, data=kind).gradient() for kind in KINDS}
    tails = {kind: float((values.abs() > 4 * values.std()).float().mean()) for kind, values in shapes.items()}
    assert tails["gaussian"] < tails["laplace"]
    assert tails["gaussian"] < tails["student"]
    used = shapes["rows"].reshape(-1, 64).any(1).float().mean()
    assert 0.07 < used < 0.13
    assert 0.03 < float((shapes["mixture"].abs() > 0.02).float().mean()) < 0.07


def test_memory_moves_whole_lines() -> None:
    dense = torch.zeros(64)
    assert line_bytes(dense, torch.tensor([0, 1, 15])) == 64
    assert line_bytes(dense, torch.tensor([15, 16, 63])) == 192
    assert line_bytes(dense.double(), torch.tensor([7, 8])) == 128


# Turns -----------------------------------------------------------------------------------------------------------


def contestant(name: str, log: list[str], seconds: float = 0.0) -> Contestant:
    def call(word: str) -> None:
        time.sleep(seconds)
        log.append(name + word)

    slots = Slots([("",), ("",)], small=("'",))
    return Contestant(name=name, role=Role.KERNEL, threads=1, call=call, slots=slots)


def test_everybody_takes_turns_behind_everybody() -> None:
    log: list[str] = []
    three = [contestant(name, log) for name in "abc"]
    race(three, Broom(64), Effort(rounds=3, seconds=60.0))
    wake = [f"{name}'" for name in "abc"]
    assert [word for word in log if word not in wake] == list("aabbcc" + "aabbcc" + "bbccaa" + "ccaabb")
    assert [word for word in log if word in wake] == [
        f"{name}'"
        for name in ("a", "a", "b", "b", "c", "c", "b", "b", "c", "c", "a", "a", "c", "c", "a", "a", "b", "b")
    ]
    assert [len(one.samples) for one in three] == [3, 3, 3]


def test_the_slow_take_part_in_fewer_rounds_but_three() -> None:
    log: list[str] = []
    quick, slow = contestant("a", log), contestant("b", log, seconds=0.01)
    race([quick, slow], Broom(64), Effort(rounds=12, seconds=0.02))
    assert len(slow.samples) == 3
    assert 3 <= len(quick.samples) <= 12


def test_threads_are_set_and_given_back() -> None:
    before = torch.get_num_threads()
    seen: list[int] = []
    slots = Slots([()], small=())
    one = Contestant(
        name="a", role=Role.TORCH, threads=before + 1, call=lambda: seen.append(torch.get_num_threads()), slots=slots
    )
    race([one], Broom(64), Effort(rounds=2, seconds=60.0))
    assert set(seen) == {before + 1}
    assert torch.get_num_threads() == before


def test_what_is_changed_is_restored_before_the_next() -> None:
    owed, seen = torch.zeros(3), []

    def add(tensor: Tensor) -> None:
        seen.append(float(tensor.sum()))
        tensor.add_(1.0)

    slots = Slots([(owed,)], (0,), small=(torch.zeros(3),))
    ones = [Contestant(name=name, role=Role.KERNEL, threads=1, call=add, slots=slots) for name in "ab"]
    race(ones, Broom(64), Effort(rounds=4, seconds=60.0))
    at_work = [total for number, total in enumerate(seen) if number < 2 or number % 3 == 1]
    assert at_work == [0.0] * 10
    assert owed.tolist() == [0.0] * 3


def test_time_is_counted_by_the_clock_that_was_asked_for() -> None:
    log: list[str] = []
    sleeper = contestant("a", log, seconds=0.02)
    race([sleeper], Broom(64), Effort(rounds=1, seconds=60.0, clock=Clock.CPU))
    assert sleeper.samples[0] < 2e7
    race([sleeper], Broom(64), Effort(rounds=1, seconds=60.0))
    assert sleeper.samples[1] >= 2e7


# Sweeps ----------------------------------------------------------------------------------------------------------


def test_a_sweep_has_everything_once(run: Run) -> None:
    expected = {
        (name, density) for name, case in CASES.items() for density in ((0.01, 0.2) if case.densities else (None,))
    }
    assert {(heat.case, heat.density) for heat in run.heats} == expected
    assert len(run.heats) == len(expected)
    for heat in run.heats:
        who = [(one.role, one.name, one.threads) for one in heat.times]
        assert who == [
            *((Role.KERNEL, name, threads) for name in oracle.NAMES for threads in (1, 2)),
            *((Role.TORCH, "torch", threads) for threads in (1, 2)),
            *((Role.YARDSTICK, which, threads) for threads in (1, 2) for which in Yardstick),
        ]
        assert {len(one.nanoseconds) for one in heat.times} == {3}
        assert all(nanoseconds > 0 for one in heat.times for nanoseconds in one.nanoseconds)
        assert heat.moves > 0
    assert run.failures == []


def test_torch_is_measured_with_one_thread_in_any_case() -> None:
    found = run_of(an_ask("top_k", threads=(2,)))
    assert table.torch_threads(found) == [1, 2]
    assert {one.threads for one in found.heats[0].times if one.role is Role.KERNEL} == {2}


def test_what_does_not_fit_is_skipped_and_said() -> None:
    ask = an_ask("top_k", "energy")
    told: list[Heat | str] = []
    found = sweep(ask, told.append, broom=Broom(64), available=lambda: 1000)
    assert found.heats == []
    assert told == found.skipped
    assert found.skipped[0].startswith("energy, 3000 elements: needs about")
    assert found.skipped[1].startswith("top_k, 3000 elements, 1 %: needs about")
    assert "skipped: top_k" in table.for_page(found)
    with pytest.raises(BenchError, match="nothing was measured"):
        picture.draw(found, Path("never.png"))


def test_more_memory_is_needed_for_more_elements() -> None:
    (small,) = points(an_ask("take_top_k", sizes=(1_000_000,)))
    large = replace(small, size=100_000_000)
    for available, fits in ((10_000_000, (False, False)), (1_000_000_000, (True, False)), (10**11, (True, True))):
        assert (not shortage(small, an_ask(), available), not shortage(large, an_ask(), available)) == fits


# Words of the command line ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("top-k", ["top_k"]),
        ("scatter-add", ["scatter_add_"]),
        ("rice*, energy", ["energy", "rice_write", "rice_read"]),
        ("movement", [case.name for case in FAMILIES["movement"]]),
        ("*", list(CASES)),
        ("", list(CASES)),
    ],
)
def test_filters(patterns: str, names: list[str]) -> None:
    assert [case.name for _, case in asked.cases(patterns)] == names


def test_lists() -> None:
    assert words.sizes("10k, 1M,7,10000") == (10_000, 1_000_000, 7)
    assert words.densities("0.1%,0.01,1") == (0.001, 0.01, 1.0)
    assert asked.threads("2,1") == (2, 1)
    assert asked.implementations("") == (kernels.active(),)
    assert asked.implementations("reference,reference") == ("reference",)
    assert asked.implementations("all") == tuple(oracle.NAMES)


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--only", "top-q"], "'top-q'"),
        (["--sizes", "ten"], "'ten'"),
        (["--sizes", "0"], "'0'"),
        (["--sizes", ","], "','"),
        (["--sizes", "3G"], "'3G'"),
        (["--densities", "101%"], "'101%'"),
        (["--densities", "nan"], "'nan'"),
        (["--threads", "1,65"], "'65'"),
        (["--kernels", "mmx"], "'mmx'"),
        (["--data", "cauchy"], "'cauchy'"),
        (["--rounds", "0"], "0 rounds"),
        (["--seconds", "-1"], "-1.0 seconds"),
        (["--clock", "sun"], "'sun'"),
        (["--clock", "cpu", "--threads", "1,2"], "--threads 1"),
        (["--quick", "--full"], "--quick and --full"),
        (["--plot", "picture.gif"], "picture.gif"),
        (["--plot", "nowhere/picture.svg"], "no folder nowhere"),
        (["--json", "."], "is a folder"),
        (["--read", "nowhere.json"], "nowhere.json"),
        (["--read", "pyproject.toml"], "is no run"),
        (["--rounds", "many"], "many"),
        (["more"], "more"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(
    words: list[str], names: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["bench", "kernels", *words]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("thinwire: ")
    assert names in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_an_implementation_that_cannot_run_is_refused() -> None:
    for name, answer in kernels.available().items():
        if answer != "yes":
            with pytest.raises(KernelError):
                asked.implementations(name)


def test_the_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "kernels", "--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*CASES, *FAMILIES))


# Output ----------------------------------------------------------------------------------------------------------


def test_a_run_survives_its_file(run: Run, tmp_path: Path) -> None:
    run.write(tmp_path / "run.json")
    assert Run.read(tmp_path / "run.json") == run
    content = json.loads((tmp_path / "run.json").read_text())
    assert content["schema"] == "thinwire bench kernels 1"
    facts = {"thinwire", "torch", "numpy", "python", "system", "cpu", "cpus", "caches", "memory_bytes", "kernels"}
    assert facts <= set(content["facts"])
    assert content["asked"]["threads"] == [1, 2]
    assert len(content["load_before"]) == len(content["load_after"]) == 3
    one = content["heats"][0]["times"][0]
    assert set(one) == {"name", "role", "threads", "nanoseconds", "moved", "wrong", "error"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "other"}', '{"schema": "thinwire bench kernels 1"}'])
def test_other_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(BenchError, match="no run of this benchmark"):
        Run.read(path)


def test_statistics() -> None:
    times = Times(name="a", role=Role.KERNEL, threads=1, nanoseconds=[5.0, 1.0, 2.0, 4.0, 3.0])
    assert (times.best, times.median, times.spread) == (1.0, 3.0, 2.0)
    assert replace(times, nanoseconds=[7.0]).spread is None


def heat_of(*, in_place: bool) -> Heat:
    def times(name: str, role: Role, nanoseconds: float, moved: int = 0) -> Times:
        return Times(name=name, role=role, threads=1, nanoseconds=[nanoseconds], moved=moved)

    return Heat(
        case="top_k",
        family="selection",
        size=25_000_000,
        density=0.01,
        moves=1000,
        in_place=in_place,
        times=[
            times("scalar", Role.KERNEL, 300.0),
            times("torch", Role.TORCH, 6000.0),
            times("copy", Role.YARDSTICK, 50.0, 500),
            times("add", Role.YARDSTICK, 120.0, 2400),
        ],
    )


def test_ratios_are_to_the_floor_the_addition_and_torch() -> None:
    heat = heat_of(in_place=False)
    row = table.cells(heat, heat.times[0], [1, 2])
    assert row == ["top_k", "scalar 1T", "300 ns", "300 ns", "-", "3.00", "2.50", "20x", "-", "0"]
    assert table.cells(heat, heat.times[1], [1])[5:] == ["60.00", "50.00", "-", "0"]
    assert table.heading(heat) == "25M, 1 %"
    # In place the pace is that of the addition: 20 bytes a nanosecond and not 10.
    assert heat_of(in_place=True).floor(1) == 50.0
    assert heat.floor(1) == 100.0
    assert heat.floor(2) is None


def a_run_with(case: str, density: float | None, kernel: float, *, moves: int = 0, size: int = bars.SIZE) -> Run:
    heat = replace(heat_of(in_place=True), case=case, density=density, moves=moves, size=size)
    times = [replace(heat.times[0], nanoseconds=[1.0, kernel, 1e12]), *heat.times[1:]]
    return Run(facts={}, asked={}, heats=[replace(heat, times=times)], skipped=[], load_before=[], load_after=[])


@pytest.mark.parametrize(
    ("case", "density", "kernel", "outcomes"),
    [
        # Beside an addition of 120 ns and a torch expression of 6000 ns.
        ("take_top_k", 0.1, 480.0, [("4 (scalar)", True)]),
        ("take_top_k", 0.1, 481.0, [("4.01 (scalar)", False)]),
        ("take_top_k", 0.01, 150.0, [("1.25 (scalar)", True), ("40 (scalar)", True)]),
        ("take_top_k", 0.01, 160.0, [("1.33 (scalar)", True), ("37.5 (scalar)", False)]),
        ("scatter_sum_", 0.01, 1501.0, [("4 (scalar)", False)]),
        ("rice_read", 0.01, 1e6, [("1 (scalar)", True), ("2 (scalar)", True)]),
        ("rice_read", 0.01, 2e6, [("0.5 (scalar)", False), ("1 (scalar)", True)]),
        ("sampled_spectrum", None, 36.0, [("0.3 (scalar)", True)]),
        ("top_k", 0.01, 1.0, []),
    ],
)
def test_bars_are_held_against_medians(
    case: str, density: float | None, kernel: float, outcomes: list[tuple[str, bool]]
) -> None:
    run = a_run_with(case, density, kernel)
    assert [(one.measured, one.passed) for one in bars.verdicts(run)] == outcomes
    lines = table.verdicts(run)
    assert [line.split(" | ")[2].rstrip(" |") for line in lines[2:]] == [
        "passed" if passed else "missed" for _, passed in outcomes
    ]
    assert bars.verdicts(a_run_with(case, density, kernel, size=1_000_000)) == []


def test_the_bytes_of_indices_are_held_against_their_entropy() -> None:
    best = (math.lgamma(25e6 + 1) - math.lgamma(25e4 + 1) - math.lgamma(25e6 - 25e4 + 1)) / math.log(2) / 8
    for share, passed in ((1.07, True), (1.09, False)):
        run = a_run_with("rice_write", 0.01, 1.0, moves=4 * 250_000 + round(share * best))
        above = bars.verdicts(run)[-1]
        assert (above.measured.split(" ")[0], above.passed) == (f"{100 * share - 100:.3g}", passed)


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [(7.4, "7 ns"), (1500.0, "1.5 µs"), (999_600.0, "1000 µs"), (12_345_678.0, "12.3 ms"), (2.5e9, "2.5 s")],
)
def test_times_have_units(nanoseconds: float, text: str) -> None:
    assert figures.duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(25_000_000, "25M"), (1500, "1.5k"), (10_000, "10k"), (999, "999"), (1_234_567, "1234567")]
)
def test_sizes_are_short(count: int, text: str) -> None:
    assert figures.size(count) == text


def test_the_page_has_every_row_and_the_circumstances(run: Run) -> None:
    page = table.for_page(run)
    rows = [line for line in page.splitlines() if line.startswith("| 3k")]
    assert len(rows) == len(run.heats) * (2 * len(oracle.NAMES) + 2)
    assert len({row.count("|") for row in rows}) == 1
    for word in ("load average", "out of cache", "copy", torch.__version__, str(run.facts["cpu"])):
        assert word in page


@pytest.mark.parametrize("name", ["picture.png", "picture.svg"])
def test_a_picture_is_drawn(run: Run, name: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / name
    picture.draw(run, path)
    if path.suffix == ".png":
        assert path.read_bytes().startswith(b"\x89PNG")
        return
    text = path.read_text()
    tree = ElementTree.fromstring(text)
    assert {"title", "desc", "style"} <= {element.tag.rpartition("}")[2] for element in tree}
    assert all(name in text for name in CASES)
    assert "prefers-color-scheme: dark" in text
    picture.draw(run, path)
    assert path.read_text() == text


def test_without_matplotlib_it_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from thinwire.cli import main; sys.exit(main(['bench', 'kernels', '--plot', 'a.png']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'thinwire[plot]'" in done.stderr


def test_the_command_measures_writes_and_shows_again(tmp_path: Path) -> None:
    # In a process of its own, as it changes how memory is kept.
    words = ["--sizes", "2k", "--densities", "5%", "--threads", "1", "--rounds", "2", "--only", "top-k,energy"]
    command = [sys.executable, "-m", "benchmarks.kernels"]
    done = subprocess.run(
        [*command, *words, "--json", str(tmp_path / "run.json")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "top_k, 2k, 5 %: " in done.stderr
    assert "2k, 5 %" in done.stdout
    run = Run.read(tmp_path / "run.json")
    assert [heat.case for heat in run.heats] == ["energy", "top_k"]
    assert run.facts["sweep_bytes"] >= 4 * machine.last_level_cache() - 4
    again = subprocess.run(
        [sys.executable, "benchmarks/kernels", "--read", str(tmp_path / "run.json"), "--markdown"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == table.for_page(run)


def test_wrong_results_give_status_1(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heat = run.heats[0]
    wrong = replace(heat, times=[replace(heat.times[0], wrong=3), *heat.times[1:]])
    path = tmp_path / "run.json"
    replace(run, heats=[wrong, *run.heats[1:]]).write(path)
    assert main(["bench", "kernels", "--read", str(path)]) == 1
    assert "3 elements wrong" in capsys.readouterr().out


def test_the_documentation_shows_the_run_that_is_kept() -> None:
    for place in pages.PLACES:
        if place.run.exists():
            page = place.page.read_text()
            assert pages.renewed(page, place) == page
    kernels = next(place for place in pages.PLACES if place.run.name == "kernels.json")
    assert Run.read(kernels.run).failures == []
    with pytest.raises(ValueError, match="0 places"):
        pages.renewed("nothing is marked", kernels)


# The machine -----------------------------------------------------------------------------------------------------


def test_the_machine_is_described() -> None:
    facts = machine.facts()
    assert facts["torch"] == torch.__version__
    assert facts["kernels_active"] == kernels.active()
    assert json.loads(json.dumps(facts)) == facts
    assert 1 << 16 <= machine.last_level_cache() <= 1 << 34
    assert 0 < machine.available_memory() <= int(str(facts["memory_bytes"]))
