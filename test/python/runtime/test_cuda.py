"""The CUDA device against a driver made of host memory: which calls are made, in which order.

That the real driver agrees is for the tests marked `gpu`.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir.artifact import Argument, Artifact, Fact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import cuda, launch, run, select
from lego_mlir.runtime.cuda import loaded
from lego_mlir.runtime.device import missing_for_cuda

A = np.arange(24, dtype=np.float32).reshape(4, 6)
CUBIN = b"\x7fELF"


@dataclass
class Gpu:
    """The calls of the fake driver."""

    capability: tuple[int, int] = (9, 0)
    done: list[str] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    alive: dict[int, Any] = field(default_factory=dict)
    parameter_sizes: tuple[int, ...] = (8, 8, 4)
    fail_launch: str = ""
    fail_sync: str = ""


def fake_core(gpu: Gpu) -> Any:
    class Stream:
        handle = 77

        @staticmethod
        def from_handle(handle: int) -> Stream:
            stream = Stream()
            stream.handle = handle
            return stream

        def sync(self) -> None:
            gpu.done.append("sync")
            if gpu.fail_sync:
                raise RuntimeError(gpu.fail_sync)

    class Buffer:
        def __init__(self, size: int) -> None:
            memory = np.zeros(size, np.uint8)
            self.handle = memory.ctypes.data
            gpu.alive[self.handle] = memory

        def close(self) -> None:
            del gpu.alive[self.handle]

    class Device:
        def __init__(self, index: int = 0) -> None:
            self.device_id, self.name = index, "Fake"
            self.compute_capability = gpu.capability
            self.properties = SimpleNamespace(max_shared_memory_per_block_optin=232448)

        def set_current(self) -> None:
            pass

        def create_stream(self) -> Stream:
            return Stream()

        def allocate(self, size: int, *, stream: Stream) -> Buffer:
            return Buffer(size)

    class Code:
        def get_kernel(self, name: str) -> Any:
            return SimpleNamespace(name=name, handle=5)

    def load(kind: str) -> Any:
        def do(code: bytes) -> Code:
            assert isinstance(code, bytes), "a str is taken for a file's path"
            gpu.done.append(f"load {kind}")
            return Code()

        return do

    def start(stream: Stream, config: Any, kernel: Any, *values: Any) -> None:
        if gpu.fail_launch:
            raise RuntimeError(gpu.fail_launch)
        a, b, n = values
        assert (type(a), type(b), type(n)) == (int, int, np.int32)
        gpu.done.append(f"{kernel.name} on {stream.handle} {config.grid} {config.block}")
        ctypes.memmove(b, a, 4 * int(n))

    return SimpleNamespace(
        Device=Device,
        Stream=Stream,
        ObjectCode=SimpleNamespace(from_cubin=load("cubin"), from_ptx=load("ptx")),
        LaunchConfig=lambda **given: SimpleNamespace(**given),
        launch=start,
    )


def fake_driver(gpu: Gpu) -> ModuleType:
    success = SimpleNamespace(name="CUDA_SUCCESS")

    def copy(to: int, source: int, size: int, stream: int) -> tuple[Any]:
        ctypes.memmove(to, source, size)
        gpu.done.append("in" if to in gpu.alive else "out")
        return (success,)

    def allow(attribute: str, size: int, kernel: int, device: int) -> tuple[Any]:
        gpu.shared.append(size)
        return (success,)

    def parameter(kernel: int, number: int) -> tuple[Any, int, int]:
        sizes = gpu.parameter_sizes
        return (success, 0, sizes[number]) if number < len(sizes) else ("no such parameter", 0, 0)

    driver: Any = ModuleType("cuda.bindings.driver")
    driver.CUresult = SimpleNamespace(CUDA_SUCCESS=success)
    driver.cuKernelGetParamInfo = parameter
    name = "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"
    driver.CUfunction_attribute = SimpleNamespace(**{name: name})
    driver.cuMemcpyHtoDAsync = driver.cuMemcpyDtoHAsync = copy
    driver.cuKernelSetAttribute = allow
    driver.CUlaunchConfig, driver.CUstream, driver.CUfunction = SimpleNamespace, int, int

    def start(config: Any, kernel: int, parameters: int, extra: int) -> tuple[Any]:
        pointers = ctypes.cast(parameters, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint64)))
        ctypes.memmove(pointers[1][0], pointers[0][0], A.nbytes)
        gpu.done.append(f"direct on {config.hStream}")
        return (success,)

    driver.cuLaunchKernelEx = start
    return driver  # type: ignore[no-any-return]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpu]:
    import cuda.bindings

    gpu = Gpu()
    core, driver = fake_core(gpu), fake_driver(gpu)
    monkeypatch.setattr("lego_mlir.runtime.cuda.cuda_core.module", lambda: core)
    monkeypatch.setattr(cuda.bindings, "driver", driver, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    _forget()
    yield gpu
    _forget()


def _forget() -> None:
    loaded._load.cache_clear()


@dataclass
class DeviceArray:
    """Another library's array on the fake device: host memory that says it is a GPU's."""

    array: Any
    index: int = 0
    streams: list[int] = field(default_factory=list)

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.index)


def test_numpy_arrays_are_copied_in_and_out(gpu: Gpu, copy: Artifact) -> None:
    b = np.zeros_like(A)
    cuda.Cuda().run(copy, [A, b])
    np.testing.assert_array_equal(b, A)
    kernel = "copy_kernel on 77 (3, 1, 1) (8, 1, 1)"
    assert gpu.done == ["load ptx", "in", "in", kernel, "out", "sync"]
    assert gpu.alive == {}


def test_arrays_on_a_gpu_and_in_host_memory_are_not_mixed(gpu: Gpu, copy: Artifact) -> None:
    a, b = DeviceArray(A.copy()), np.zeros_like(A)
    with pytest.raises(LegoError) as caught:
        launch(copy, a, b)
    assert caught.value.message == (
        "the arrays of 'copy' for 'a' live on a GPU, those for 'b' in host memory"
    )
    assert gpu.done == []


def test_launches_on_pytorch_tensors_are_remembered(
    gpu: Gpu, copy: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    from lego_mlir.runtime import torch_tensors

    monkeypatch.setattr(torch_tensors, "gpu_of", lambda tensor: 0)
    monkeypatch.setattr(torch_tensors, "current_stream_of", lambda index: lambda: 7)
    ordered: list[int] = []
    monkeypatch.setattr(torch_tensors, "order_after", lambda _, stream: ordered.append(stream))
    tensors = [torch.randn(4, 6) for _ in range(4)]
    for a, b in [tensors[:2], tensors[2:], tensors[:2]]:
        b.zero_()
        launch(copy, a, b)
        assert torch.equal(a, b)
    first = ["load ptx", "copy_kernel on 7 (3, 1, 1) (8, 1, 1)"]
    assert gpu.done == [*first, "direct on 7", "direct on 7"]
    launch(replace(copy, checked=True), *tensors[:2])
    assert gpu.done[-1] == "sync", "what a check finds shows at once"
    assert ordered == [7, 7, 77, 77], "a stream of its own waits for PyTorch's"


@pytest.mark.parametrize(("capability", "target"), [((9, 0), "sm_90a"), ((8, 6), "sm_86")])
def test_the_target_is_the_devices_own(gpu: Gpu, capability: tuple[int, int], target: str) -> None:
    gpu.capability = capability
    assert cuda.Cuda().target == target


def test_run_compares(gpu: Gpu, transpose: Artifact) -> None:
    result = run(transpose, device=cuda.Cuda())
    assert result.device == "cuda (Fake, sm_90)"
    assert result.comparison is not None
    assert result.comparison.equal


def test_device_arrays_pass_without_a_copy(gpu: Gpu, copy: Artifact) -> None:
    a, b = DeviceArray(A.copy()), DeviceArray(np.zeros_like(A))
    cuda.Cuda().run(copy, [a, b])
    np.testing.assert_array_equal(b.array, A)
    assert "in" not in gpu.done
    assert gpu.done[-1] == "sync"
    assert a.streams == b.streams == [77], "the producer orders its work before our stream"


def test_own_stream_is_used_and_not_waited_for(gpu: Gpu, copy: Artifact) -> None:
    a, b = DeviceArray(A.copy()), DeviceArray(np.zeros_like(A))
    torch_like = SimpleNamespace(cuda_stream=0)
    launch(copy, a, b, device=cuda.Cuda(), stream=torch_like)
    assert a.streams == [1], "DLPack writes the legacy default stream as 1"
    assert any("on 1" in step for step in gpu.done)
    assert "sync" not in gpu.done


def test_streams_of_all_kinds(gpu: Gpu) -> None:
    new = SimpleNamespace(__cuda_stream__=lambda: (0, 5))
    old = SimpleNamespace(__cuda_stream__=(0, 6))
    assert [cuda.as_stream(s).handle for s in (new, old, 7)] == [5, 6, 7]
    with pytest.raises(LegoError, match="str is no CUDA stream"):
        cuda.as_stream("x")


def test_cubin_where_it_fits_ptx_elsewhere(gpu: Gpu, copy: Artifact) -> None:
    both = replace(copy, cubin=CUBIN, target="sm_80")
    assert cuda.load(replace(both, target="sm_90a")).code == "cubin"
    assert cuda.load(both).code == "ptx"
    assert cuda.load(replace(both, target="sm_90a"), code="ptx").code == "ptx"
    gpu.capability = (7, 5)
    _forget()
    with pytest.raises(LegoError, match=r"sm_80.*7\.5"):
        cuda.load(both)


def test_loading_twice_loads_once(gpu: Gpu, copy: Artifact) -> None:
    assert cuda.load(copy) is cuda.load(replace(copy))
    assert gpu.done == ["load ptx"]


def test_bound_launches(gpu: Gpu, copy: Artifact) -> None:
    a, b = DeviceArray(A.copy()), DeviceArray(np.zeros_like(A))
    call = cuda.load(copy).bind(a, b.array.ctypes.data)
    gpu.done.clear()
    stream = cuda.as_stream(9)
    call(stream)
    call(stream)
    np.testing.assert_array_equal(b.array, A)
    assert gpu.done == ["copy_kernel on 9 (3, 1, 1) (8, 1, 1)"] * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1,), "takes 2 arguments, 1 are given"),
        ((1, A), "'b' needs a device array or address, not ndarray"),
        ((1, DeviceArray(A.T.copy())), r"'b' has shape \[4, 6\]"),
        ((1, DeviceArray(A.astype(np.int32))), "'b' holds f32 .* the array holds int32"),
    ],
)
def test_bind_refuses(gpu: Gpu, copy: Artifact, arguments: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        cuda.load(copy).bind(*arguments)


def test_shared_memory_is_opted_in(gpu: Gpu, copy: Artifact) -> None:
    (once,) = copy.launches
    twice = (replace(once, shared_bytes=1000), replace(once, shared_bytes=100_000))
    cuda.load(replace(copy, launches=twice))
    assert gpu.shared == [100_000]
    with pytest.raises(LegoError, match="a CTA on Fake may have 232448"):
        cuda.load(replace(copy, launches=(replace(once, shared_bytes=300_000),)))


def test_launch_failure_names_kernel_grid_and_block(gpu: Gpu, copy: Artifact) -> None:
    gpu.fail_launch = "CUDA_ERROR_INVALID_VALUE: This indicates a bad value.\nmore"
    with pytest.raises(LegoError) as caught:
        cuda.Cuda().run(copy, [A, A.copy()])
    assert caught.value.message == (
        "kernel 'copy_kernel' with grid (3, 1, 1), block (8, 1, 1) failed: "
        "CUDA_ERROR_INVALID_VALUE: This indicates a bad value"
    )
    assert gpu.alive == {}


def test_failure_while_running(gpu: Gpu, copy: Artifact) -> None:
    gpu.fail_sync = "CUDA_ERROR_ILLEGAL_ADDRESS"
    with pytest.raises(LegoError, match=r"'copy_kernel' .* failed: CUDA_ERROR_ILL") as caught:
        cuda.Cuda().run(copy, [A, A.copy()])
    assert caught.value.hint is not None
    assert "--device sim" in caught.value.hint


@pytest.mark.parametrize("word", ["LAUNCH_FAILED", "ILLEGAL_INSTRUCTION"])
def test_a_check_that_failed_while_running(gpu: Gpu, copy: Artifact, word: str) -> None:
    gpu.fail_sync = f"CUDA_ERROR_{word}"
    message = "'copy_kernel' .* failed: a check of the kernel failed"
    with pytest.raises(LegoError, match=message) as caught:
        cuda.Cuda().run(replace(copy, checked=True), [A, A.copy()])
    assert 'device="sim"' in str(caught.value.hint)
    with pytest.raises(LegoError, match=rf"failed: CUDA_ERROR_{word}"):
        cuda.Cuda().run(copy, [A, A.copy()])


def test_arrays_that_overlap_on_the_device(gpu: Gpu, copy: Artifact) -> None:
    x = DeviceArray(A.copy())
    with pytest.raises(LegoError, match="'a' and 'b' of 'copy' overlap"):
        cuda.Cuda().run(copy, [x, x])
    assert not any("copy_kernel" in done for done in gpu.done)


def test_facts_are_checked_before_a_launch(gpu: Gpu, copy: Artifact) -> None:
    n = Argument("n", "i32", None, access="read")
    fact = Fact("a2 16 % 0 ==", "a2", "but 16 divides it", "k.py:3:5")
    with_n = replace(copy, arguments=(*copy.arguments, n), facts=(fact,))
    cuda.Cuda().run(with_n, [A, A.copy(), np.int32(32)])
    with pytest.raises(LegoError, match=r"k.py:3:5: error: argument 'n' is 40, but 16 divides"):
        cuda.Cuda().run(with_n, [A, A.copy(), np.int32(40)])


def test_machine_code_with_other_parameters_than_the_ptx_is_refused(
    gpu: Gpu, copy: Artifact
) -> None:
    """The driver would read past the end of what a launch passes."""
    own = replace(copy, cubin=b"machine code", name="other")
    for sizes in ((8, 8, 4, 8), (8, 8, 8), (8, 8)):
        gpu.parameter_sizes = sizes
        with pytest.raises(LegoError, match=r"in its machine code, of \[8, 8, 4\] in its PTX"):
            cuda.load(own)
    gpu.parameter_sizes = (8, 8, 4)
    assert cuda.load(own).code == "cubin"


def test_arrays_on_two_devices(gpu: Gpu, copy: Artifact) -> None:
    with pytest.raises(LegoError, match="'a' on cuda:0, 'b' on cuda:1"):
        cuda.Cuda().run(copy, [DeviceArray(A), DeviceArray(A, index=1)])


def test_arrays_choose_their_device(gpu: Gpu, copy: Artifact) -> None:
    a, b = DeviceArray(A.copy(), 3), DeviceArray(A.copy(), 3)
    assert cuda.Cuda()._index_for(copy, [a, b]) == 3
    assert cuda.Cuda(2)._index_for(copy, [A, A]) == 2
    assert cuda.Cuda()._index_for(copy, [A, A]) is None


def test_an_array_that_cannot_be_lent(gpu: Gpu, copy: Artifact) -> None:
    class Graph(DeviceArray):
        def __dlpack__(self, *, stream: int) -> Any:
            raise BufferError("Can't export tensors that require gradient")

    with pytest.raises(LegoError, match="'a' cannot be lent by DLPack: Can't export"):
        cuda.Cuda().run(copy, [Graph(A), Graph(A)])


def test_cuda_core_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.core", None)
    with pytest.raises(LegoError, match="cuda-core cannot be used"):
        cuda.Cuda().describe()


@pytest.mark.gpu
@pytest.mark.skipif(missing_for_cuda() is not None, reason="no GPU answers")
def test_on_a_real_gpu(copy: Artifact, transpose: Artifact) -> None:
    portable = [
        replace(x, target="sm_75", ptx=x.ptx.replace("sm_90a", "sm_75")) for x in (copy, transpose)
    ]
    for artifact in portable:
        result = run(artifact, device="cuda")
        assert result.comparison is not None
        assert result.comparison.equal, str(result.comparison)
    assert select("auto").name == "cuda"
