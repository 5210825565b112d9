"""Repeated launches on PyTorch tensors, against a driver that records its calls.

The tensors lie in host memory: what a launcher compares and remembers does not depend on that.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Fact,
    KernelLaunch,
    TensorMapParameter,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import RepeatedLaunches, launch, torch_tensors
from lego_mlir.runtime.cuda.tensor_launch import TensorLauncher

driver = pytest.importorskip("cuda.bindings.driver")
torch = pytest.importorskip("torch")

STREAM = 7
A = Argument("a", "f32", (8, 8), access="read", alignment=16)
B = Argument("b", "f32", (8, 8), access="write", alignment=16)
N = Argument("n", "i32", None)
ALPHA = Argument("alpha", "f32", None)
SCALED = Artifact(
    "scaled",
    "sm_90a",
    (A, B, N, ALPHA),
    (KernelLaunch("scaled_kernel", (1, 1, 1), (64, 1, 1), (0, 1, 2, 3)),),
    "",
    facts=(Fact("a2 4 % 0 ==", "a2", "no multiple of 4"),),
)


@dataclass
class Driver:
    """What the driver got: stream and parameters of each launch, and addresses of tensor maps."""

    launches: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    mapped: list[int] = field(default_factory=list)
    sizes: tuple[int, ...] = (8, 8, 4, 4)
    refusal: Any = None


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Driver:
    gpu = Driver()

    def launch(config: Any, function: Any, parameters: int, extra: int) -> tuple[Any]:
        if gpu.refusal is not None:
            return (gpu.refusal,)
        pointers = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))
        read = [ctypes.string_at(pointers[i], n) for i, n in enumerate(gpu.sizes)]  # type: ignore[arg-type]
        gpu.launches.append((int(config.hStream), tuple(int.from_bytes(x, "little") for x in read)))
        return (driver.CUresult.CUDA_SUCCESS,)

    def encode(*arguments: Any) -> tuple[Any, Any]:
        gpu.mapped.append(arguments[2])
        made = driver.CUtensorMap()
        made.opaque = [arguments[2]] * 16
        return driver.CUresult.CUDA_SUCCESS, made

    monkeypatch.setattr(driver, "cuLaunchKernelEx", launch)
    monkeypatch.setattr(driver, "cuTensorMapEncodeTiled", encode)
    return gpu


def launcher(
    gpu: Driver,
    artifact: Artifact,
    *arrays: Any,
    workspaces: Any = None,
    current_gpu: Callable[[], int] | None = None,
) -> TensorLauncher:
    """Return a launcher that remembers `arrays`."""
    kernel = SimpleNamespace(handle=5)
    kernels = tuple((kernel, None, gpu.sizes) for _ in artifact.launches)
    loaded: Any = SimpleNamespace(
        artifact=artifact,
        device=SimpleNamespace(device_id=0),
        kernels=kernels,
        workspaces=workspaces,
    )
    return TensorLauncher(loaded, arrays, lambda: STREAM, current_gpu)


def zeros(*shape: int, dtype: Any = None) -> Any:
    return torch.zeros(*(shape or (8, 8)), dtype=dtype or torch.float32)


def bits(number: float) -> int:
    return int.from_bytes(struct.pack("<f", number), "little")


def test_addresses_and_numbers_are_those_of_each_launch(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    x, y, z = zeros(), zeros(), zeros()
    for a, b, n, alpha in [(x, y, 4, 0.0), (x, y, 4, -0.0), (x, y, 4, 0.0), (z, x, 8, 2.5)]:
        assert call((a, b, n, alpha))
        expected = (a.data_ptr(), b.data_ptr(), n, bits(alpha))
        assert gpu.launches[-1] == (STREAM, expected)
    assert len(gpu.launches) == 4


@pytest.mark.parametrize(
    "other",
    [
        zeros(dtype=torch.int32),
        zeros(8, 9),
        zeros().t(),
        zeros(64),
        zeros(8, 8).to("meta"),
        torch.nn.Parameter(zeros()),
        np.zeros((8, 8), np.float32),
        1,
        None,
    ],
)
def test_what_is_of_another_kind_takes_the_general_road(gpu: Driver, other: Any) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    assert not call((other, zeros(), 4, 1.0))
    assert not call((zeros(), other, 4, 1.0))
    assert gpu.launches == []


def test_numbers_of_other_types_and_counts_take_the_general_road(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    for arrays in [
        (zeros(), zeros(), True, 1.0),
        (zeros(), zeros(), np.int32(4), 1.0),
        (zeros(), zeros(), 4),
        (zeros(), zeros(), 4, 1.0, 1.0),
    ]:
        assert not call(arrays)


def test_elements_that_are_negated_when_read(gpu: Driver) -> None:
    plain = torch.zeros(8, 8, dtype=torch.complex64)
    anywhere = replace(SCALED, arguments=(replace(A, alignment=4), B, N, ALPHA))
    call = launcher(gpu, anywhere, plain.imag, zeros(), 4, 1.0)
    assert call((plain.imag, zeros(), 4, 1.0))
    assert not call((plain.conj().imag, zeros(), 4, 1.0))


def test_tensors_with_gradients(gpu: Driver) -> None:
    weight = torch.nn.Parameter(zeros())
    call = launcher(gpu, SCALED, weight, zeros(), 4, 1.0)
    assert call((weight, zeros(), 4, 1.0))
    assert gpu.launches[0][1][0] == weight.data_ptr()


def test_streams(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    arrays = (zeros(), zeros(), 4, 1.0)
    assert call(arrays, STREAM)
    assert call(arrays, SimpleNamespace(cuda_stream=STREAM))
    for other in (8, 0, SimpleNamespace(cuda_stream=9), "x", SimpleNamespace()):
        assert not call(arrays, other)


def test_another_current_device_takes_the_general_road(gpu: Driver) -> None:
    current = [0]
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0, current_gpu=lambda: current[0])
    arrays = (zeros(), zeros(), 4, 1.0)
    assert call(arrays)
    current[0] = 1
    assert not call(arrays)


def test_what_does_not_fit_takes_the_general_road(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    memory = zeros(16, 9).reshape(-1)
    x, y = memory[:64].view(8, 8), memory[32:96].view(8, 8)
    for arrays in (
        (x, y, 4, 1.0),  # they overlap
        (memory[1:65].view(8, 8), zeros(), 4, 1.0),  # begins at no multiple of 16 bytes
        (zeros(), zeros(), 6, 1.0),  # no multiple of 4
        (zeros(), zeros(), 1 << 40, 1.0),  # no i32
    ):
        assert not call(arrays)
        assert not call(arrays)
    assert gpu.launches == []


def mapped() -> Artifact:
    maps = [TensorMapParameter(i, (8, 8), (32,), (8, 8), 0) for i in (0, 1)]
    launches = (KernelLaunch("k", (1, 1, 1), (64, 1, 1), tuple(maps)),)
    return replace(SCALED, arguments=(A, B), launches=launches, facts=())


def test_a_tensor_map_is_encoded_once_for_each_address(gpu: Driver) -> None:
    gpu.sizes = (128, 128)
    artifact = mapped()
    x, y, z = zeros(), zeros(), zeros()
    call = launcher(gpu, artifact, x, y)
    for a, b in [(x, y), (x, y), (x, z), (z, y), (x, y)]:
        assert call((a, b))
        words = [n & (1 << 64) - 1 for n in gpu.launches[-1][1]]
        assert words == [a.data_ptr(), b.data_ptr()]
    assert sorted(gpu.mapped) == sorted([x.data_ptr(), y.data_ptr(), z.data_ptr(), z.data_ptr()])


def test_tensors_of_run_time_sizes_that_are_no_buffers(gpu: Driver) -> None:
    """A tensor with the strides of its layout stands for the buffer, and others are declined."""
    gpu.sizes = (8, 4)
    by_column = Argument(
        *("a", "f32", (None,), "OrderBy(Col(M, 8))"), access="write", symbols=(("M", "a0.d0 8 //"),)
    )
    rows = Computed("i32", "a0.d0 8 //")
    launch = KernelLaunch("k", ("a0.d0 8 //", 1, 1), (64, 1, 1), (0, rows))
    call = launcher(gpu, Artifact("k", "sm_90a", (by_column,), (launch,), ""), zeros(8, 4).t())
    for tensor, m in [(zeros(8, 4).t(), 4), (zeros(8, 5).t(), 5), (zeros(24), 3)]:
        assert call((tensor,))
        assert gpu.launches[-1][1] == (tensor.data_ptr(), m)
    assert not call((zeros(4, 8),))
    assert not call((zeros(2, 8, 4),))
    assert len(gpu.launches) == 3


def test_more_addresses_than_are_kept(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    b, tensors = zeros(), [zeros() for _ in range(1300)]
    for a in (*tensors, *tensors[::7]):
        assert call((a, b, 4, 1.0))
        assert gpu.launches[-1][1][:2] == (a.data_ptr(), b.data_ptr())


def test_workspaces_are_those_of_the_stream(gpu: Driver) -> None:
    gpu.sizes = (8, 8, 8)
    artifact = replace(
        SCALED,
        arguments=(A, B),
        facts=(),
        launches=(KernelLaunch("k", (1, 1, 1), (64, 1, 1), (0, 1, WorkspaceIndex(0))),),
        workspaces=(Workspace("w", "f32", (64,)),),
    )
    now = [0x1000]
    pool = SimpleNamespace(
        of_stream=lambda stream, needs: SimpleNamespace(
            key=(now[0], 0), addresses=lambda needs: (now[0],)
        ),
        lock=threading.Lock(),
    )
    call = launcher(gpu, artifact, zeros(), zeros(), workspaces=pool)
    arrays = (zeros(), zeros())
    for now[0] in (0x1000, 0x2000, 0x1000):
        assert call(arrays)
        assert gpu.launches[-1][1][2] == now[0]


def test_a_thread_without_a_context_takes_the_general_road(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    gpu.refusal = driver.CUresult.CUDA_ERROR_INVALID_CONTEXT
    assert not call((zeros(), zeros(), 4, 1.0))


def test_the_drivers_refusal(gpu: Driver) -> None:
    call = launcher(gpu, SCALED, zeros(), zeros(), 4, 1.0)
    gpu.refusal = driver.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    with pytest.raises(LegoError, match=r"'scaled_kernel' .* failed: CUDA_ERROR_LAUNCH_OUT"):
        call((zeros(), zeros(), 4, 1.0))


def test_kinds_that_are_remembered(gpu: Driver) -> None:
    repeated = RepeatedLaunches()
    wide, square = zeros(4, 16), zeros()
    repeated._launchers[()] = (
        launcher(gpu, SCALED, square, square, 4, 1.0),
        launcher(gpu, SCALED, wide, wide, 4, 1.0),
    )
    assert repeated.launch((zeros(4, 16), zeros(4, 16), 4, 1.0), None)
    assert repeated.launch((zeros(), zeros(), 4, 1.0), None)
    assert not repeated.launch((zeros(), zeros(4, 16), 4, 1.0), None)


def test_code_for_other_sizes_is_not_launched(gpu: Driver) -> None:
    """What was learned for one class of sizes is not tried for another one."""
    square = zeros()
    repeated = RepeatedLaunches(lambda arrays: arrays[3] > 0 if arrays[3] else None)
    repeated._launchers[True] = (launcher(gpu, SCALED, square, square, 4, 1.0),)
    assert repeated.launch((zeros(), zeros(), 4, 2.0), None)
    assert not repeated.launch((zeros(), zeros(), 4, -1.0), None)
    assert not repeated.launch((zeros(), zeros(), 4, 0.0), None)


# The general road, in the simulator.
def test_tensors_with_gradients_in_host_memory(copy: Artifact) -> None:
    a = torch.randn(4, 6, requires_grad=True)
    b = torch.zeros(4, 6)
    launch(copy, a, b, device="sim")
    assert torch.equal(a, b)


def test_tensors_that_no_kernel_reads(copy: Artifact) -> None:
    b = torch.zeros(4, 6)
    imag = torch.zeros(4, 6, dtype=torch.complex64).conj().imag
    for array, message in [
        (torch.zeros(4, 6).to_sparse(), "argument 'a' is sparse"),
        (torch.zeros(4, 6, device="meta"), "lives on 'meta', neither on the CPU nor on CUDA"),
        (imag, "whose elements are negated when read"),
        (torch.zeros(4, 6, dtype=torch.float64), "'a' holds f32 .* the array holds torch.float64"),
        (torch.zeros(4, 6, dtype=torch.complex64), "the array holds torch.complex64"),
        (torch.zeros(6, 4).t(), "is not dense and row-major"),
        (torch.zeros(4, 7), r"has shape \[4, 6\], the array has \[4, 7\]"),
    ]:
        with pytest.raises(LegoError, match=message) as caught:
            launch(copy, array, b, device="sim")
        assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("stream", "current", "waiting"),
    [(5, 5, []), (1, 0, []), (0, 1, []), (-1, 3, []), (5, 3, [5]), (1, 3, [0]), (5, 0, [5])],
)
def test_another_stream_waits_for_pytorchs(
    monkeypatch: pytest.MonkeyPatch, stream: int, current: int, waiting: list[int]
) -> None:
    done: list[tuple[str, int]] = []

    class Stream:
        def __init__(self, handle: int, index: int) -> None:
            self.handle = handle

        def wait_stream(self, other: str) -> None:
            assert other == "PyTorch's"
            done.append(("waits", self.handle))

    tensor = SimpleNamespace(
        is_cuda=True,
        device=SimpleNamespace(index=0),
        record_stream=lambda stream: done.append(("is recorded", stream.handle)),
    )
    monkeypatch.setattr(torch_tensors, "current_stream_of", lambda index: lambda: current)
    monkeypatch.setattr(torch.cuda, "ExternalStream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda index: "PyTorch's")
    torch_tensors.order_after(tensor, stream)
    assert done == [(what, n) for n in waiting for what in ("waits", "is recorded")]
