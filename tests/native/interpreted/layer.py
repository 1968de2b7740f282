"""The layer around the programs, where Triton interprets them: what it takes, whom it trusts, how it starts them."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.native.triton_uses import LENGTHS, USES
from thinwire import kernels
from thinwire.kernels.native import Native
from thinwire.kernels.reference import Reference
from thinwire.kernels.triton import TritonAnywhere, TritonKernels, base, coordinates, movement, selection
from thinwire.kernels.triton.trial import trial

CPU = torch.device("cpu")
VALUES = torch.tensor([1.0, -3.0, 2.0, 0.5])


class Wrong(TritonAnywhere):
    """One kernel does not give what the reference gives."""

    def at_least(self, values: Tensor, threshold: float) -> Tensor:
        return super().at_least(values, threshold)[1:]


class Broken(TritonAnywhere):
    """One kernel does not run."""

    def bitmap_write(self, indices: Tensor, units: int) -> Tensor:
        raise RuntimeError("no kernel image is available")


class Everywhere(TritonAnywhere, Native):
    """The layers as they lie for tensors on a GPU."""


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> dict[torch.device, bool]:
    """No device has been tried yet."""
    verdicts: dict[torch.device, bool] = {}
    monkeypatch.setattr(base, "_verdicts", verdicts)
    return verdicts


def test_the_trial_passes_kernels_that_equal_the_reference() -> None:
    assert trial(TritonAnywhere(), CPU) == ""
    assert trial(Reference(), CPU) == ""


@pytest.mark.parametrize(
    ("layer", "problem"),
    [(Wrong, "at_least by Triton differs"), (Broken, "do not run on it .RuntimeError: no kernel image is available.")],
)
def test_kernels_that_fail_the_trial_leave_the_device_to_the_reference(
    layer: type[TritonKernels], problem: str, untried: dict[torch.device, bool]
) -> None:
    with pytest.warns(RuntimeWarning, match=f"reference kernels on cpu, which are slower: .*{problem}"):
        assert layer().top_k(VALUES, 2).tolist() == [1, 2]
    assert untried == {CPU: False}
    assert layer().top_k(VALUES, 2).tolist() == [1, 2]  # and no second warning


def test_a_device_is_tried_once(untried: dict[torch.device, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    assert TritonAnywhere().top_k(VALUES, 2).tolist() == [1, 2]
    assert untried == {CPU: True}
    monkeypatch.setattr(base, "trial", lambda *_: pytest.fail("tried again"))
    assert TritonAnywhere().top_k(VALUES, 2).tolist() == [1, 2]


def test_the_gpu_layer_lies_above_the_compiled_one(untried: dict[torch.device, bool]) -> None:
    layers = Everywhere("scalar", 1)
    for taken in (lambda: layers.top_k(VALUES, 2), lambda: layers.rice_write(torch.tensor([1]), 4)):
        untried.clear()
        taken()
        assert untried == {CPU: True}


def test_main_memory_is_left_to_the_compiled_kernels() -> None:
    assert not kernels.implementation("native").takes(VALUES)  # type: ignore[attr-defined]
    assert kernels.implementation("triton").takes(VALUES)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "tensors",
    [(VALUES[::2],), (VALUES.view(2, 2),), (VALUES.clone().requires_grad_(),), (VALUES, VALUES.to("meta"))],
    ids=["strided", "table", "needs gradients", "elsewhere"],
)
def test_tensors_that_are_not_taken(tensors: tuple[Tensor, ...]) -> None:
    assert not TritonAnywhere().takes(*tensors)


POINTERS = {
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
}


def test_what_is_started_is_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test that compiles every program would show nothing if programs were started with other types."""
    started: dict[str, list[tuple[Any, ...]]] = {}

    def record(program: Any, n: int, *arguments: Any, **constants: int) -> None:
        name = f"{program.fn.__module__.rpartition('.')[2]}.{program.fn.__name__}"
        types = tuple(POINTERS[a.dtype] if isinstance(a, Tensor) else "length" for a in arguments)
        started.setdefault(name, []).append((types, constants))
        base.start(program, n, *arguments, **constants)

    for module in (coordinates, movement, selection):
        monkeypatch.setattr(module, "start", record)
    for dtype, index_type in ((torch.float32, torch.int32), (torch.float64, torch.int64)):
        every_kernel(VALUES.to(dtype), torch.tensor([0, 3], dtype=index_type))
    assert set(started) == set(USES)
    for name, launches in started.items():
        known = [(tuple("length" if t in LENGTHS else t for t in use.types), use.constants) for use in USES[name]]
        assert [launch for launch in launches if launch not in known] == []


def every_kernel(values: Tensor, indices: Tensor) -> None:
    kernel = TritonAnywhere()
    assert kernel.take_top_k(values, values, torch.empty_like(values), 2).indices.tolist() == [1, 2]
    assert kernel.at_least(values, 2.0).tolist() == [1, 2]
    assert kernel.energy(values) == 14.25
    out = torch.zeros_like(values)
    kernel.scatter_add_(out, indices, values[:2].contiguous())
    assert out.tolist() == [1.0, 0.0, 0.0, -3.0]
    for units in (4, 2**32):
        assert kernel.rice_read(kernel.rice_write(indices, units), 2, units).tolist() == [0, 3]
    assert kernel.bitmap_read(kernel.bitmap_write(indices, 4), 2, 4).tolist() == [0, 3]
