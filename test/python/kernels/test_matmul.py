"""GEMMs by mma.sync in the simulator, compared with NumPy: layouts, types, sizes, epilogues."""

from __future__ import annotations

import warnings
from math import pi, sqrt
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, GenP, OrderBy, RegP, Row, morton, runtime
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.mma.config import MmaConfig

HALF = MmaConfig((64, 64, 32), (2, 2), 2)
BYTE = MmaConfig((64, 64, 64), (2, 2), 2)


def check(kernel: lg.Kernel, seed: int = 0) -> None:
    """Check that a kernel computes what NumPy does, on random matrices."""
    comparison = kernel.run(device="sim", seed=seed).comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


@pytest.mark.parametrize("c", [Row, Col])
@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_every_order_of_the_matrices(a: Any, b: Any, c: Any) -> None:
    m, n, k = 128, 64, 96
    check(
        matmul(
            m,
            n,
            k,
            a=OrderBy(a(m, k)),
            b=OrderBy(b(k, n)),
            c=OrderBy(c(m, n)),
            config=HALF,
        )
    )


@pytest.mark.parametrize("shape", [(100, 72, 40), (101, 73, 41), (3, 200, 8), (64, 1, 33)])
@pytest.mark.parametrize("order", [Row, Col])
def test_sizes_that_tiles_do_not_divide(shape: tuple[int, int, int], order: Any) -> None:
    m, n, k = shape
    check(matmul(m, n, k, a=OrderBy(order(m, k)), b=OrderBy(order(k, n)), config=HALF), seed=1)


def test_a_layout_of_other_dimensions_that_tiles_do_not_divide() -> None:
    check(matmul(100, 64, 96, a=OrderBy(Row(9600)).GroupBy([100, 96]), config=HALF))


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        ("f16", "f32"),
        ("f16", "bf16"),
        ("bf16", None),
        ("bf16", "f32"),
        ("bf16", "f16"),
        ("i8", None),
        ("i8", "f32"),
        ("f8E4M3FN", None),
        ("f8E5M2", "f32"),
    ],
)
def test_gemms_of_every_type_are_correct(dtype: str, out: str | None) -> None:
    m, n, k = 72, 80, 96
    config = BYTE if "8" in dtype else HALF
    check(matmul(m, n, k, dtype, out=out, b=OrderBy(Col(k, n)), config=config))


@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_8_bit_matrices_of_every_order(a: Any, b: Any) -> None:
    m, n, k = 64, 96, 80
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel = matmul(m, n, k, "i8", a=OrderBy(a(m, k)), b=OrderBy(b(k, n)), config=BYTE)
    is_slow = (a, b) != (Row, Col)
    assert ["bytes are copied one by one" in str(w.message) for w in caught] == [True] * is_slow
    check(kernel)


@pytest.mark.parametrize(
    "config",
    [
        MmaConfig((16, 64, 64), (1, 4), 3),
        MmaConfig((32, 32, 32), (2, 2), 4, raster_group=2),
        MmaConfig((128, 64, 32), (4, 1), 2, raster_group=1),
        MmaConfig((64, 128, 16), (1, 2), 3),
    ],
    ids=str,
)
def test_every_config_is_correct(config: MmaConfig) -> None:
    check(matmul(160, 192, 128, config=config))


def test_a_config_is_chosen_by_default() -> None:
    check(matmul(256, 256, 128, schedule="cp_async"))


def test_batched_gemms_are_correct() -> None:
    check(matmul(64, 80, 48, batch=3, config=HALF))
    columns = OrderBy(RegP([2, 64, 80], [0, 2, 1]))
    check(matmul(64, 80, 48, batch=2, c=columns, config=HALF))


def test_rasterization_along_hilberts_curve() -> None:
    rasterization = OrderBy(lg.GenP([4, 4], lg.hilbert))
    check(matmul(256, 256, 64, rasterization=rasterization, config=HALF))


@pytest.mark.parametrize(
    "a",
    [
        OrderBy(lg.GenP([128, 96], lg.bricks(16, 32))),
        OrderBy(Row(8, 96, 16)).GroupBy([128, 96]),
        OrderBy(Row(16, 96, 8)).OrderBy(RegP([16, 8, 96], [0, 2, 1])).GroupBy([128, 96]),
    ],
    ids=["bricks", "rows by other rows", "columns of 8"],
)
def test_matrices_in_any_layout(a: lg.Layout) -> None:
    check(matmul(128, 64, 96, a=a, config=HALF))


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


M, N, K = 100, 72, 40
ROW, COLUMN, TILE = (OrderBy(Row(*shape)) for shape in ((N,), (M, 1), (M, N)))


@pytest.mark.parametrize("c", [Row, Col])
@pytest.mark.parametrize(
    ("epilogue", "operands", "reference"),
    [
        (lg.relu, {}, lambda x: np.maximum(x, 0)),
        (lambda x, s: x * s, {"s": lg.ScalarType("f32")}, lambda x, s: x * s),
        (
            lambda x, bias: lg.gelu(x + bias),
            {"bias": lg.TensorType("f32", ROW)},
            lambda x, bias: gelu(x + bias),
        ),
        (
            lambda x, scale: lg.tanh(x * scale.to("f32")),
            {"scale": lg.TensorType("f16", COLUMN)},
            lambda x, scale: np.tanh(x * scale),
        ),
        (
            lambda x, old, s: x + old.to("f32") * s,
            {"old": lg.TensorType("f16", TILE), "s": lg.ScalarType("f32")},
            lambda x, old, s: x + old * s,
        ),
    ],
    ids=["relu", "scaled", "bias and gelu", "scaled rows and tanh", "residual"],
)
def test_epilogues(epilogue: Any, operands: Any, reference: Any, c: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((M, K), (K, N)))
    values = [
        np.float32(0.5)
        if isinstance(kind, lg.ScalarType)
        else rng.standard_normal(kind.shape).astype({"f16": np.float16}.get(kind.dtype, np.float32))
        for kind in operands.values()
    ]
    kernel = matmul(
        M,
        N,
        K,
        out="f32",
        c=OrderBy(c(M, N)),
        epilogue=epilogue,
        operands=operands,
        config=HALF,
    )
    found = kernel.run(a, b, np.zeros((M, N), np.float32), *values, device="sim").outputs["c"]
    exact = a.astype(np.float64) @ b.astype(np.float64)
    want = reference(exact, *(np.asarray(v, np.float64) for v in values))
    assert np.abs(found - want).max() < 1e-5


@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_no_excess_sectors_or_wavefronts(a: Any, b: Any) -> None:
    """Shared memory has no bank conflicts, device memory is accessed by whole sectors."""
    n = 128
    kernel = matmul(
        n, n, n, a=OrderBy(a(n, n)), b=OrderBy(b(n, n)), config=MmaConfig((n, n, 64), (2, 2), 2)
    )
    (costs,) = kernel.run(device="sim", costs=True).costs
    spaces = {access.space for access in costs.memory}
    assert spaces == {"global", "shared"}
    for access in costs.memory:
        assert access.wavefronts == access.least_wavefronts, str(access)
        assert access.sectors == access.least_sectors, str(access)
        assert access.bytes == 32 * access.sectors or access.space == "shared"


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a"])
def test_large_gemms_do_not_spill(target: str) -> None:
    kernel = matmul(4096, 4096, 4096, schedule="cp_async", target=target)
    cubin = kernel.compilation(Options(target=Target.parse(target))).cubin
    (resources,) = cubin.resources
    assert (resources.spill_store_bytes, resources.stack_bytes) == (0, 0)
    assert cubin.warnings == ()


@pytest.mark.parametrize("stages", [2, 4])
def test_copies_may_arrive_at_any_time(stages: int) -> None:
    kernel = matmul(64, 128, 160, config=MmaConfig((64, 64, 32), (2, 2), stages))
    for order in ("late", "early", "random:1", "random:2"):
        result = runtime.run(kernel.compile(), device=runtime.select("sim", order=order))
        assert result.comparison is not None
        assert result.comparison.equal, f"{order}: {result.comparison}"


def test_the_module_holds_one_dot_and_no_index_arithmetic() -> None:
    """But for the first row and column of a tile: its number times its size, once for each."""
    text = str(matmul(256, 256, 64, config=HALF).module)
    assert text.count('"lego.dot"') == 1
    assert text.count('"lego.load"') == 2
    assert text.count('"lego.store"') == 1
    assert text.count("arith.muli") == 5  # A and C begin with the same row
    assert "arith.addi" not in text


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((-1, 1, 1), {}, r"\[-1, 1, 1\] are not sizes"),
        ((1, 1, 1), {"batch": -1}, r"\[1, 1, 1, -1\] are not sizes"),
        ((64, 64, 64, "f64"), {}, "tensor cores do not multiply 'f64'"),
        ((64, 64, 64, "f16"), {"out": "i32"}, "C of i32 from f32 accumulators"),
        (
            (64, 64, 64),
            {"a": OrderBy(Row(64, 32))},
            r"a = 'OrderBy\(Row\(64, 32\)\)' has the sizes",
        ),
        (
            (64, 64, 64),
            {"b": "col"},
            "b is a layout, such as OrderBy.Col.4, 8.., or None, not 'col'",
        ),
        (
            (64, 64, 64),
            {"config": 3},
            "config is a MmaConfig, a WgmmaConfig or a GemvConfig, not 3",
        ),
        (
            (64, 64, 64, "f8E5M2"),
            {"target": "sm_80"},
            "sm_80 has no .* instruction for f8E5M2",
        ),
        ((64, 64, 64), {"target": "sm_75"}, "sm_75 has no tensor core instruction for f16"),
        (
            (64, 64, 64),
            {"operands": {"s": lg.ScalarType("f32")}},
            "operands without an epilogue that takes them: s",
        ),
        (
            (64, 64, 64),
            {"operands": {"a": lg.ScalarType("f32")}, "epilogue": lg.relu},
            "the operand 'a' has the name of a matrix",
        ),
        (
            (64, 64, 64),
            {"operands": {"s": lg.TensorType("f32", OrderBy(Row(32)))}, "epilogue": lg.relu},
            r"the operand 's' has the sizes \[32\]",
        ),
        (
            (128, 64, 64),
            {"rasterization": OrderBy(Row(2, 2)), "config": HALF},
            r"rasterization = 'OrderBy\(Row\(2, 2\)\)' has the sizes .*, but the grid has 2×1",
        ),
        (
            (512, 512, 512),
            {"config": MmaConfig((256, 256, 64), (4, 4), 4)},
            "262144 bytes of shared memory are 29696 more than the 232448 of a CTA",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        matmul(*arguments, **options)


def test_a_tensor_in_place_of_a_buffer_is_refused() -> None:
    """A launch takes the memory of a matrix whose layout is not strided, not the matrix."""
    kernel = matmul(64, 64, 64, b=OrderBy(GenP([64, 64], morton)), target="sm_80")
    x = np.zeros((64, 64), np.float16)
    with pytest.raises(LegoError, match=r"(?s)'b' has shape \[4096\].*hint: .*OrderBy.GenP.*run"):
        kernel(x, x, x, device="sim")


def test_an_epilogue_that_returns_nothing_is_refused() -> None:
    kernel = matmul(64, 64, 64, epilogue=lambda _x: None)  # type: ignore[arg-type, return-value]
    with pytest.raises(LegoError, match="the epilogue of the GEMM returned None"):
        _ = kernel.module
