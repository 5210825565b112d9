"""The module of a kernel whose sizes only the launch knows, and the mistakes in such kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import LegoError

MATRIX = lg.Tensor["f32", "M, N"]


def kernel(body: Callable[..., Any], grid: Any = 1, **options: Any) -> Any:
    how = options or {"warps": 4}
    types = {"x": MATRIX, "y": lg.Tensor["f32", "N, M"]}
    return lg.kernel(grid=grid, parameters=types, **how)(body)


def module_of(made: Any, sizes: dict[str, int] | None = None) -> str:
    return made.compilation(sizes=sizes).module_text


def test_sizes_are_made_once_on_the_host() -> None:
    def body(x: Any, y: Any) -> None:
        m, n = lg.block_id("y"), lg.block_id()
        y.tile(32, 64)[n, m] = x.tile(64, 32)[m, n].T

    made = kernel(body, grid=lambda x: (lg.ceildiv(x.shape[1], 32), lg.ceildiv(x.shape[0], 64)))
    assert repr(made) == "<kernel body  grid (N + 31)//32×(M + 63)//64×1  block 128×1×1>"
    text = module_of(made)
    assert text.count("memref.dim") == 2
    assert text.count("floordivsi") == 2
    assert "memref<?x?xf32>" in text
    assert '"lego.load"(%arg0, ' in text


def test_a_class_says_what_divides_sizes_and_bounds_them() -> None:
    made = lg.kernel(
        grid=lambda x: x.shape[0],
        warps=4,
        parameters={"x": lg.Tensor["f32", "M, N<=256|1024 : S, 1"]},
    )(lambda x: None)
    general, multiples = module_of(made), module_of(made, {"N": 256, "S": 512})
    assert "memref<?x?xf32, strided<[?, 1]>>" in general
    assert "lego.bounds = array<i64: 0, 1025>" in general
    assert "Row(M, N))" in general
    assert "stride_divisors" not in general
    assert "lego.elements = 2147418112 : i64" in general
    assert "lego.bounds = array<i64: 0, 257>" in multiples
    assert "Row(M, N{16}))" in multiples
    assert "lego.stride_divisors = array<i64: 16, 1>" in multiples
    assert "lego.elements" not in module_of(made, {"M": 2, "S": 2**31})
    assert "lego.least" not in general + multiples
    assert "lego.least = array<i64: 0, 257>" in module_of(made, {"N": 300})


def test_a_whole_dimension_is_a_tile_of_its_bound() -> None:
    def body(x: Any) -> None:
        row = x[lg.block_id(), :]
        assert row.shape == (200,)
        x[lg.block_id(), :] = row * 2

    made = lg.kernel(grid=4, warps=4, parameters={"x": lg.Tensor["f32", "M, N<=200"]})(body)
    assert "tensor<256xf32>" in module_of(made)
    assert "lego.restrict" not in module_of(made)  # what ends at N is no more than 200


def test_sizes_of_layouts_are_those_of_the_tensors() -> None:
    tiles = lg.parse_layout("OrderBy(Row(M, N)).TileBy([ceildiv(M, 32), N/16], [32, 16])")

    def body(x: Any, y: Any) -> None:
        m, n = lg.parse_layout("OrderBy(Row(ceildiv(M, 32), N/16))").inv(lg.block_id())
        y.view(lg.parse_layout("OrderBy(Row(N, M))"))[n, m] = x.view(tiles)[m, n, 0, 3]

    grid = lg.parse_layout("OrderBy(Row(ceildiv(M, 32), N/16))").size
    made = kernel(body, grid=grid, block=32)
    assert "TileBy([ceildiv(M, 32), N/16], [32, 16])" in module_of(made)
    assert '"lego.inv"(%arg2, %dim, %dim_0)' in str(made.module)


MISTAKES = [
    (
        lambda x, y: x[0, :],
        "a whole dimension of tensor 'x', whose size N only the launch knows",
        "declare how large it gets, N<=8192, or take pieces of it: x.tile(1024)[..., k]",
    ),
    (
        lambda x, y: lg.zeros((x.shape[0], 4), "f32"),
        "sizes are positive integers",
        None,
    ),
    (
        lambda x, y: x.view(lg.parse_layout("OrderBy(Row(M, K))")),
        r"has symbolic sizes \(K\)",
        "sizes of the kernel's tensors are known by their names: M, N",
    ),
    (
        lambda x, y: x.view(lg.parse_layout("OrderBy(Row(M, M))")),
        r"tensor 'x' has M\*N elements, the layout .* of its view M\*M",
        None,
    ),
    (
        lambda x, y: x.tile(2, 2)[0],
        r"of sizes \(ceildiv\(M, 2\), ceildiv\(N, 2\)\), the index has 1 entries",
        None,
    ),
]


@pytest.mark.parametrize(("body", "says", "hint"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_mistakes_in_kernels(body: Callable[..., Any], says: str, hint: str | None) -> None:
    def whole(x: Any, y: Any) -> None:
        body(x, y)

    with pytest.raises(LegoError, match=says) as info:
        _ = kernel(whole).module
    assert info.value.location is not None
    if hint is not None:
        assert hint in (info.value.hint or "")


def test_a_vector_of_a_thread_has_a_known_size() -> None:
    def body(x: Any, y: Any) -> None:
        x[0, :]

    with pytest.raises(LegoError, match=r"a vector of \[N\] elements of tensor 'x'"):
        _ = kernel(body, block=32).module


GRIDS = [
    (lambda x: x.shape[0] if x.shape[0] > 4 else 4, "the size 'M' is compared in the function"),
    (lambda x: 4 if x.shape[0] == 4 else 8, "the size 'M' is compared in the function"),
    (lambda x: min(x.shape[0], 4), "the size 'M' is compared in the function"),
    (lambda x: x.shape[0] / 128, "the size 'M' is no number in the function"),
    (lambda x: range(x.shape[0]), "the size 'M' is no number in the function"),
    (lambda x: x.shape[0] // 2.0, "M and 2.0 do not meet"),
    (lambda x: x.shape[2], "the function of its grid fails: tuple index out of range"),
    (lambda x: x.strides, "the function of its grid fails: .* no attribute 'strides'"),
    (lambda x: "MN", "one to three positive integers"),
    (lambda z: 1, "takes 'z', which is no parameter of the kernel"),
]


@pytest.mark.parametrize(("grid", "says"), GRIDS, ids=[str(k) for k in range(len(GRIDS))])
def test_mistakes_in_functions_of_grids(grid: Callable[..., Any], says: str) -> None:
    with pytest.raises(LegoError, match=says):
        _ = kernel(lambda x, y: None, grid=grid).grid


def test_grids_are_arithmetic_of_sizes() -> None:
    def grid(x: Any, y: Any) -> Any:
        m, n = x.shape
        assert y.dims[1] is not None
        return lg.minimum(m, 7) + 2 * n - n, lg.maximum(3, -(-n // 4)), (m * n) % 5 + (m - m)

    made = kernel(lambda x, y: None, grid=grid)
    text = str(made.module)
    for operation in ("minsi", "maxsi", "muli", "addi", "floordivsi", "subi"):
        assert f"arith.{operation}" in text
    assert kernel(lambda x, y: None, grid=lambda x: x.shape[0] - x.shape[0] + 2).grid == (2, 1, 1)


def test_a_grid_of_unknown_sizes() -> None:
    made = kernel(lambda x, y: None, grid=lg.parse_layout("OrderBy(Row(M, K))").size)
    with pytest.raises(LegoError, match="the grid needs the size K, which no tensor has") as info:
        _ = made.module
    assert info.value.hint == "the sizes that the launch knows are M, N"


def row_kernel(body: Callable[..., Any]) -> Any:
    types = {"x": lg.Tensor["f32", "M, N<=8192"]}
    return lg.kernel(grid=lambda x: x.shape[0], warps=4, parameters=types)(body)


BOUND = "the tile's size 8192 is the bound of a size that only the launch knows"
MEANS = [
    lambda row: lg.sum(row) / row.shape[0],
    lambda row: lg.sum(row) * (1 / row.shape[0]),
    lambda row: lg.sum(row / 2) / (row + row).shape[0],
    lambda row: lg.sum(row) * (row.shape[0] ** -1),
    lambda row: lg.sum(row) / lg.exp(row).shape[-1],
]


@pytest.mark.parametrize("mean", MEANS, ids=map(str, range(len(MEANS))))
def test_the_bound_of_a_size_is_not_computed_with(mean: Callable[..., Any]) -> None:
    def body(x: Any) -> None:
        x[lg.block_id(), 0] = mean(x[lg.block_id(), :])

    with pytest.raises(LegoError, match=BOUND) as info:
        _ = row_kernel(body).module
    assert info.value.location is not None
    assert "the size itself is x.shape[1]" in (info.value.hint or "")


def test_tiles_are_made_of_the_sizes_of_others() -> None:
    def body(x: Any) -> None:
        row = x[lg.block_id(), :]
        total = row + lg.zeros(row.shape, "f32") + lg.arange(row.shape[0]).to("f32")
        x[lg.block_id(), :] = lg.where(row > 0, total, 0) / x.shape[1].to("f32")

    assert '"lego.store"' in module_of(row_kernel(body))


ROW = lg.Tensor["f32", "M, N<=1024"]


@lg.kernel(grid=lambda x: x.shape[0], warps=4)
def exponentials(x: ROW, y: ROW) -> None:  # type: ignore[valid-type]
    row = lg.exp(x[lg.block_id(), :])
    y[lg.block_id(), :] = row / lg.sum(row)


def test_neighbours_are_compared_with_the_end_together() -> None:
    """Where 16 divides a row, the elements of a vector are in range together."""
    counts = {n: exponentials.compile(sizes={"N": n}).ptx.count("setp") for n in (1000, 1008)}
    assert counts[1008] <= 5  # two vectors are loaded, filled and stored, and a thread adds up
    assert counts[1000] >= counts[1008] + 6
    for n in (3, 16, 304, 1008):
        x = np.random.default_rng(n).standard_normal((1, n)).astype(np.float32)
        y = np.full_like(x, np.nan)
        exponentials(x, y, device="sim")
        np.testing.assert_allclose(y, np.exp(x) / np.exp(x).sum(), rtol=1e-5)
