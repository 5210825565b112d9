"""Who has which workspaces, against a driver made of counters."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, replace
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lego_mlir.artifact import Artifact, Workspace, WorkspaceIndex
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import parameters
from lego_mlir.runtime.workspaces import Needs, WorkspacePool


@dataclass
class Gpu:
    """What the driver was asked to do."""

    memory: int = 1 << 20
    alive: dict[int, int] = field(default_factory=dict)
    zeroed: list[tuple[int, int]] = field(default_factory=list)
    capturing: set[int] = field(default_factory=set)
    mode: str = "global"
    last: int = 1 << 32


def fake_driver(gpu: Gpu) -> ModuleType:
    success, too_much = SimpleNamespace(name="CUDA_SUCCESS"), SimpleNamespace(name="OUT_OF_MEMORY")

    def allocate(size: int) -> tuple[Any, int]:
        assert not gpu.capturing or gpu.mode == "relaxed"
        if sum(gpu.alive.values()) + size > gpu.memory:
            return too_much, 0
        gpu.last += 1 << 24
        gpu.alive[gpu.last] = size
        return success, gpu.last

    def free(address: int) -> tuple[Any]:
        del gpu.alive[address]
        return (success,)

    def exchange(mode: str) -> tuple[Any, str]:
        before, gpu.mode = gpu.mode, mode
        return success, before

    def fill(address: int, value: int, size: int, stream: int) -> tuple[Any]:
        assert value == 0
        gpu.zeroed.append((address, size))
        return (success,)

    driver: Any = ModuleType("cuda.bindings.driver")
    driver.CUresult = SimpleNamespace(CUDA_SUCCESS=success)
    driver.CUstream = lambda handle: handle
    driver.CUstream_flags = SimpleNamespace(CU_STREAM_NON_BLOCKING=1)
    driver.CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED="relaxed")
    driver.CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_ACTIVE=True)
    driver.cuStreamIsCapturing = lambda stream: (success, stream in gpu.capturing)
    driver.cuThreadExchangeStreamCaptureMode = exchange
    driver.cuStreamGetId = lambda stream: (success, 1000 + stream)
    driver.cuStreamCreate = lambda flags: (success, 5)
    driver.cuStreamSynchronize = driver.cuStreamDestroy = lambda stream: (success,)
    driver.cuMemAlloc, driver.cuMemFree, driver.cuMemsetD8Async = allocate, free, fill
    driver.cuMemGetInfo = lambda: (success, gpu.memory - sum(gpu.alive.values()), gpu.memory)
    return driver  # type: ignore[no-any-return]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    import cuda.bindings

    gpu = Gpu()
    driver = fake_driver(gpu)
    monkeypatch.setattr(cuda.bindings, "driver", driver, raising=False)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", driver)
    return gpu


SPACES = (Workspace("sums", "f32", (100,)), Workspace("count", "i32", (3,), 4, zeroed=True))
NEEDS = Needs.of(SPACES)


@pytest.fixture
def pool(gpu: Gpu) -> WorkspacePool:
    return WorkspacePool("copy", SimpleNamespace(set_current=lambda: None))


def stream(handle: int) -> Any:
    return SimpleNamespace(handle=handle)


def test_workspaces_are_one_allocation_and_each_is_aligned(gpu: Gpu, pool: WorkspacePool) -> None:
    sums, count = pool.own(NEEDS).addresses(NEEDS)
    assert sums - count == 256
    assert gpu.zeroed == [(count, 256)]
    assert gpu.mode == "global"


def test_bound_launches_have_their_own_while_they_exist(gpu: Gpu, pool: WorkspacePool) -> None:
    one, other = pool.own(NEEDS), pool.own(NEEDS)
    assert one.key != other.key
    assert list(gpu.alive.values()) == [768, 768]
    del one
    assert list(gpu.alive) == [other.key[0]]


def test_launches_on_a_stream_share_theirs(gpu: Gpu, pool: WorkspacePool) -> None:
    first = pool.of_stream(stream(7), NEEDS)
    assert pool.of_stream(stream(7), NEEDS) is first
    assert pool.of_stream(stream(8), NEEDS) is not first
    pool.give_back(stream(7))
    assert pool.of_stream(stream(9), NEEDS) is first
    assert pool.of_stream(stream(7), NEEDS) is not first


def test_only_some_streams_keep_theirs(gpu: Gpu, pool: WorkspacePool) -> None:
    for handle in range(20):
        pool.of_stream(stream(handle), NEEDS)
    assert len(gpu.alive) == 8


def test_workspaces_grow_with_the_sizes_of_launches(gpu: Gpu, pool: WorkspacePool) -> None:
    sizes = [Needs.of((Workspace("w", "f32", (n,)), SPACES[1])) for n in (100, 64, 300, 200, 500)]
    first, smaller, larger, still, largest = (pool.of_stream(stream(7), each) for each in sizes)
    assert first is smaller
    assert first is not larger
    assert larger is still
    assert largest.holds(Needs.of((Workspace("w", "f32", (600,)), SPACES[1]))), "twice as much"
    del first, smaller, larger, still
    assert list(gpu.alive.values()) == [2 * 1280 + 256]
    assert len(gpu.zeroed) == 3


def test_zeroed_workspaces_of_all_sizes_lie_in_zeros(gpu: Gpu, pool: WorkspacePool) -> None:
    """What a launch of other sizes leaves behind is never taken for zeros."""
    small = Needs.of((Workspace("a", "f32", (8,)), Workspace("z", "i32", (64,), zeroed=True)))
    large = Needs.of((Workspace("a", "f32", (999,)), Workspace("z", "i32", (65,), zeroed=True)))
    memory = pool.of_stream(stream(7), small)
    assert not memory.holds(large)
    memory = pool.of_stream(stream(7), large)
    base, zeroed = memory.key
    assert gpu.zeroed[-1] == (base, zeroed)
    for needs, size in ((small, 256), (large, 260)):
        other, zeros = memory.addresses(needs)
        assert base <= zeros <= zeros + size <= base + zeroed <= other


def test_a_launch_in_a_graph_has_its_own_for_ever(gpu: Gpu, pool: WorkspacePool) -> None:
    before = pool.of_stream(stream(7), NEEDS)
    gpu.capturing.add(7)
    captured = pool.of_stream(stream(7), NEEDS).key
    again = pool.of_stream(stream(7), NEEDS).key
    gpu.capturing.clear()
    assert len({before.key, captured, again}) == 3
    assert len(gpu.alive) == 3
    assert pool.of_stream(stream(7), NEEDS) is before


def test_too_little_memory_is_an_error_that_says_how_much(gpu: Gpu, pool: WorkspacePool) -> None:
    gpu.memory = 1000
    held = pool.own(NEEDS)
    with pytest.raises(LegoError, match="'copy' have 768 bytes, and the device has 232 of 1000"):
        pool.own(NEEDS)
    assert held.holds(NEEDS)


def test_a_parameter_is_the_address_of_a_workspace(copy: Artifact) -> None:
    launch = replace(copy.launches[0], parameters=(WorkspaceIndex(1), 0))
    pairs = tuple(zip(SPACES, (10, 20), strict=True))
    mapped: Any = None
    assert parameters.resolve(launch, copy.arguments, (1, 2), (8, 8), mapped, pairs) == (20, 1)
