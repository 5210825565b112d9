"""GEMMs with few rows or columns of C, in the simulator: layouts, types, sizes, costs, errors."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row, runtime, sim
from lego_mlir.artifact import WorkspaceIndex
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import GemvConfig, matmul
from lego_mlir.kernels.gemm import tuned_table
from lego_mlir.kernels.gemm.gemv import body as gemv_body
from lego_mlir.kernels.gemm.gemv import heuristic as gemv_heuristic
from lego_mlir.kernels.gemm.gemv.chunks import warp_unit
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.runtime import dtypes

H200 = Target.parse("sm_90a")


def config_of(
    problem: Problem,
    units: int = 1,
    warps: tuple[int, int] = (1, 2),
    stages: int = 1,
    split_k: int = 1,
) -> GemvConfig:
    """Return a config whose warps multiply so many of the least rows, and load so many stages."""
    rows, k = warp_unit(problem)
    tile = (rows * units * warps[0], 8 * -(-problem.n // 8), k * warps[1] * stages * split_k)
    return GemvConfig(tile, warps, stages, split_k=split_k)


def check(kernel: lg.Kernel, *orders: str, **arguments: Any) -> None:
    """Check that a kernel computes what NumPy does, in orders of the simulator."""
    assert kernel.schedule is None
    for order in orders or ("late",):
        comparison = kernel.run(device=runtime.select("sim", order=order), **arguments).comparison
        assert comparison is not None
        assert comparison.equal, f"{order}: {comparison}"


def order(layout: Any) -> str:
    return "row" if layout is Row else "col"


@pytest.mark.parametrize("c", [Row, Col])
@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_partial_tiles_in_every_order(a: Any, b: Any, c: Any) -> None:
    """C that is column-major is computed as the transpose, here as 17 rows; the others as 17."""
    m, n, k = (72, 17, 136) if c is Row else (17, 72, 136)
    problem = Problem(m, n, k, "f16", "f16", order(a), order(b), order(c))
    config = config_of(problem if c is Row else problem.transpose)
    orders = {"a": OrderBy(a(m, k)), "b": OrderBy(b(k, n)), "c": OrderBy(c(m, n))}
    check(matmul(m, n, k, **orders, config=config))


@pytest.mark.parametrize(("units", "warps", "stages"), [(2, (1, 1), 2), (1, (2, 2), 1)])
@pytest.mark.parametrize("a", [Row, Col])
def test_configs(a: Any, units: int, warps: tuple[int, int], stages: int) -> None:
    m, n, k = 136, 8, 168
    config = config_of(Problem(m, n, k, "f16", "f16", order(a)), units, warps, stages)
    check(matmul(m, n, k, a=OrderBy(a(m, k)), config=config), "early", "random:3")


@pytest.mark.parametrize("a", [Row, Col])
@pytest.mark.parametrize(
    ("dtype", "out"),
    [("bf16", "f32"), ("f16", "bf16"), ("i8", "i32"), ("i8", "f16"), ("f8E4M3FN", "f16")],
)
def test_element_types(dtype: str, out: str, a: Any) -> None:
    m, n, k = 40, 3, 144
    config = config_of(Problem(m, n, k, dtype, out, order(a), "col"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 8-bit elements that are not contiguous along k
        kernel = matmul(
            m, n, k, dtype, out=out, a=OrderBy(a(m, k)), b=OrderBy(Col(k, n)), config=config
        )
    check(kernel)


@pytest.mark.parametrize(("m", "n"), [(1, 40), (40, 1), (1, 1)])
@pytest.mark.parametrize("b", [Row, Col])
def test_vectors(m: int, n: int, b: Any) -> None:
    """Neither the matrix nor the vector needs a hint: the heuristic knows which one is which."""
    kernel = matmul(m, n, 264, b=OrderBy(b(264, n)), schedule="gemv")
    check(kernel)


@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize(
    ("a", "m", "n", "k", "warps", "stages"),
    [
        (Row, 40, 3, 137, (1, 2), 1),  # all 8 shifts
        (Row, 37, 8, 300, (2, 1), 2),  # 2 shifts, a K loop of whole chunks
        (Row, 17, 17, 9, (1, 1), 1),  # a row of one chunk and an element
        (Row, 5, 2, 5, (1, 1), 1),  # a row shorter than a chunk
        (Col, 73, 3, 50, (1, 8), 1),
        (Col, 132, 8, 133, (1, 2), 2),
        (Col, 9, 2, 17, (1, 8), 1),
        (Col, 129, 20, 77, (2, 8), 1),
        (Col, 5, 2, 17, (1, 2), 1),
    ],
)
def test_rows_of_any_alignment(
    a: Any, m: int, n: int, k: int, warps: tuple[int, int], stages: int, b: Any
) -> None:
    config = config_of(Problem(m, n, k, "f16", "f16", order(a)), 1, warps, stages)
    check(matmul(m, n, k, a=OrderBy(a(m, k)), b=OrderBy(b(k, n)), config=config))


@pytest.mark.parametrize(("m", "n", "k"), [(1, 75, 213), (75, 1, 213), (6, 133, 35), (133, 6, 35)])
@pytest.mark.parametrize(("a", "b"), [(Row, Row), (Col, Col)])
def test_few_rows_of_any_alignment_need_no_hint(m: int, n: int, k: int, a: Any, b: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layouts = {"a": OrderBy(a(m, k)), "b": OrderBy(b(k, n))}
        kernel = matmul(m, n, k, **layouts, schedule="gemv", target="sm_90a")
    check(kernel)


def test_infinite_neighbours_stay_where_they_are() -> None:
    """Chunks at the ends of a row hold elements of its neighbours; ∞ · 0 would be NaN."""
    m, n, k = 16, 2, 19
    a = np.ones((m, k), np.float16)
    a[1::2] = np.inf
    kernel = matmul(m, n, k, config=config_of(Problem(m, n, k, "f16", "f16")))
    result = np.zeros((m, n), np.float16)
    kernel(a, np.ones((k, n), np.float16), result, device="sim")
    np.testing.assert_array_equal(result[::2], np.full((8, n), k, np.float16))
    assert np.isinf(result[1::2]).all()


@pytest.mark.parametrize("a", [Row, Col])
def test_rows_of_any_alignment_are_loaded_by_chunks(a: Any) -> None:
    m, n, k = (64, 1, 1001) if a is Row else (1001, 1, 64)
    kernel = matmul(m, n, k, a=OrderBy(a(m, k)), schedule="gemv")
    (costs,) = kernel.run(device="sim", costs=True).costs
    wide = [row for row in costs.memory if "v4" in row.instruction.opcode]
    assert sum(row.bytes for row in wide) > 0.8 * 2 * m * k


# ------------------------------------------------------------------------------------- packed B
@pytest.mark.parametrize(("n", "k", "split_k"), [(5, 331, 1), (17, 402, 2), (30, 293, 1)])
@pytest.mark.parametrize("b", [Row, Col])
@pytest.mark.parametrize("a", [Row, Col])
def test_a_packed_b(a: Any, b: Any, n: int, k: int, split_k: int) -> None:
    """With 8 or 4 positions at which rows of A begin; columns of A with 8 or 2 (67 and 66)."""
    m = 67 if k % 2 else 66
    problem = Problem(m, n, k, "f16", "f16", order(a), order(b))
    config = config_of(problem, 1, (1, 2 if a is Row else 8), 1, split_k)
    orders = {"a": OrderBy(a(m, k)), "b": OrderBy(b(k, n))}
    kernel = matmul(m, n, k, **orders, config=replace(config, packs_b=True))
    assert len(kernel.compile("sm_90a").launches) == 2
    check(kernel)


@pytest.mark.parametrize("dtype", ["bf16", "i8"])
def test_a_packed_b_of_the_transposed_gemm(dtype: str) -> None:
    """C of few rows: its kernel packs A."""
    m, n, k = 3, 41, 501
    problem = Problem(n, m, k, dtype, "f32" if dtype == "bf16" else "i32", "row", "col")
    config = replace(config_of(problem, 1, (1, 2), 1), swap_ab=True, packs_b=True)
    out = problem.out
    kernel = matmul(m, n, k, dtype, out=out, b=OrderBy(Col(k, n)), config=config)
    check(kernel, "early", "random:2")


def test_a_packed_b_is_loaded_by_vectors() -> None:
    m, n, k = 64, 16, 1001
    problem = Problem(m, n, k, "f16", "f16", "row", "col")
    loads = {}
    for packs_b in (False, True):
        config = replace(config_of(problem, 1, (1, 4), 2), packs_b=packs_b)
        kernel = matmul(m, n, k, b=OrderBy(Col(k, n)), config=config)
        costs = kernel.run(device="sim", costs=True).costs[-1]
        memory = [row for row in costs.memory if row.instruction.opcode.startswith("ld.global")]
        loads[packs_b] = sum(row.requests for row in memory)
    assert loads[True] < 0.6 * loads[False]


@pytest.mark.parametrize("a", [Row, Col])
def test_rows_of_b_are_packed_by_neighbours(a: Any) -> None:
    """Lanes read whole sectors of a B whose rows are contiguous."""
    m, n, k = 67, 16, 531
    problem = Problem(m, n, k, "f16", "f16", order(a))
    config = config_of(problem, 1, (1, 2 if a is Row else 8), 1)
    kernel = matmul(m, n, k, a=OrderBy(a(m, k)), config=replace(config, packs_b=True))
    packing, _ = kernel.run(device="sim", costs=True).costs
    loads = [row for row in packing.memory if row.instruction.opcode.startswith("ld.global")]
    assert sum(row.sectors for row in loads) * 32 == sum(row.bytes for row in loads)


def test_a_packed_b_is_for_shifted_rows() -> None:
    for k in (512, 63):  # rows that begin with a chunk; a K loop of one iteration
        config = replace(config_of(Problem(64, 4, k, "f16", "f16")), packs_b=True)
        with pytest.raises(LegoError, match="packs_b is for an A"):
            matmul(64, 4, k, config=config)


# ---------------------------------------------------------------------------------- slices of k
@pytest.mark.parametrize("a", [Row, Col])
@pytest.mark.parametrize(("m", "k"), [(40, 1100), (33, 293)])  # the latter with 8 shifts
def test_slices_of_k_add_up(a: Any, m: int, k: int) -> None:
    problem = Problem(m, 3, k, "f16", "f16", order(a))
    config = config_of(problem, 1, (1, 2 if a is Row else 8), 1, split_k=3)
    kernel = matmul(m, 3, k, a=OrderBy(a(m, k)), config=config)
    assert "split-K 3 through the L2 cache" in str(config)
    check(kernel, "late", "early", "random:5")


@pytest.mark.parametrize(("dtype", "out"), [("i8", "i32"), ("bf16", "f32")])
def test_slices_of_k_have_the_accumulators_type(dtype: str, out: str) -> None:
    problem = Problem(40, 3, 700, dtype, out, "row", "col")
    config = config_of(problem, split_k=2)
    check(matmul(40, 3, 700, dtype, out=out, b=OrderBy(Col(700, 3)), config=config))


def test_slices_of_k_in_a_batch_and_with_an_epilogue() -> None:
    config = config_of(Problem(40, 4, 336, "f16", "f16"), split_k=2)
    check(matmul(40, 4, 336, batch=3, config=config))
    bias = lg.Tensor["f32", OrderBy(Row(4))]
    kernel = matmul(
        40, 4, 336, config=config, epilogue=lambda x, bias: x + bias, operands={"bias": bias}
    )
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype(np.float16) for s in ((40, 336), (336, 4)))
    added = np.arange(4, dtype=np.float32) * 100
    c = np.zeros((40, 4), np.float16)
    for _ in range(2):  # the first launch leaves zeros in its workspaces
        kernel(a, b, c, added, device="sim")
        expected = a.astype(np.float32) @ b.astype(np.float32) + added
        np.testing.assert_allclose(c, expected, rtol=2e-3, atol=0.1)


def test_few_rows_and_a_long_k_are_divided_among_ctas() -> None:
    """304 rows are 19 CTAs, and the H200 has 132 multiprocessors."""
    best = gemv_heuristic.rank(Problem(304, 1, 12858, "f16", "f16", b="col"), H200)[0]
    assert best.config.split_k > 1
    assert 132 <= 19 * best.config.split_k <= 264
    most = gemv_heuristic.rank(Problem(8192, 1, 8192, "f16", "f16", b="col"), H200)[0]
    assert most.config.split_k == 1


def test_kernels_begin_before_the_launch_ahead_of_them_ends() -> None:
    problem = Problem(40, 3, 136, "f16", "f16")
    kernel = matmul(40, 3, 136, config=config_of(problem))
    assert kernel.compile("sm_90a").launches[0].pdl
    old = kernel.compile("sm_80")
    assert not old.launches[0].pdl
    assert "griddepcontrol" not in old.ptx


def test_a_batch() -> None:
    check(matmul(40, 4, 136, batch=3, config=config_of(Problem(40, 4, 136, "f16", "f16"))))


@pytest.mark.parametrize("c", [Row, Col])
def test_an_epilogue_gets_the_operands_of_its_elements(c: Any) -> None:
    m, n, k = (24, 5, 136) if c is Row else (5, 24, 136)
    problem = Problem(m, n, k, "f16", "f16", c=order(c))
    kernel = matmul(
        m,
        n,
        k,
        out="f32",
        c=OrderBy(c(m, n)),
        epilogue=lambda x, alpha, bias, residual: lg.relu(x * alpha + bias) + residual.to("f32"),
        operands={
            "alpha": lg.Scalar["f32"],
            "bias": lg.Tensor["f32", OrderBy(Row(n))],
            "residual": lg.Tensor["f16", OrderBy(Row(m, n))],
        },
        config=config_of(problem if c is Row else problem.transpose),
    )
    random = np.random.default_rng(0)
    a, b, residual = (
        random.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n))
    )
    bias = random.integers(-9, 9, n).astype(np.float32)
    result = kernel.run(a, b, np.zeros((m, n), np.float32), 0.5, bias, residual, device="sim")
    product = a.astype(np.float32) @ b.astype(np.float32)
    wanted = np.maximum(product * 0.5 + bias, 0) + residual
    np.testing.assert_array_equal(result.outputs["c"], wanted)


@pytest.mark.parametrize("a", [Row, Col])
def test_every_sector_of_the_matrix_is_read_once(a: Any) -> None:
    """And by 16 bytes a lane."""
    m, n, k = 256, 8, 512
    problem = Problem(m, n, k, "f16", "f16", order(a), "col")
    config = config_of(problem, 1, (1, 4), 2)
    kernel = matmul(m, n, k, a=OrderBy(a(m, k)), b=OrderBy(Col(k, n)), config=config)
    (costs,) = kernel.run(device="sim", costs=True).costs
    ctas = config.tiles(problem)[0]
    loads = [row for row in costs.memory if row.instruction.opcode.startswith("ld.global")]
    assert sum(row.bytes for row in loads) == (m * k + ctas * n * k) * 2
    assert sum(row.sectors for row in loads) == (m * k + ctas * n * k) * 2 // 32
    of_matrix = [row for row in loads if row.bytes // row.lanes == 16]
    assert sum(row.bytes for row in of_matrix) >= m * k * 2
    assert sum(row.excess_sectors for row in loads) == 0
    assert costs.excess_wavefronts == 0


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 8192, 8192), (8192, 1, 8192), (8, 16384, 4096), (4096, 32, 16384)]
)
@pytest.mark.parametrize("matrix", [Row, Col])
def test_few_rows_or_columns_have_enough_bytes_in_flight(
    m: int, n: int, k: int, matrix: Any
) -> None:
    big = {"b": OrderBy(matrix(k, n))} if m < n else {"a": OrderBy(matrix(m, k))}
    kernel = matmul(m, n, k, **big, schedule="gemv", target="sm_90a")
    problem = Problem(
        m, n, k, "f16", "f16", order(matrix) if m > n else "row", order(matrix) if m < n else "row"
    )
    best = gemv_heuristic.rank(problem, H200)[0]
    assert best.bytes_in_flight >= 32 * 1024
    assert str(best.config) in kernel.explain()


def test_the_planner_chooses_it_for_few_rows_only() -> None:
    assert matmul(1, 8191, 8193, target="sm_90a").schedule is None
    assert matmul(3, 4096, 4096, target="sm_80").schedule is None
    assert matmul(64, 8192, 8192, target="sm_90a").schedule == "persistent"


@pytest.mark.parametrize(
    ("config", "problem", "message"),
    [
        (GemvConfig((16, 12, 32), (1, 1), 1), "row", "8, 16, 24 or 32 columns"),
        (GemvConfig((24, 8, 32), (1, 1), 1), "row", "24 rows are not a multiple of 16"),
        (GemvConfig((16, 8, 64), (1, 1), 1), "row", "multiply k = 32 in an iteration, not 64"),
        (GemvConfig((16, 8, 32), (1, 33), 1), "row", "a CTA has 1 to 32 warps"),
        (GemvConfig((16, 8, 32), (1, 1), 0), "row", "are positive numbers"),
        (GemvConfig((64, 8, 64), (1, 4), 1), "odd", "4 warps along k are not a multiple of 8"),
        (GemvConfig((32, 8, 16), (1, 1), 1), "col", "32 rows are not a multiple of 64"),
        (GemvConfig((4096, 32, 16), (1, 1), 1), "col", "bytes of shared memory"),
    ],
)
def test_configs_that_do_not_fit(config: GemvConfig, problem: str, message: str) -> None:
    m, order = (63, "col") if problem == "odd" else (64, problem)
    with pytest.raises(LegoError, match=message):
        config.check(Problem(m, 8, 64, "f16", "f16", order), H200.optin_shared_bytes)


def test_a_matrix_of_many_rows_and_columns_is_refused() -> None:
    with pytest.raises(LegoError, match="at most 32 rows or columns, not of 64×64"):
        matmul(64, 64, 64, schedule="gemv")


def test_the_tuned_table_holds_such_configs(tmp_path: Any) -> None:
    problem = Problem(8192, 1, 8192, "f16", "f16")
    config = GemvConfig((32, 8, 512), (1, 4), 4)
    tuned_table.record("NVIDIA H200", problem, config, tmp_path)
    assert tuned_table.lookup("NVIDIA H200", problem, GemvConfig, tmp_path) == config


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_slices_of_k_are_ordered_by_fences(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator finds no race in global memory, and finds one without the fences."""

    def run() -> None:
        problem = Problem(40, 3, 500, "f16", "f16")
        artifact = matmul(40, 3, 500, config=config_of(problem, split_k=3)).compile("sm_90a")
        random = np.random.default_rng(0)
        arrays = [random.standard_normal(s).astype(np.float16) for s in ((40, 500), (500, 3))]
        arrays.append(np.zeros((40, 3), np.float16))
        spaces = [np.zeros(w.shape, dtypes.numpy_dtype(w.dtype)) for w in artifact.workspaces]
        (launch,) = artifact.launches
        arguments = [
            spaces[p.workspace] if isinstance(p, WorkspaceIndex) else arrays[p]  # type: ignore[index]
            for p in launch.parameters
        ]
        sim.launch(
            artifact.ptx, launch.kernel, launch.grid, launch.block, arguments,
            shared_bytes=launch.shared_bytes, order=order, global_checks=True,
        )  # fmt: skip
        expected = arrays[0].astype(np.float32) @ arrays[1].astype(np.float32)
        np.testing.assert_allclose(arrays[2], expected, rtol=2e-3, atol=0.1)
        assert not any(space.any() for space in spaces)

    run()
    monkeypatch.setattr(gemv_body, "fence", lambda: None)
    with pytest.raises(LegoError, match="data race"):
        run()
