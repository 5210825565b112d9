"""Permutations of dimensions, compared with NumPy; their costs are the simulator's counters."""

from __future__ import annotations

import re
from itertools import permutations
from math import prod
from typing import Any

import numpy as np
import pytest

from lego_mlir import Col, OrderBy, RegP, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import permute, transpose
from lego_mlir.kernels.permute.problem import Mode, find_problem

DTYPES = {"i8": np.int8, "f16": np.float16, "f32": np.float32, "f64": np.float64}


def numbered(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an array of random bits."""
    bits = np.random.default_rng(5).integers(0, 256, prod(shape) * DTYPES[dtype]().itemsize)
    return bits.astype(np.uint8).view(DTYPES[dtype]).reshape(shape)


def is_permuted(kernel: Any, x: Any, want: Any) -> bool:
    """Return whether a kernel writes `want`, bit for bit, into a poisoned buffer."""
    y = np.full(want.nbytes, 0xCD, np.uint8).view(want.dtype).reshape(want.shape)
    kernel(x, y, device="sim")
    return bool(y.tobytes() == np.ascontiguousarray(want).tobytes())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["naive", "shared", "vector"])
@pytest.mark.parametrize(
    "shape", [(64, 128), (1, 1), (1, 77), (33, 1), (99, 161), (68, 130), (132, 65), (130, 260)]
)
def test_transposes_of_any_size(shape: tuple[int, int], variant: str, dtype: str) -> None:
    x = numbered(shape, dtype)
    assert is_permuted(transpose(*shape, dtype, variant=variant), x, x.T)


@pytest.mark.parametrize("variant", [None, "vector", "runs", "words", "squares"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_elements(variant: str | None, bits: int) -> None:
    """Images are bytes from 0 to 255: channels last, then first."""
    x = numbered((37, 50, 3), {8: "i8", 16: "f16", 32: "f32", 64: "f64"}[bits]).view(
        f"u{bits // 8}"
    )
    kernel = permute(x.shape, (2, 0, 1), f"u{bits}", variant=variant)
    assert is_permuted(kernel, x, x.transpose(2, 0, 1))


@pytest.mark.parametrize("variant", ["naive", "shared", "vector"])
@pytest.mark.parametrize("a", [Row, Col])
@pytest.mark.parametrize("b", [Row, Col])
def test_row_and_column_major_inputs_and_outputs(a: Any, b: Any, variant: str) -> None:
    m, n = 68, 40
    kernel = transpose(m, n, a=OrderBy(a(m, n)), b=OrderBy(b(n, m)), variant=variant)
    comparison = kernel.run(device="sim", seed=1).comparison
    assert comparison is not None
    assert comparison.equal, str(comparison)


@pytest.mark.parametrize("variant", ["naive", "shared", "vector"])
def test_a_batch_is_transposed(variant: str) -> None:
    x = numbered((3, 36, 50), "f32")
    kernel = transpose(36, 50, batch=3, variant=variant)
    assert is_permuted(kernel, x, x.transpose(0, 2, 1))
    comparison = kernel.run(device="sim").comparison
    assert comparison is not None
    assert comparison.equal


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axes"), [((3, 37, 45), (0, 2, 1)), ((5, 33, 39), (2, 1, 0))])
def test_unaligned_rows(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> None:
    x = numbered(shape, dtype)
    assert is_permuted(permute(shape, axes, dtype), x, x.transpose(axes))


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32"])
def test_unaligned_rows_are_stored_by_vectors(dtype: str) -> None:
    """Except for the ends of rows, which differ from row to row."""
    m, n = 259, 128
    kernel = transpose(m, n, dtype, variant="vector")
    (costs,) = kernel.run(device="sim", costs=True).costs
    stores = [row for row in costs.memory if row.instruction.opcode.startswith("st.global")]
    size = DTYPES[dtype]().itemsize
    single = sum(row.lanes for row in stores if row.bytes == size * row.lanes)
    widest = max(row.bytes // row.lanes for row in stores)
    assert sum(row.bytes for row in stores) == m * n * size
    assert widest >= 4
    assert single <= 3 * n * (widest // size)


@pytest.mark.parametrize("axes", list(permutations(range(4))))
def test_every_permutation_of_four_dimensions(axes: tuple[int, ...]) -> None:
    x = numbered((2, 6, 5, 12), "f16")
    assert is_permuted(permute(x.shape, axes, "f16"), x, x.transpose(axes))


@pytest.mark.parametrize(("dtype", "size"), [("i8", 1), ("f16", 2), ("f32", 4), ("f64", 8)])
@pytest.mark.parametrize("side", [128, 1024])
def test_whole_tiles_have_no_excess_sectors_or_wavefronts(dtype: str, size: int, side: int) -> None:
    """Accesses take whole sectors without bank conflicts, and each element is moved once."""
    m, n = side, 256
    (costs,) = transpose(m, n, dtype).run(device="sim", costs=True).costs
    assert (costs.excess_sectors, costs.excess_wavefronts) == (0, 0)
    moved = {
        space: sum(row.bytes for row in costs.memory if row.space == space)
        for space in ("global", "shared")
    }
    assert moved == dict.fromkeys(("global", "shared"), 2 * m * n * size)


@pytest.mark.parametrize("dtype", ["i8", "f16", "f32", "f64"])
def test_tiles_for_large_matrices_have_no_excess_either(dtype: str) -> None:
    """The tile that the heuristic chooses for large matrices, run on a matrix of one tile."""
    from lego_mlir.kernels.permute.heuristic import choose_tile

    m = n = 128
    large = find_problem((8192, 8192), (1, 0), *(OrderBy(Row(8192, 8192)),) * 2)
    small = find_problem((m, n), (1, 0), *(OrderBy(Row(m, n)),) * 2)
    assert large is not None
    assert small is not None
    size = DTYPES[dtype]().itemsize
    tile = choose_tile(large, size, 16 // size)
    kernel = _tiled_by(small, tile, dtype)
    (costs,) = kernel.run(device="sim", costs=True).costs
    assert (costs.excess_sectors, costs.excess_wavefronts) == (0, 0)
    assert all(row.bytes >= 4 * row.lanes for row in costs.memory), "a thread takes words"


def _tiled_by(move: Any, tile: Any, dtype: str) -> Any:
    from lego_mlir.frontend import TensorType
    from lego_mlir.kernels.permute.kernel import tiled_permutation

    kinds = [TensorType(dtype, OrderBy(Row(128, 128)), 16)] * 2
    return tiled_permutation("transpose", move, tile, DTYPES[dtype]().itemsize, *kinds, "transpose")


def test_modes_are_joined() -> None:
    row, column = OrderBy(Row(6, 8)), OrderBy(Col(8, 6))
    transposed = find_problem((6, 8), (1, 0), row, OrderBy(Row(8, 6)))
    assert transposed is not None
    assert set(transposed.modes) == {Mode(6, 8, 1), Mode(8, 1, 6)}
    copied = find_problem((6, 8), (1, 0), row, column)
    assert copied is not None
    assert copied.modes == (Mode(48, 1, 1),)
    joined = find_problem(
        (2, 3, 4, 5), (2, 3, 0, 1), OrderBy(Row(2, 3, 4, 5)), OrderBy(Row(4, 5, 2, 3))
    )
    assert joined is not None
    assert joined.modes == (Mode(20, 1, 6), Mode(6, 20, 1))


def test_vectors_are_as_wide_as_the_alignment_of_strides_allows() -> None:
    def widths(m: int, n: int, most: int) -> tuple[int, int]:
        problem = find_problem((m, n), (1, 0), OrderBy(Row(m, n)), OrderBy(Row(n, m)))
        assert problem is not None
        return problem.widths(most)

    assert widths(64, 64, 8) == (8, 8)
    assert widths(64, 66, 8) == (2, 8)
    assert widths(65, 64, 4) == (4, 1)
    assert widths(65, 63, 16) == (1, 1)


def test_without_alignment_accesses_take_one_element() -> None:
    """With arrays aligned to one element, no access of global memory is wider than that."""
    wide, narrow = (transpose(64, 64, variant="vector", alignment=n).compile().ptx for n in (16, 4))
    for space in ("ld.global", "st.shared", "ld.shared", "st.global"):
        assert re.search(rf"{space}(\.L2::\w+)*\.v\d\.b32", wide), space
    assert not re.search(r"\.global\S*\.v\d", narrow)


@pytest.mark.parametrize("variant", ["vector", "runs", "words", "squares", "gathers"])
def test_the_next_launch_begins_when_tiles_are_in_shared_memory(variant: str) -> None:
    """Earlier where tiles are small, and so their CTAs are short."""
    for shape, is_early in (((4096, 4096), False), ((48, 40), True)):
        ptx = transpose(*shape, "f16", variant=variant).compile("sm_90a").ptx
        wait, dependents, barrier = (
            ptx.index(each)
            for each in ("griddepcontrol.wait", "griddepcontrol.launch_dependents", "bar.sync")
        )
        assert wait < dependents
        assert (dependents < barrier) == is_early


@pytest.mark.parametrize(("shape", "most"), [((1024, 64, 4), 8192), ((64, 4096), 0)])
def test_launches_of_many_tiny_ctas_are_not_dependent(shape: tuple[int, ...], most: int) -> None:
    """They would begin one after the other."""
    axes = (1, 0, *range(2, len(shape)))
    (launch,) = permute(shape, axes, "i8", variant="vector").compile("sm_90a").launches
    assert (launch.pdl, launch.pdl_ctas) == (True, most)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(LegoError, match=r"the axes \[0, 0\] are not a permutation"):
        permute((3, 4), (0, 0))
    with pytest.raises(LegoError, match="no variant 'fast'"):
        transpose(3, 4, variant="fast")
    with pytest.raises(LegoError, match=r"\[0, 4\] is not a shape"):
        transpose(0, 4)
    with pytest.raises(LegoError, match=r"a = 'OrderBy\(Row\(4, 4\)\)' has 16 elements"):
        transpose(3, 4, a=OrderBy(Row(4, 4)))
    blocked = OrderBy(RegP([2, 4, 3, 4], [0, 2, 1, 3]))
    with pytest.raises(LegoError, match="not both strided"):
        transpose(8, 12, a=blocked, variant="vector")
