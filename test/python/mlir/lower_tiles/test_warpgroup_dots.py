"""Dots by wgmma on tiles that the test places, run in the simulator."""

from __future__ import annotations

from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from tile_kernels import ELEMENTS, compiled, kernel, load, outputs, shared_tile, store, tile

from lego_mlir.analysis.distributed import (
    coalesced,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    wgmma_accumulator,
    wgmma_operand_a,
)
from lego_mlir.analysis.shared_tiles import swizzled_tile
from lego_mlir.compiler.backend.ptxas import assemble
from lego_mlir.compiler.backend.strict_checks import check_strict
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

Grid = tuple[int, int]


class Case(NamedTuple):
    """A dot of row-major tensors, or of their transposes."""

    m: int
    n: int
    k: int
    grid: Grid
    dtype: type = np.float16
    a: str = "shared"  # or registers, or transposed: the tensor is k by m
    b: str = "k by n"  # or n by k


def module(case: Case) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """Return a kernel of one dot, its arguments, and the expected result."""
    m, n, k, grid, dtype, _, _ = case
    warps, rng = 4 * grid[0] * grid[1], np.random.default_rng(0)
    is_integer = np.issubdtype(dtype, np.integer)

    def random(*shape: int) -> np.ndarray:
        values = rng.integers(-9, 10, shape) if is_integer else rng.standard_normal(shape)
        return values.astype(dtype)

    x = random(*((k, m) if case.a == "transposed" else (m, k)))
    y = random(*((n, k) if case.b == "n by k" else (k, n)))
    arguments = {"x": x, "y": y, "z": np.zeros((m, n), np.int32 if is_integer else np.float32)}
    element, size = ELEMENTS[x.dtype], x.itemsize
    total = ELEMENTS[arguments["z"].dtype]
    x_rows, y_rows, z_rows = (coalesced(v.shape, v.itemsize, warps) for v in arguments.values())
    accumulator = tile(wgmma_accumulator((m, n), grid), total)
    loaded = [tile(x_rows, element), tile(y_rows, element)]
    a_memory = swizzled_tile(x.shape, 1, size)
    b_memory = swizzled_tile(y.shape, 1, size, grid[1] if case.b == "k by n" else 1)
    lines = []
    if case.a == "registers":
        a = tile(wgmma_operand_a((m, k), 8 * size, grid), element)
        lines.append(f'%a = "lego.convert"(%x0) : ({loaded[0]}) -> {a}')
    else:
        a = stored = shared_tile(a_memory, element)
        lines.append(f'%a0 = "lego.convert"(%x0) : ({loaded[0]}) -> {stored}')
        if case.a == "transposed":
            a = shared_tile(swizzled_tile((m, k), 0, size), element)
        lines.append(view("%a", "%a0", stored, a))
    b = stored = shared_tile(b_memory, element)
    if case.b == "n by k":
        b = shared_tile(swizzled_tile((k, n), 0, size), element)
    lines.append(f'%b0 = "lego.convert"(%y0) : ({loaded[1]}) -> {stored}')
    lines.append(view("%b", "%b0", stored, b))
    result = tile(z_rows, total)
    body = "\n".join(
        [
            f"%x0 = {load(arguments, 'x', loaded[0])}",
            f"%y0 = {load(arguments, 'y', loaded[1])}",
            *lines,
            f"%zero = arith.constant dense<0{'' if is_integer else '.0'}> : {accumulator}",
            f'%d = "lego.dot"(%a, %b, %zero) : ({a}, {b}, {accumulator}) -> {accumulator}',
            f'%r = "lego.convert"(%d) : ({accumulator}) -> {result}',
            store(arguments, "z", "%r", result),
        ]
    )
    wide = [v.astype(np.int64 if is_integer else np.float64) for v in (x, y)]
    left = wide[0].T if case.a == "transposed" else wide[0]
    right = wide[1].T if case.b == "n by k" else wide[1]
    return kernel(arguments, warps, body), arguments, left @ right


def view(name: str, of: str, stored: str, kind: str) -> str:
    """Return the transpose of a tile in shared memory, or the tile itself."""
    order = "1, 0" if kind != stored else "0, 1"
    return f'{name} = "lego.transpose"({of}) {{order = array<i64: {order}>}} : ({stored}) -> {kind}'


E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2

CASES = [
    Case(64, 8, 16, (1, 1)),
    Case(64, 64, 64, (1, 1)),
    Case(64, 64, 128, (1, 1), a="registers"),
    Case(64, 64, 64, (1, 1), b="n by k"),
    Case(128, 80, 64, (2, 1), a="registers", b="n by k"),
    Case(128, 96, 32, (1, 2)),
    Case(128, 64, 64, (2, 2), a="transposed"),
    Case(128, 48, 32, (1, 1), a="transposed", b="n by k"),
    Case(64, 256, 32, (1, 1), ml_dtypes.bfloat16),
    Case(64, 32, 64, (1, 1), E4M3, b="n by k"),
    Case(128, 64, 64, (2, 1), E5M2, a="registers", b="n by k"),
    Case(64, 64, 128, (1, 1), np.int8, b="n by k"),
    Case(64, 32, 32, (1, 1), np.int8, a="registers", b="n by k"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_dots(case: Case, order: str) -> None:
    text, arguments, expected = module(case)
    found = outputs(text, arguments, order)["z"]
    tolerance = 0.02 if case.dtype in (E4M3, E5M2) else 1e-4
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=tolerance)


def test_the_instructions_are_those_of_the_tile() -> None:
    text, _, _ = module(Case(128, 80, 64, (2, 1), a="registers", b="n by k"))
    ptx = compiled(text).ptx
    assert ptx.count("wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16") == 4
    assert ptx.count("wgmma.fence") == ptx.count("wgmma.commit_group") == 1
    assert "mma.sync" not in ptx.replace("mma_async.sync", "")


def test_all_cases_are_compiled_to_wgmma() -> None:
    for case in CASES:
        assert "wgmma.mma_async" in compiled(module(case)[0]).ptx, case


WRONG = {
    "A in shared memory and B in registers": (
        Case(64, 64, 64, (1, 1)),
        lambda text: swap_b(text),
        "operand A in shared memory, and operand B in registers",
    ),
    "an accumulator of another family": (
        Case(64, 64, 64, (1, 1)),
        lambda text: text.replace(
            wgmma_accumulator((64, 64)).text, mma_accumulator((64, 64), (2, 2)).text
        ),
        "which no accumulator of wgmma has",
    ),
    "A in registers of another layout": (
        Case(64, 64, 32, (1, 1), a="registers"),
        lambda text: text.replace(
            wgmma_operand_a((64, 32), 16).text, mma_operand_a((64, 32), 16, (2, 2)).text
        ),
        "has operand A in the layout",
    ),
    "a memory that no descriptor describes": (
        Case(64, 64, 64, (1, 1), a="registers"),
        lambda text: text.replace(
            swizzled_tile((64, 64), 1, 2).text, "OrderBy(GenP([64, 64], swizzle(4, 1, 16)))"
        ),
        "has an operand that cannot be read",
    ),
    "bytes that are contiguous along n": (
        Case(64, 64, 64, (1, 1), np.int8),
        lambda text: text,
        "contiguous along the other dimension",
    ),
}


def swap_b(text: str) -> str:
    """Return a dot's module with operand B in registers."""
    b = mma_operand_b((64, 64), 16, (4, 1))
    in_registers, stored = tile(b, "f16"), shared_tile(swizzled_tile((64, 64), 1, 2), "f16")
    before, dot = text.split('%d = "lego.dot"')
    converted = f'%br = "lego.convert"(%b) : ({stored}) -> {in_registers}\n'
    a, kinds = dot.split("%b,", 1)[0], dot.split("%b,", 1)[1].replace(stored, "A", 1)
    return (
        before
        + converted
        + '%d = "lego.dot"'
        + a
        + "%br,"
        + kinds.replace(stored, in_registers, 1).replace("A", stored, 1)
    )


@pytest.mark.parametrize("name", WRONG)
def test_what_wgmma_does_not_take_is_an_error(name: str) -> None:
    case, change, message = WRONG[name]
    with pytest.raises(LegoError, match=message) as raised:
        _ = compiled(change(module(case)[0])).ptx
    assert raised.value.hint


def test_other_targets_have_no_wgmma() -> None:
    text, _, _ = module(Case(64, 64, 64, (1, 1)))
    source = Source("t.mlir", text)
    with pytest.raises(LegoError, match=r"no wgmma computes this .*sm_90 has no wgmma"):
        _ = Compilation(source, Options(target=Target.parse("sm_90"))).ptx


def two_dots(chained: bool) -> tuple[str, dict[str, np.ndarray], np.ndarray]:
    """Return a kernel of two asynchronous dots with one operand A, and the sum of their results."""
    rng = np.random.default_rng(0)
    arguments = {
        "x": rng.standard_normal((64, 64)).astype(np.float16),
        "y": rng.standard_normal((64, 64)).astype(np.float16),
        "w": rng.standard_normal((64, 64)).astype(np.float16),
        "z": np.zeros((64, 64), np.float32),
    }
    rows, z_rows = coalesced((64, 64), 2, 4), coalesced((64, 64), 4, 4)
    loaded, stored = tile(rows, "f16"), shared_tile(swizzled_tile((64, 64), 1, 2), "f16")
    accumulator, result = tile(wgmma_accumulator((64, 64)), "f32"), tile(z_rows, "f32")
    lines = [f"%zero = arith.constant dense<0.0> : {accumulator}"]
    for name in "xyw":
        lines.append(f"%{name}0 = {load(arguments, name, loaded)}")
        lines.append(f'%{name}1 = "lego.convert"(%{name}0) : ({loaded}) -> {stored}')
    kinds = f"({stored}, {stored}, {accumulator}) -> {accumulator}"
    start, before = ("%d", "%d") if chained else ("%zero", "%e")
    wait = f": ({accumulator}) -> {accumulator}"
    lines.append(f'%d = "lego.dot_async"(%x1, %y1, %zero) : {kinds}')
    lines.append(f'%e = "lego.dot_async"(%x1, %w1, {start}) : {kinds}')
    if chained:
        lines.append(f'%s = "lego.dot_wait"(%e) {{pending = 0 : i64}} {wait}')
    else:
        lines.append(f'%f = "lego.dot_wait"(%d) {{pending = 1 : i64}} {wait}')
        lines.append(f"%twice = arith.addf %f, %f : {accumulator}")
        lines.append(f'%g = "lego.dot_wait"({before}) {{pending = 0 : i64}} {wait}')
        lines.append(f"%s = arith.addf %twice, %g : {accumulator}")
    lines.append(f'%r = "lego.convert"(%s) : ({accumulator}) -> {result}')
    lines.append(store(arguments, "z", "%r", result))
    x, y, w = (arguments[name].astype(np.float64) for name in "xyw")
    expected = x @ y + x @ w if chained else 2 * (x @ y) + x @ w
    return kernel(arguments, 4, "\n".join(lines)), arguments, expected


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("order", ["late", "early", "random:1"])
def test_asynchronous_dots(order: str, *, chained: bool) -> None:
    text, arguments, expected = two_dots(chained)
    found = outputs(text, arguments, order)["z"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    ptx = compiled(text).ptx
    assert ptx.count("wgmma.commit_group") == 2
    assert ptx.count("wgmma.wait_group") == (1 if chained else 2)


def test_the_assembler_serializes_no_wgmma() -> None:
    texts = [module(case)[0] for case in CASES[2:5]]
    for text in [*texts, *(two_dots(chained)[0] for chained in (False, True))]:
        check_strict(assemble(compiled(text).ptx, Target.parse("sm_90a")))
