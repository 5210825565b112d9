"""GEMMs whose rows only the launch knows, in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import lego_mlir.frontend as lg
from lego_mlir import kernels
from lego_mlir.algebra import Col, Layout, OrderBy, RegP, Row, size_symbol
from lego_mlir.artifact import TensorMapParameter
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import KernelChoice
from lego_mlir.kernels import GemvConfig, WgmmaConfig
from lego_mlir.kernels.gemm.any_rows.cover import MOST_SAMPLED, Cover, Times, cover, samples
from lego_mlir.kernels.gemm.config import GemmConfig

M = size_symbol("M")
N, K = 136, 200
SMALL = WgmmaConfig((128, 64, 64), 2, 3)
"""Three tiles across C, and four iterations of the K loop."""

Array = npt.NDArray[Any]


def _layout(order: str, *shape: Any) -> Layout:
    *lead, m, n = shape
    k = len(lead)
    by_column = OrderBy(RegP([*lead, m, n], [*range(k), k + 1, k]))
    return OrderBy(Row(*shape)) if order == "row" else by_column


def _stored(x: Array, order: str) -> Array:
    return x if order == "row" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def _multiplied(
    function: Any,
    rows: int,
    orders: Sequence[str] = ("row", "row", "row"),
    lead: Any = (),
    columns: int = N,
) -> int:
    """Compare a GEMM of some rows with NumPy's; return the classes that are compiled so far."""
    rng = np.random.default_rng(rows)
    a = rng.standard_normal((*lead, rows, K)).astype(np.float16)
    b = rng.standard_normal((*lead, K, columns)).astype(np.float16)
    c = _stored(np.full((*lead, rows, columns), np.nan, np.float16), orders[2])
    function(_stored(a, orders[0]), _stored(b, orders[1]), c, device="sim")
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=0.05)
    return len(function.classes())


@pytest.mark.parametrize(
    ("a", "b", "c"),  # every pair of orders
    [("row", "row", "row"), ("row", "col", "col"), ("col", "row", "col"), ("col", "col", "row")],
)
def test_orders_of_the_matrices(a: str, b: str, c: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are contiguous TMA needs rows that are multiples; others take `cp_async`."""
    monkeypatch.setattr("lego_mlir.kernels.gemm.any_rows.cover.samples", lambda: [MOST_SAMPLED])
    layouts = {"a": _layout(a, M, K), "b": _layout(b, K, N), "c": _layout(c, M, N)}
    multiply = kernels.matmul(None, N, K, **layouts, target="sm_90a", configs=1)  # type: ignore[arg-type]
    for rows in (50, 144):
        _multiplied(multiply, rows, (a, b, c))
    by_rows = (a, c) == ("row", "row")
    assert len(multiply.classes()) == (1 if by_rows else 2)
    (launched,) = multiply.compile("sm_90a", sizes={"M": 144}).launches
    assert any(isinstance(p, TensorMapParameter) for p in launched.parameters)


CONFIGS = [
    WgmmaConfig((64, 144, 64), 1, 2),
    WgmmaConfig((128, 64, 64), 2, 3, cluster=(2, 1)),
    WgmmaConfig((128, 64, 64), 2, 3, cluster=(2, 2), persistent_ctas=4),
    WgmmaConfig((128, 64, 64), 2, 3, cluster=(1, 2), swap_ab=True, persistent_ctas=2),
    WgmmaConfig((128, 64, 64), 2, 3, persistent_ctas=3, overlap_epilogue=True),
    WgmmaConfig((64, 64, 64), 2, 3, persistent_ctas=3, ping_pong=True),
    WgmmaConfig((64, 64, 64), 1, 3, split_k=2),
    WgmmaConfig((64, 32, 64), 1, 3, swap_ab=True, split_k=2),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_one_artifact_serves_all_rows(config: WgmmaConfig) -> None:
    """The grid, the tensor maps and the loop over tiles have sizes that the launch knows."""
    multiply = kernels.matmul(None, N, K, config=config, target="sm_90a")
    for rows in (1, 64, 270):
        assert _multiplied(multiply, rows) == 1


@pytest.mark.parametrize("deterministic", [False, True])
def test_slices_through_the_l2_cache(deterministic: bool) -> None:
    """Workspaces are as large as the rows of a launch need, and are left as they were."""
    config = replace(
        SMALL, split_k=2, split_k_through="l2", swap_ab=True, deterministic=deterministic
    )
    multiply = kernels.matmul(None, N, K, config=config, target="sm_90a")
    for rows in (64, 1, 270, 64):
        assert _multiplied(multiply, rows) == 1
    sums, arrivals = multiply.compile("sm_90a").workspaces
    assert not any(isinstance(n, int) for n in (*sums.shape, *arrivals.shape))


@pytest.mark.parametrize(
    ("b", "config"),
    [
        ("row", GemvConfig((64, 8, 64), (1, 4), 1, swap_ab=True)),
        ("col", GemvConfig((16, 16, 256), (1, 4), 1, swap_ab=True, split_k=2)),
    ],
)
def test_few_rows(b: str, config: GemvConfig) -> None:
    """The kernel for few rows has as many columns of CTAs as the rows need."""
    layout = _layout(b, K, N)
    multiply = kernels.matmul(None, N, K, b=layout, config=config, target="sm_90a")
    for rows in (1, 9, 32):
        assert _multiplied(multiply, rows, ("row", b, "row")) == 1


def test_few_columns() -> None:
    """A C of few columns and any rows is computed by the same kernel, without swapped operands."""
    config = GemvConfig((16, 8, 128), (1, 4), 1)
    multiply = kernels.matmul(None, 8, K, config=config, target="sm_90a")
    for rows in (5, 100):
        assert _multiplied(multiply, rows, columns=8) == 1


def test_epilogue_and_operands() -> None:
    """Operands of the epilogue have the rows of C, too."""
    operands = {
        "bias": lg.Tensor["f32", f"{N}"],
        "scale": lg.Tensor["f32", "M, 1"],
        "added": lg.Tensor["f16", f"M, {N}"],
    }
    multiply = kernels.matmul(
        None,
        N,
        K,
        operands=operands,
        epilogue=lambda x, bias, scale, added: lg.relu(x * scale + bias) + added.to("f32"),
        config=SMALL,
        target="sm_90a",
    )
    for rows in (50, 144):
        rng = np.random.default_rng(rows)
        a = rng.standard_normal((rows, K)).astype(np.float16)
        b = rng.standard_normal((K, N)).astype(np.float16)
        bias, scale = (rng.standard_normal(s).astype(np.float32) for s in ((N,), (rows, 1)))
        added = rng.standard_normal((rows, N)).astype(np.float16)
        c = np.full((rows, N), np.nan, np.float16)
        multiply(a, b, c, bias, scale, added, device="sim")
        wanted = np.maximum(a.astype(np.float32) @ b.astype(np.float32) * scale + bias, 0) + added
        np.testing.assert_allclose(c, wanted, atol=0.1)


def test_batches() -> None:
    multiply = kernels.matmul(None, N, K, batch=2, config=SMALL, target="sm_90a")
    for rows in (50, 144):
        _multiplied(multiply, rows, lead=(2,))


def test_rows_of_columns_that_tma_does_not_take() -> None:
    """Threads store a C of odd rows."""
    multiply = kernels.matmul(None, 133, K, config=SMALL, target="sm_90a")
    a, b = np.ones((50, K), np.float16), np.ones((K, 133), np.float16)
    c = np.full((50, 133), np.nan, np.float16)
    multiply(a, b, c, device="sim")
    assert (c == K).all()


@pytest.mark.parametrize("k", [133, 134])
@pytest.mark.parametrize("n", [133, 136])
def test_threads_copy_an_a_that_tma_does_not_take(
    n: int, k: int, recwarn: pytest.WarningsRecorder
) -> None:
    """Its rows have no re-pitched copy, whose workspace would have no known size."""
    config = WgmmaConfig((64, 48, 64), 1, 3, copied_by_threads="a")
    rng = np.random.default_rng(k)
    b = rng.integers(-2, 3, (k, n)).astype(np.float16)
    for multiply in (
        kernels.matmul(None, n, k, config=config, target="sm_90a"),
        kernels.matmul(None, n, k, target="sm_90a", configs=2),
    ):
        for rows in (1, 150):
            a = rng.integers(-2, 3, (rows, k)).astype(np.float16)
            c = np.full((rows, n), np.nan, np.float16)
            multiply(a, b, c, device="sim")
            np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert not recwarn.list


def test_configs_for_large_unaligned_rows_are_for_wgmma() -> None:
    layout = OrderBy(Col(4098, 5000))
    multiply = kernels.matmul(None, 5000, 4098, b=layout, target="sm_90a", configs=4)
    *_, last = multiply.explain().splitlines()
    assert last.startswith("above")
    assert "A copied by threads" in last or "A and B copied by threads" in last


def test_an_a_of_any_other_layout_is_left_to_cp_async() -> None:
    layout = OrderBy(RegP([M, 2, 67], [0, 2, 1])).TileBy([M, 134])
    with pytest.warns(UserWarning, match="rows that only the launch knows are not copied"):
        kernels.matmul(None, N, 134, a=layout, target="sm_90a", configs=1)


@pytest.mark.parametrize("configs", [None, 4])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_configs_for_all_rows(target: str, configs: int | None) -> None:
    """The last config takes any rows; each is made once, and no more than the caller allows."""
    multiply = kernels.matmul(None, 4096, 4096, target=target, configs=configs)
    assert isinstance(multiply, KernelChoice)
    rng = np.random.default_rng(0)
    sizes = [int(n) for n in np.exp(rng.uniform(0, np.log(10000), 200))]
    functions = {id(multiply.function_for({"M": rows})) for rows in sizes}
    assert 1 < len(functions) <= (configs or 50)
    largest = multiply.function_for({"M": 1 << 20})
    assert largest is multiply.function_for(None)
    assert not largest.run_time_sizes.bounds
    assert "M <= " in multiply.explain()


@pytest.mark.parametrize(("n", "k", "b"), [(4096, 4096, "row"), (1024, 1024, "col")])
def test_rows_take_the_config_of_the_kernel_that_knows_them(n: int, k: int, b: str) -> None:
    """The chosen config is that of the static kernel, or is estimated to be as fast."""
    layout = _layout(b, k, n)
    multiply = kernels.matmul(None, n, k, b=layout, target="sm_90a")
    lines = [line.split(maxsplit=3) for line in multiply.explain().splitlines()[1:]]
    found = []
    for rows in (1, 16, 64, 128, 1024, 3000, 4096, 8192):
        *_, config = next(x for x in lines if x[0] == "above" or rows <= int(x[2]))
        static = kernels.matmul(rows, n, k, b=layout, target="sm_90a").explain()
        found.append(config.split(", raster")[0] in static)
    assert sum(found) >= 6


def test_a_cover_is_as_good_as_its_number_of_configs_allows() -> None:
    """With as many configs as there are best ones every sample takes its best one."""
    by_rows = {n: WgmmaConfig((64, 8 * (1 + n % 5), 64), 1, 4) for n in range(1, MOST_SAMPLED + 1)}

    def estimate(rows: Sequence[int], configs: Sequence[GemmConfig]) -> Times:
        return np.array(
            [[1.0 + abs(by_rows[n].tile[1] - config.tile[1]) for config in configs] for n in rows]
        )

    def chosen(found: Cover, rows: int) -> GemmConfig:
        return found.candidates[found.choose(rows)].config

    found = cover(by_rows.__getitem__, estimate, lambda config: 64, None)
    assert len(found.candidates) == 5
    assert all(chosen(found, n) == by_rows[n] for n in (*samples(), 64 * 99))
    one = cover(by_rows.__getitem__, estimate, lambda config: 64, 1)
    assert one.most(0) is None
    assert one.candidates[0].config.tile[1] == 24


def test_a_tuned_config_is_kept_for_its_rows() -> None:
    """Where estimates say that another config is faster, the tuned table knows better."""
    usual, tuned = (WgmmaConfig((64, n, 64), 1, 4) for n in (64, 128))

    def estimate(rows: Sequence[int], configs: Sequence[GemmConfig]) -> Times:
        return np.array([[1.0 if config == usual else 1.01 for config in configs] for _ in rows])

    found = cover(lambda n: tuned if n == 64 else usual, estimate, lambda config: 64, None)
    assert found.candidates[found.choose(64)].config == tuned
    assert found.candidates[found.choose(63)].config == tuned
    assert all(found.candidates[found.choose(n)].config == usual for n in (32, 65, 1 << 20))


def test_a_layout_that_promises_multiples() -> None:
    """Rows that are promised to be multiples make no class of other rows."""
    by_column = OrderBy(Col(size_symbol("M", [16]), K))
    multiply = kernels.matmul(None, N, K, a=by_column, config=SMALL, target="sm_90a")
    assert _multiplied(multiply, 144, ("col", "row", "row")) == 1
    with pytest.raises(LegoError, match=r"argument 'a'.*16 does not divide 50"):
        _multiplied(multiply, 50, ("col", "row", "row"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "gemv"}, "'gemv' is for few rows, and only the launch knows"),
        ({"tune": True}, "tune=True, and only the launch knows the rows"),
        ({"configs": 0}, "configs = 0; at least one is compiled"),
        (
            {"config": GemvConfig((64, 8, 64), (1, 4), 1, swap_ab=True, packs_b=True)},
            "needs to know how rows lie in chunks",
        ),
        ({"operands": {"x": lg.Tensor["f32", "P, 1"]}}, "the operand 'x' has the sizes \\[P, 1\\]"),
        ({"a": OrderBy(Row(64, K))}, r"the layout a = .* has the sizes \[64, 200\]"),
    ],
)
def test_what_is_refused(options: dict[str, Any], message: str) -> None:
    if "operands" in options:
        options["epilogue"] = lambda x, **_: x
    with pytest.raises(LegoError, match=message):
        kernels.matmul(None, N, K, target="sm_90a", **options).compile("sm_90a")
