"""Launches by the driver itself, against a fake one that records its calls."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lego_mlir.artifact import Argument, KernelLaunch, TensorMapParameter
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.cuda.direct import (
    DirectLaunch,
    DriverKernel,
    StreamConfigs,
    is_tensor_map,
)
from lego_mlir.runtime.cuda.tensor_maps import encoded

driver = pytest.importorskip("cuda.bindings.driver")

WORDS = tuple(range(100, 116))
TILES = TensorMapParameter(0, (4096, 512), (8192,), (64, 128), 128)
A = Argument("a", "f16", (4096 * 512,))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The tensor maps that the driver encodes."""
    found: list[tuple[Any, ...]] = []

    def encode(*arguments: Any) -> tuple[Any, Any]:
        found.append(tuple(list(map(int, x)) if isinstance(x, list) else x for x in arguments))
        made = driver.CUtensorMap()
        made.opaque = list(WORDS)
        return driver.CUresult.CUDA_SUCCESS, made

    monkeypatch.setattr(driver, "cuTensorMapEncodeTiled", encode)
    return found


def test_what_is_encoded(calls: list[tuple[Any, ...]]) -> None:
    made = encoded(TILES, A, 0x1000)
    assert tuple(made) == WORDS
    assert ctypes.sizeof(made) == 128
    assert is_tensor_map(made)
    (arguments,) = calls
    assert arguments == (
        driver.CUtensorMapDataType.CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        2,
        0x1000,
        [4096, 512],
        [8192],
        [64, 128],
        [1, 1],
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
def test_swizzling_modes(calls: list[tuple[Any, ...]], swizzle: int) -> None:
    encoded(TensorMapParameter(0, (64, 64), (128,), (16, 8), swizzle), A, 0)
    name = f"SWIZZLE_{swizzle}B" if swizzle else "SWIZZLE_NONE"
    assert calls[0][8] == getattr(driver.CUtensorMapSwizzle, f"CU_TENSOR_MAP_{name}")


@pytest.mark.parametrize("l2_promotion", [0, 64, 128, 256])
def test_l2_promotions(calls: list[tuple[Any, ...]], l2_promotion: int) -> None:
    encoded(replace(TILES, l2_promotion=l2_promotion), A, 0)
    name = f"L2_{l2_promotion}B" if l2_promotion else "NONE"
    kinds = driver.CUtensorMapL2promotion
    assert calls[0][9] == getattr(kinds, f"CU_TENSOR_MAP_L2_PROMOTION_{name}")


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        *(("f16", 2), ("bf16", 2), ("f32", 4), ("f64", 8), ("f8E4M3FN", 1), ("f8E5M2", 1)),
        *(("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8)),
    ],
)
def test_every_type_has_elements_of_its_size(
    calls: list[tuple[Any, ...]], dtype: str, size: int
) -> None:
    encoded(TILES, Argument("a", dtype, (1,)), 0)
    name = calls[0][0].name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")
    bits = {"BFLOAT16": 16, "UINT8": 8}.get(name) or int(name[-2:])
    assert bits == 8 * size


def test_a_buffer_that_begins_where_tma_cannot_read(calls: list[tuple[Any, ...]]) -> None:
    with pytest.raises(LegoError, match=r"'a' begins at address 0x1008; .* 16 bytes"):
        encoded(TILES, A, 0x1008)
    assert calls == []


def test_what_the_driver_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = driver.CUresult.CUDA_ERROR_INVALID_VALUE
    monkeypatch.setattr(driver, "cuTensorMapEncodeTiled", lambda *_: (refusal, None))
    with pytest.raises(
        LegoError, match=r"of argument 'a' \(CUDA_ERROR_INVALID_VALUE\): shape \[4096, 512\]"
    ):
        encoded(TILES, A, 0)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What the driver launches, with the parameters' bytes as it would copy them."""
    found: list[SimpleNamespace] = []

    def launch(config: Any, function: Any, parameters: int, extra: int) -> tuple[Any]:
        sizes = (8, 128, 4, 2)
        pointers = ctypes.cast(parameters, ctypes.POINTER(ctypes.c_void_p))
        read = [
            ctypes.string_at(pointers[i], n)  # type: ignore[arg-type]
            for i, n in enumerate(sizes)
        ]
        attributes = [
            (a.id, a.value.programmaticStreamSerializationAllowed)
            for a in config.attrs[: config.numAttrs]
        ]
        found.append(
            SimpleNamespace(
                grid=(config.gridDimX, config.gridDimY, config.gridDimZ),
                block=(config.blockDimX, config.blockDimY, config.blockDimZ),
                shared=config.sharedMemBytes,
                stream=int(config.hStream),
                function=int(function),
                attributes=attributes,
                parameters=read,
                extra=extra,
            )
        )
        return (driver.CUresult.CUDA_SUCCESS,)

    monkeypatch.setattr(driver, "cuLaunchKernelEx", launch)
    return found


def made(pdl: bool = False, pdl_ctas: int = 0) -> DirectLaunch:
    launch = KernelLaunch("k", (132, 2, 1), (384, 1, 1), (), 200_000, pdl, pdl_ctas)
    tiles = (ctypes.c_uint64 * 16)(*WORDS)
    values = [0x7F00_0000_1000, tiles, np.int32(-3), np.float16(1.5)]
    configs = StreamConfigs(launch, (132, 2, 1))
    return DirectLaunch.of(configs, DriverKernel(77), values)


def test_sizes_and_parameters(launched: list[SimpleNamespace]) -> None:
    call = made()
    call(5)
    call(6)
    first, second = launched
    assert (first.grid, first.block, first.shared) == ((132, 2, 1), (384, 1, 1), 200_000)
    assert (first.function, first.stream, second.stream, first.extra) == (77, 5, 6, 0)
    assert first.parameters == second.parameters
    address, tiles, number, half = first.parameters
    assert int.from_bytes(address, "little") == 0x7F00_0000_1000
    assert tuple(np.frombuffer(tiles, np.uint64)) == WORDS
    assert np.frombuffer(number, np.int32) == -3
    assert np.frombuffer(half, np.float16) == 1.5


def test_a_launch_says_whether_it_waits_by_itself(launched: list[SimpleNamespace]) -> None:
    made()(1)
    made(pdl=True)(1)
    made(pdl=True, pdl_ctas=264)(1)
    made(pdl=True, pdl_ctas=263)(1)
    plain, pdl, few, many = launched
    kind = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
    assert plain.attributes == []
    assert pdl.attributes == few.attributes == [(kind, 1)]
    assert many.attributes == []


def test_the_drivers_word_for_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = driver.CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    monkeypatch.setattr(driver, "cuLaunchKernelEx", lambda *_: (refusal,))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"):
        made()(1)
