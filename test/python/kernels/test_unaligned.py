"""GEMMs of matrices that TMA does not take: re-pitched operands, and C stored by threads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir import Col, OrderBy, RegP, Row, runtime
from lego_mlir.artifact import TensorMapParameter, WorkspaceIndex
from lego_mlir.compiler.driver import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.kernels.gemm.matrices import copy_widths
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.mma.model import times_of, work_of
from lego_mlir.kernels.gemm.planner import plan
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.remedies import Remedies
from lego_mlir.kernels.gemm.unaligned.repitch import Repitch, repitch_kernel
from lego_mlir.kernels.gemm.wgmma.candidates import candidates
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.heuristic import estimates, multiplied, rank

ORDERS = ("late", "early", "random:1")
SMALL = WgmmaConfig((64, 32, 64), 1, 2)


def layout(order: str, *shape: int) -> lg.Layout:
    """Return the layout of a matrix or of a batch, whose rows or columns are contiguous."""
    lead = len(shape) - 2
    last = [lead, lead + 1] if order == "row" else [lead + 1, lead]
    return OrderBy(RegP(list(shape), [*range(lead), *last]))


def check(kernel: Any, orders: tuple[str, ...] = ("late",)) -> None:
    """Check that a kernel of the schedule `persistent` computes what NumPy does."""
    assert kernel.schedule == "persistent"
    for order in orders:
        comparison = kernel.run(device=runtime.select("sim", order=order)).comparison
        assert comparison is not None
        assert comparison.equal, str(comparison)


@pytest.mark.parametrize("c", ["row", "col"])
@pytest.mark.parametrize("b", ["row", "col"])
@pytest.mark.parametrize("a", ["row", "col"])
def test_every_transpose_in_every_order_of_completion(a: str, b: str, c: str) -> None:
    m, n, k = 70, 53, 77
    layouts = {"a": layout(a, m, k), "b": layout(b, k, n), "c": layout(c, m, n)}
    check(matmul(m, n, k, **layouts, config=SMALL), ORDERS)


@pytest.mark.parametrize(
    ("dtype", "out", "promote"),
    [
        ("bf16", None, 0),
        ("f16", "f32", 0),
        ("f8E4M3FN", None, 0),
        ("f8E5M2", "bf16", 4),
        ("i8", None, 0),
        ("i8", "f16", 0),
    ],
)
def test_types(dtype: str, out: str | None, promote: int) -> None:
    """Elements of 8 bits are multiplied along k."""
    m, n, k = 67, 45, 147
    config = WgmmaConfig((64, 32, 64 if dtype.endswith("16") else 128), 1, 2)
    b = OrderBy(Col(k, n))
    check(matmul(m, n, k, dtype, out=out, b=b, config=config, promote=promote))


@pytest.mark.parametrize(("a", "b"), [("row", "col"), ("col", "row")])
def test_a_batch(a: str, b: str) -> None:
    m, n, k = 66, 35, 69
    layouts = {"a": layout(a, 3, m, k), "b": layout(b, 3, k, n), "c": layout("row", 3, m, n)}
    check(matmul(m, n, k, batch=3, **layouts, config=SMALL))


@pytest.mark.parametrize(
    "config",
    [
        WgmmaConfig((128, 64, 64), 2, 2, cluster=(1, 2)),
        WgmmaConfig((128, 128, 64), 2, 3, persistent_ctas=2),
        WgmmaConfig((128, 32, 64), 2, 2, persistent_ctas=2, overlap_epilogue=True),
        WgmmaConfig((64, 64, 64), 1, 2, split_k=2),
        WgmmaConfig((64, 64, 64), 1, 2, swap_ab=True),
        WgmmaConfig((64, 64, 32), 1, 2),
    ],
)
def test_configs(config: WgmmaConfig) -> None:
    check(matmul(201, 123, 155, config=config), ORDERS)


def test_an_epilogue_and_its_operands_are_as_without_copies() -> None:
    m, n, k = 65, 33, 71
    operands = {"alpha": lg.Scalar["f32"], "bias": lg.Tensor["f16", OrderBy(Row(n))]}
    kernel = matmul(
        m, n, k, epilogue=lambda x, alpha, bias: x * alpha + bias.to("f32"), operands=operands,
        config=SMALL,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((m, k), (k, n)))
    bias, c = rng.integers(-2, 3, n).astype(np.float16), np.zeros((m, n), np.float16)
    kernel(a, b, c, 2.0, bias, device="sim")
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b) * 2 + bias)


@settings(max_examples=8, deadline=None)
@given(
    st.tuples(*[st.integers(1, 90)] * 3),
    st.tuples(*[st.sampled_from(["row", "col"])] * 3),
    st.sampled_from([None, 1, 2]),
)
def test_random_shapes(sizes: tuple[int, ...], orders: tuple[str, ...], batch: int | None) -> None:
    m, n, k = sizes
    lead = () if batch is None else (batch,)
    shapes = ((*lead, m, k), (*lead, k, n), (*lead, m, n))
    layouts = {x: layout(o, *s) for x, o, s in zip("abc", orders, shapes, strict=True)}
    check(matmul(m, n, k, batch=batch, **layouts, config=SMALL))


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize(("dtype", "numpy"), [("f16", np.float16), ("i8", np.int8)])
def test_a_copy_is_the_matrix_and_zeros(order: str, dtype: str, numpy: Any) -> None:
    shape = (2, 37, 131)
    result = repitch_kernel({"x": Repitch(layout(order, *shape), dtype, 16)}).run(device="sim")
    source, target = result.inputs["x"], result.outputs["x_repitched"]
    line = 128 // np.dtype(numpy).itemsize
    wide = 2 if order == "row" else 1
    expected = list(shape)
    expected[wide] = -(-shape[wide] // line) * line
    assert target.shape == tuple(expected)
    np.testing.assert_array_equal(target[:, :37, :131], source)
    assert np.count_nonzero(target) == np.count_nonzero(source)


@pytest.mark.parametrize("name", ["a", "b", "c"])
@pytest.mark.parametrize("order", [lg.morton, lg.antidiagonal])
def test_matrices_of_any_layout(name: str, order: Any) -> None:
    """TMA does not take matrices without strides either."""
    matrix = OrderBy(lg.GenP([64, 64], order))
    check(matmul(64, 64, 64, **{name: matrix}, config=SMALL))


# --- which operands are copied, and when ---


def copied(kernel: Any) -> list[str]:
    """Return the workspaces of a kernel's artifact."""
    artifact = kernel.compilation(Options(target=Target.parse("sm_90a"))).artifact(assemble=False)
    *copies, multiply = artifact.launches
    assert all(launch.pdl for launch in artifact.launches)
    maps = [p for p in multiply.parameters if isinstance(p, TensorMapParameter)]
    spaces = [p.argument.workspace for p in maps if isinstance(p.argument, WorkspaceIndex)]
    assert sorted(spaces) == list(range(len(artifact.workspaces)))
    assert len(copies) == (1 if spaces else 0)
    return [w.name for w in artifact.workspaces]


@pytest.mark.parametrize(
    ("sizes", "b", "workspaces"),
    [
        ((64, 64, 64), "row", []),
        ((64, 64, 63), "row", ["a_repitched"]),
        ((64, 60, 64), "row", ["b_repitched"]),
        ((64, 62, 64), "col", []),
        ((61, 64, 64), "row", []),
        ((64, 64, 63), "col", ["a_repitched", "b_repitched"]),
    ],
)
def test_only_what_needs_it_is_copied(
    sizes: tuple[int, int, int], b: str, workspaces: list[str]
) -> None:
    m, n, k = sizes
    kernel = matmul(m, n, k, b=layout(b, k, n), config=SMALL)
    assert copied(kernel) == workspaces
    text = kernel.explain()
    assert ("C stored by threads" in text) == (n % 8 != 0)
    for name in "AB":
        assert (f"re-pitched {name}" in text) == (f"{name.lower()}_repitched" in workspaces)


def test_addresses_that_are_not_aligned() -> None:
    """An aligned shape whose arrays begin anywhere: operands are copied, C is stored by threads."""
    kernel = matmul(64, 64, 64, config=SMALL, alignment=2)
    assert copied(kernel) == ["a_repitched", "b_repitched"]
    check(kernel)
    assert "TMA takes" not in kernel.explain()
    assert not copied(matmul(64, 64, 64, config=SMALL))
    with pytest.raises(LegoError, match="alignment"):
        matmul(64, 64, 64, alignment=3)


def test_small_gemms_are_left_to_mma_sync() -> None:
    assert matmul(33, 33, 33, target="sm_90a").schedule == "cp_async"
    large = matmul(1001, 1001, 1001, target="sm_90a")
    assert large.schedule == "persistent"
    assert "µs for unaligned matrices" in large.explain()
    assert matmul(1001, 1001, 1001, target="sm_80").schedule == "cp_async"
    assert matmul(1001, 1001, 1001, target="sm_90a", schedule="cp_async").schedule == "cp_async"
    config = MmaConfig((64, 64, 32), (2, 2), 2)
    assert matmul(1001, 1001, 1001, target="sm_90a", config=config).schedule == "cp_async"


def test_the_estimate_of_copies_is_launches_and_bytes() -> None:
    model = spec_of(Target.parse("sm_90a")).unaligned_model
    assert model is not None
    model = replace(model, copy_bytes_per_us=100.0, copy_launch_us=3.0)
    repitch = Repitch(OrderBy(Row(10, 65)), "f16", 16)
    assert repitch.bytes == 10 * 65 * 2 + 10 * 128 * 2
    assert Remedies({"a": repitch}).microseconds(model) == 3 + repitch.bytes / 100
    assert Remedies({}, True).microseconds(model) == 0
    both = Remedies({"a": repitch, "b": repitch})
    assert both.microseconds(model) == 3 + 2 * repitch.bytes / 100


@pytest.mark.parametrize(
    ("n", "config"),
    [
        (131, WgmmaConfig((64, 128, 64), 1, 2)),
        (165, WgmmaConfig((64, 160, 64), 1, 2)),
        (195, WgmmaConfig((64, 96, 64), 1, 2, cluster=(1, 2))),
        (134, WgmmaConfig((64, 192, 64), 1, 2)),
        (131, WgmmaConfig((128, 64, 64), 1, 2, swap_ab=True)),
        (131, MmaConfig((32, 128, 32), (1, 2), 2)),
    ],
)
def test_only_ends_of_rows_of_tiles_are_stored_by_parts_of_sectors(n: int, config: Any) -> None:
    m, k = 70, 40
    kernel = matmul(m, n, k, config=config)
    result = kernel.run(device="sim", costs=True)
    assert result.comparison.equal, str(result.comparison)
    access = result.costs[-1].memory
    stores = [c for c in access if str(c.instruction).startswith("st.global")]
    columns = config.tile[0 if config.is_swapped else 1]
    row = np.arange(m)[:, None] * n
    begins = np.arange(0, n, columns)
    first, last = (row + begins) // 16, (row + np.minimum(begins + columns, n) - 1) // 16
    assert sum(cost.bytes for cost in stores) == 2 * m * n
    assert sum(cost.sectors for cost in stores) == (last - first + 1).sum()


def test_a_large_unaligned_c_is_stored_in_rows_of_two_lines() -> None:
    """Stores in parts of sectors cost more than a tile that suits tensor cores better."""
    m, n, k = 5335, 10175, 9
    layouts = layout("row", m, k), layout("col", k, n), layout("row", m, n)
    config = plan(Problem(m, n, k, "bf16", "bf16", b="col"), layouts, Target.parse("sm_90a")).config
    assert isinstance(config, WgmmaConfig)
    assert not config.swap_ab
    assert config.tile[1] % 128 == 0


def test_ctas_store_along_rows_of_an_unaligned_c_that_is_large_beside_a_and_b() -> None:
    target, gpu = Target.parse("sm_90a"), spec_of(Target.parse("sm_90a"))
    for k, is_along in ((9, True), (900, False)):
        problem = Problem(5335, 6175, k, "bf16", "bf16", b="col")
        found = [e.config for e in estimates(problem, target, gpu, lambda t: 0 * t.m)]
        for swaps in (False, True):
            config = next(c for c in found if c.swap_ab == swaps and c.cluster == (1, 1))
            tiles = config.rasterization(multiplied(problem, config))
            along, other = (0, 1) if swaps else (1, 0)
            row = [tiles.inv(i) for i in range(tiles.dims[along])]
            assert (len({tile[other] for tile in row}) == 1) == is_along


@pytest.mark.parametrize("sizes", [(4384, 2388, 296), (7187, 5134, 56), (1484, 7474, 7754)])
def test_tiles_that_threads_store_fit_beside_the_ring(sizes: tuple[int, int, int]) -> None:
    """Persistent CTAs fill the ring meanwhile; both consumers of a ping-pong have a tile."""
    problem, target = Problem(*sizes, "bf16", "bf16", b="col"), Target.parse("sm_90a")
    found = candidates(problem, target, spec_of(target), stores_by_threads=True)
    t = found.take(found.persistent_ctas > 0)
    ring = t.stages * (t.m + t.n) * t.k_bytes
    assert len(t) > 50
    assert (ring + t.m * t.n * 2 * (1 + t.ping_pong) < target.optin_shared_bytes).all()
    t = found.take(found.persistent_ctas == 0)
    if len(t):  # halves of a tile do, where all of it has no room: a tile of 208 columns has no 13
        ring = t.stages * (t.m + t.n) * t.k_bytes
        assert (ring + t.m * t.n < target.optin_shared_bytes).all()


@pytest.mark.parametrize("c", ["row", "col"])
def test_the_config_is_chosen_for_the_copies(c: str) -> None:
    """Rows of A and B have 2002 bytes, those of their copies begin at multiples of 128."""
    problem = Problem(1001, 1001, 1001, "f16", "f16", b="col", c=c)
    copies = replace(problem, repitched="ab")
    assert copies.transpose.transpose == copies
    assert replace(problem, repitched="a").transpose.repitched == "b"
    layouts = [layout(o, 1001, 1001) for o in (problem.a, problem.b, problem.c)]
    found = plan(problem, layouts, Target.parse("sm_90a"))
    assert found.problem.repitched == "ab"
    times = [rank(p if c == "row" else p.transpose, Target.parse("sm_90a"))[0].microseconds
             for p in (copies, problem)]  # fmt: skip
    assert times[0] < times[1]


@pytest.mark.parametrize("c", ["row", "col"])
def test_the_copies_of_mma_sync_are_those_of_the_unaligned_tiles(c: str) -> None:
    """Rows of A have 130 bytes, those of B 184: copies of 2 and of 8 bytes, of 65 k in 5 tiles."""
    config = MmaConfig((64, 32, 16), (2, 2), 2)
    problem = Problem(100, 92, 65, "f16", "f16", c=c)
    multiplied = problem if c == "row" else problem.transpose
    assert copy_widths(multiplied) == ((2, 8) if c == "row" else (8, 2))
    work = work_of(multiplied, [config], spec_of(Target.parse("sm_90a")))
    rows_of_a, columns_of_b = (64, 32) if c == "row" else (32, 64)
    assert work.element_copies.tolist() == [rows_of_a * 13 / 128]
    assert work.short_copies.tolist() == [columns_of_b * 13 / 4 / 128]
    assert copy_widths(multiplied, alignment=4) == ((2, 4) if c == "row" else (4, 2))


def test_narrow_stores_take_longer_by_the_model_of_mma_sync() -> None:
    """Rows of C of 192 bytes are stored by 16 bytes, if its address is a multiple of them, too."""
    config, gpu = MmaConfig((64, 32, 16), (2, 2), 2), spec_of(Target.parse("sm_90a"))
    model = gpu.mma_model
    aligned, odd = (Problem(6400, n, 64, "f16", "f16") for n in (96, 95))
    works = (work_of(aligned, [config], gpu), work_of(odd, [config], gpu))
    assert [w.is_narrow.tolist() for w in works] == [[0.0], [1.0]]
    assert work_of(aligned, [config], gpu, alignment=8).is_narrow.tolist() == [1.0]
    assert (
        times_of(replace(works[0], is_narrow=works[1].is_narrow), model)[0]
        > (times_of(works[0], model)[0])
    )


def test_a_plan_without_a_remedy_says_why() -> None:
    layouts = [layout("row", 64, 63), layout("row", 63, 64), layout("row", 64, 64)]
    problem = Problem(64, 64, 63, "f8E4M3FN", "f16")
    found = plan(problem, layouts, Target.parse("sm_90a"))
    assert found.schedule == "cp_async"
    assert found.why_not_wgmma is not None
    assert "only along k" in found.why_not_wgmma.message
