"""What holds for the compiled kernels alone: what they refuse, and that other threads run meanwhile."""

import os
import signal
import threading
import time

import pytest
import torch

from tests.native import oracle
from thinwire import kernels
from thinwire.errors import KernelError, WireError

pytestmark = pytest.mark.skipif(not oracle.COMPILED, reason="no compiled kernels here")


@pytest.mark.parametrize("indices", [[3, 3], [4, 3], [-1, 3], [3, 100]], ids=str)
def test_rice_refuses_to_write_what_is_not_an_increasing_list(indices: list[int]) -> None:
    with pytest.raises(ValueError, match="strictly increasing list below 100"):
        kernels.implementation("native").rice_write(torch.tensor(indices), 100)


@pytest.mark.parametrize("bad", [-1, 100, 2**40])
def test_bitmap_refuses_to_write_an_index_outside(bad: int) -> None:
    with pytest.raises(IndexError, match="not below 100"):
        kernels.implementation("native").bitmap_write(torch.tensor([3, bad]), 100)


def test_an_absurd_count_is_refused_before_there_is_memory_for_it() -> None:
    kernel = kernels.implementation("native")
    with pytest.raises(WireError, match="4611686018427387904 indices in 2 bytes"):
        kernel.rice_read(torch.tensor([0, 1], dtype=torch.uint8), 2**62, 2**40)
    with pytest.raises(WireError, match="a bitmap of 2 bytes"):
        kernel.bitmap_read(torch.tensor([0, 1], dtype=torch.uint8), 2**40, 2**40)


def test_the_compiled_functions_check_what_they_are_given() -> None:
    import thinwire._native as native

    machine = native.Machine("scalar", 1)
    values, out = torch.randn(10), torch.empty(3, dtype=torch.int32)
    with pytest.raises(ValueError, match="larger"):
        native.top_k(machine, values[:2], out)
    with pytest.raises(TypeError):
        native.top_k(machine, values.half(), out)
    with pytest.raises(TypeError):
        native.top_k(machine, values[::2], out)
    with pytest.raises(TypeError):
        native.top_k(machine, values.view(2, 5), out)
    with pytest.raises(ValueError, match="too narrow"):
        native.rice_read(machine, torch.zeros(4, dtype=torch.uint8), 2**31 + 1, out)
    assert native.rice_write(machine, torch.tensor([0, 90]), 0, torch.empty(3, dtype=torch.uint8)) != 0  # does not fit
    assert native.bitmap_write(machine, torch.tensor([0]), 9, torch.empty(1, dtype=torch.uint8)) != 0  # does not fit


def test_other_threads_run_while_a_kernel_runs() -> None:
    """The GIL is released: another thread gets through its work before the first long call returns."""
    values = torch.randn(20_000_000)
    kernel = kernels.implementation("native")
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        for _ in range(20):
            start = time.perf_counter()
            kernel.top_k(values, 5_000_000)
            end = time.perf_counter()
            if sum(start < moment < end for moment in ticks) >= 5:
                return
    finally:
        done.set()
        thread.join()
    pytest.fail("no other thread ran during any of 20 calls")


@pytest.mark.parametrize("threads", [0, -1, 65, 1.5, "two"])
def test_an_impossible_number_of_threads_is_refused(threads: object) -> None:
    with pytest.raises(KernelError, match="write a whole number from 1 to 64"):
        kernels.implementation("native", threads)  # type: ignore[arg-type]


def test_kernels_work_in_a_forked_child_of_a_process_that_used_threads() -> None:
    """A child has none of its parent's threads; a pool that waits for them would never come back."""
    kernel = kernels.implementation("native", 2)
    values = torch.randn(500_000)
    here = kernel.top_k(values, 5_000)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(kernel.top_k(values, 5_000), here) else 1)
    for _ in range(300):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert status == 0
            return
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")
