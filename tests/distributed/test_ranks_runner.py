"""The runner itself: order, errors, deaths, hangs, reuse, and no process left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.conftest import PoolFactory, Ranks
from thinwire.lab.ranks import RankFailed, RankPool, RanksHung, RanksRefused, report


def total(rank: int, world: int, scale: float) -> tuple[int, int, float]:
    value = torch.tensor([rank * scale])
    dist.all_reduce(value)
    return rank, os.getpid(), value.item()


def raise_on_one(rank: int, world: int) -> None:
    if rank == 1:
        raise KeyError("the odd one")
    dist.barrier()


def raise_after_unfinished_work(rank: int, world: int) -> None:
    if rank == 0:
        dist.all_reduce(torch.ones(4), async_op=True)
    raise ValueError(f"rank {rank}")


def kill_self(rank: int, world: int) -> None:
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)


def leave_early(rank: int, world: int) -> None:
    if rank == 0:
        os._exit(7)


def sleep_in_a_named_function(rank: int, world: int) -> None:
    if rank == 0:
        time.sleep(600)
    dist.barrier()


def stop_self(rank: int, world: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)


def return_a_lambda(rank: int, world: int) -> Callable[[], int]:
    return lambda: rank


def exit_quietly(rank: int, world: int) -> None:
    sys.exit("no more")


def report_steps(rank: int, world: int, steps: int) -> int:
    for step in range(steps):
        report((step, torch.tensor([float(step)])))
    return rank


def settings(rank: int, world: int) -> tuple[int, str, str, str | None]:
    return (
        torch.get_num_threads(),
        os.environ["TORCH_CPP_LOG_LEVEL"],
        dist.get_backend(),
        os.environ.get("THINWIRE_TEST_WORD"),
    )


def big(rank: int, world: int, size: int) -> torch.Tensor:
    return torch.full((size,), float(rank))


def train_ddp(rank: int, world: int) -> float:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.ones(2, 64)).sum().backward()
        optimizer.step()
    return float(next(model.parameters()).sum())


def test_results_come_in_the_order_of_the_ranks(ranks: Ranks) -> None:
    results = ranks(total, 4, 2.0)
    assert [rank for rank, _, _ in results] == [0, 1, 2, 3]
    assert len({pid for _, pid, _ in results} | {os.getpid()}) == 5
    assert [value for _, _, value in results] == [12.0] * 4


def test_an_exception_is_carried_back_with_its_traceback(ranks: Ranks) -> None:
    with pytest.raises(RankFailed) as info:
        ranks(raise_on_one, 3)
    error = info.value
    assert next(iter(error.failures)) == 1, "the cause comes first, the peers it took down after it"
    assert error.failures[1].kind == "KeyError"
    assert set(error.failures) == {0, 1, 2}
    assert "in raise_on_one" in str(error)
    assert "KeyError: 'the odd one'" in str(error)


@pytest.mark.parametrize(
    ("function", "rank", "kind"),
    [(kill_self, 2, "SIGKILL"), (leave_early, 0, "exit code 7")],
)
def test_a_rank_that_dies_is_named(ranks: Ranks, function: Callable[[int, int], None], rank: int, kind: str) -> None:
    with pytest.raises(RankFailed, match=kind) as info:
        ranks(function, 3)
    assert info.value.failures.keys() == {rank}
    assert info.value.failures[rank].kind == kind


def test_a_system_exit_is_an_exception_like_any_other(ranks: Ranks) -> None:
    with pytest.raises(RankFailed, match="SystemExit: no more"):
        ranks(exit_quietly, 2)


def test_a_hang_shows_the_stacks(ranks: Ranks) -> None:
    begin = time.monotonic()
    with pytest.raises(RanksHung) as info:
        ranks(sleep_in_a_named_function, 3, timeout=0.5)
    assert time.monotonic() - begin < 20
    assert set(info.value.stacks) == {0, 1, 2}
    assert all("in sleep_in_a_named_function" in stack for stack in info.value.stacks.values())
    assert "barrier" in info.value.stacks[2]
    assert "barrier" not in info.value.stacks[0]


def test_a_stopped_process_is_said_to_be_stopped(ranks: Ranks) -> None:
    with pytest.raises(RanksHung, match="process state: T") as info:
        ranks(stop_self, 2, timeout=0.5)
    assert set(info.value.stacks) == {1}


def test_what_cannot_be_sent_is_refused_before_anything_runs(ranks: Ranks) -> None:
    with pytest.raises(RanksRefused, match="top of a module"):
        ranks(lambda rank, world: rank, 1)
    with pytest.raises(RanksRefused, match="1 or more"):
        ranks(total, 0, 1.0)


def test_a_result_that_cannot_be_sent_is_an_error_of_its_rank(ranks: Ranks) -> None:
    with pytest.raises(RankFailed, match="pickle"):
        ranks(return_a_lambda, 1)


def test_ranks_get_the_settings_asked_for(ranks: Ranks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINWIRE_TEST_WORD", "one")
    assert ranks(settings, 2, threads=2) == [(2, "ERROR", "gloo", "one")] * 2
    monkeypatch.delenv("THINWIRE_TEST_WORD")
    assert ranks(settings, 1) == [(1, "ERROR", "gloo", None)]
    assert "TORCH_CPP_LOG_LEVEL" not in os.environ


def test_large_results_arrive(ranks: Ranks) -> None:
    results = ranks(big, 2, 3_000_000)
    assert [(float(result[0]), result.numel()) for result in results] == [(0.0, 3_000_000), (1.0, 3_000_000)]


def test_ddp_trains_alike_on_every_rank_run_after_run(ranks: Ranks) -> None:
    for _ in range(5):
        first, second = ranks(train_ddp, 2)
        assert first == second


def test_a_pool_keeps_its_processes(pool: PoolFactory) -> None:
    first = pool(2).run(total, 1.0)
    second = pool(2).run(total, 3.0)
    assert [pid for _, pid, _ in first] == [pid for _, pid, _ in second] == list(pool(2).pids)
    assert second[0][2] == 3.0


def test_a_pool_survives_an_exception(pool: PoolFactory) -> None:
    pids = pool(3).pids
    for _ in range(3):
        with pytest.raises(RankFailed, match="the odd one"):
            pool(3).run(raise_on_one)
        assert [value for _, _, value in pool(3).run(total, 1.0)] == [3.0] * 3
    assert pool(3).pids == pids


def test_unfinished_work_does_not_reach_the_next_function(pool: PoolFactory) -> None:
    with pytest.raises(RankFailed, match="rank 1"):
        pool(2).run(raise_after_unfinished_work)
    assert [value for _, _, value in pool(2).run(total, 5.0)] == [5.0, 5.0]


@pytest.mark.parametrize(
    ("function", "error", "reason"),
    [(kill_self, RankFailed, "rank 2 died"), (sleep_in_a_named_function, RanksHung, "rank 0 hung")],
)
def test_a_dead_or_hung_pool_says_so(
    pool: PoolFactory, function: Callable[[int, int], None], error: type[Exception], reason: str
) -> None:
    broken = pool(3)
    with pytest.raises(error):
        broken.run(function, timeout=0.5)
    assert not broken.usable
    with pytest.raises(RanksRefused, match=reason):
        broken.run(total, 1.0)
    assert not any(Path(f"/proc/{pid}").exists() for pid in broken.pids)
    assert pool(3) is not broken
    assert pool(3).run(total, 1.0)[0][2] == 3.0


def test_reports_arrive_while_the_function_runs(pool: PoolFactory) -> None:
    seen: list[tuple[int, int]] = []
    assert pool(2).run(report_steps, 4, on_report=lambda rank, value: seen.append((rank, value[0]))) == [0, 1]
    assert [step for rank, step in seen if rank == 0] == [0, 1, 2, 3]
    assert [step for rank, step in seen if rank == 1] == [0, 1, 2, 3]


def test_an_interrupted_pool_stops_its_ranks() -> None:
    def interrupt(rank: int, value: object) -> None:
        raise KeyboardInterrupt

    with RankPool(2) as own:
        pids = own.pids
        with pytest.raises(KeyboardInterrupt):
            own.run(report_steps, 1, on_report=interrupt)
        assert not own.usable
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


_ORPHANS = """
import json, os, signal, sys, time
from thinwire.lab.ranks import RankPool
from tests.distributed.test_ranks_runner import stop_self
if __name__ == "__main__":
    waiting, stopped = RankPool(2), RankPool(2)
    print(json.dumps(waiting.pids + stopped.pids), flush=True)
    stopped.run(stop_self)
"""


def test_no_rank_outlives_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "orphans.py"
    script.write_text(_ORPHANS)
    parent = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    assert parent.stdout is not None
    with parent.stdout:
        pids = json.loads(parent.stdout.readline())
        wait_until(lambda: state(pids[3]) == "T")
        parent.kill()
        parent.wait()
    assert len(pids) == 4
    wait_until(lambda: all(state(pid) in ("", "Z") for pid in pids))


_LEAVES_A_CHILD = """
import subprocess, sys
kept = []
def test_passes_but_leaves_a_child():
    kept.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]))
def test_is_innocent():
    pass
"""


def test_a_test_that_leaves_a_child_running_fails_the_session(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(_LEAVES_A_CHILD)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "test_it.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "time.sleep(600)" in done.stdout
    assert "2 passed, 1 error" in done.stdout
    assert "ERROR test_it.py::test_passes_but_leaves_a_child" in done.stdout


def state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def test_starting_ranks_is_quick(ranks: Ranks, capsys: pytest.CaptureFixture[str]) -> None:
    ranks(total, 1, 1.0)  # the first call of a process waits for the fork server
    begin = time.perf_counter()
    ranks(total, 4, 1.0)
    seconds = time.perf_counter() - begin
    with capsys.disabled():
        print(f"\n    four ranks, start to finish: {seconds:.2f} s")
