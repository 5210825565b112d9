"""Programs of dots, by wgmma and by mma.sync, in the simulator against NumPy."""

# ruff: noqa: F821 (Tensor["f32", ...] is no forward reference)

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.compiler.backend.ptxas import assemble
from lego_mlir.compiler.backend.strict_checks import check_strict
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.runtime import run, select
from lego_mlir.step_checks import check_each_step

WGMMA, MMA = "sm_90a", "sm_90"
ORDERS = ["late", "early", "random:1"]


class Program(NamedTuple):
    """A kernel, its arguments by name, and what it computes.

    Attributes:
        kernel: the kernel.
        arguments: the last one is its result.
        expected: that result, in f64.
        products: how many dots it has.
    """

    kernel: Any
    arguments: dict[str, np.ndarray]
    expected: np.ndarray
    products: int


def normal(*shape: int, dtype: Any = np.float16, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * scale).astype(dtype)


def gemm(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int],
    dtype: str = "f16",
    warps: int = 4,
    *,
    by_columns: bool = False,
    **options: Any,
) -> Program:
    """Return a GEMM; `by_columns` has B as n by k, options are those of the kernel."""
    bm, bn, bk = tile
    element = {
        "f16": np.float16,
        "bf16": ml_dtypes.bfloat16,
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "i8": np.int8,
    }[dtype]
    sums = "i32" if dtype == "i8" else "f32"
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> np.ndarray:
        if dtype == "i8":
            return rng.integers(-9, 10, shape).astype(element)
        return rng.standard_normal(shape).astype(element)

    of_b = (n, k) if by_columns else (k, n)

    @lg.kernel(grid=(-(-n // bn), -(-m // bm)), warps=warps, **options)
    def kernel(
        a: lg.Tensor[dtype, (m, k)], b: lg.Tensor[dtype, of_b], c: lg.Tensor[sums, (m, n)]
    ) -> None:
        j, i = lg.block_id("x"), lg.block_id("y")

        @lg.fold(-(-k // bk), lg.zeros((bm, bn), sums))
        def total(step: Any, before: Any) -> Any:
            if by_columns:
                right = b.tile(bn, bk)[j, step].T
            else:
                right = b.tile(bk, bn)[step, j]
            return lg.dot(a.tile(bm, bk)[i, step], right, before)

        c.tile(bm, bn)[i, j] = total

    a, b = draw(m, k), draw(*of_b)
    wide = [x.astype(np.int64 if dtype == "i8" else np.float64) for x in (a, b)]
    c = np.zeros((m, n), np.int32 if dtype == "i8" else np.float32)
    expected = wide[0] @ (wide[1].T if by_columns else wide[1])
    return Program(kernel, {"a": a, "b": b, "c": c}, expected, 1)


def chained() -> Program:
    """Return (X Y) Z, the first product in f16 for the second one."""

    @lg.kernel(grid=1, warps=4)
    def kernel(
        x: lg.Tensor["f16", (64, 64)],
        y: lg.Tensor["f16", (64, 128)],
        z: lg.Tensor["f16", (128, 64)],
        out: lg.Tensor["f32", (64, 64)],
    ) -> None:
        first = lg.dot(x.tile(64, 64)[0, 0], y.tile(64, 128)[0, 0])
        out.tile(64, 64)[0, 0] = lg.dot(first.to("f16"), z.tile(128, 64)[0, 0])

    x, y, z = normal(64, 64, scale=0.1), normal(64, 128), normal(128, 64)
    wide = [v.astype(np.float64) for v in (x, y, z)]
    middle = (wide[0] @ wide[1]).astype(np.float16).astype(np.float64)
    out = np.zeros((64, 64), np.float32)
    return Program(kernel, {"x": x, "y": y, "z": z, "out": out}, middle @ wide[2], 2)


def swiglu(**options: Any) -> Program:
    """Return silu(X G) * (X U): two dots with one operand, and one epilogue."""
    m, n, k = 128, 192, 128

    @lg.kernel(grid=(n // 64, m // 64), warps=4, **options)
    def kernel(
        x: lg.Tensor["f16", (m, k)],
        g: lg.Tensor["f16", (k, n)],
        u: lg.Tensor["f16", (n, k)],
        out: lg.Tensor["f16", (m, n)],
    ) -> None:
        j, i = lg.block_id("x"), lg.block_id("y")
        zero = lg.zeros((64, 64), "f32")

        @lg.fold(k // 64, (zero, zero))
        def state(step: Any, gate: Any, up: Any) -> Any:
            rows = x.tile(64, 64)[i, step]
            gate = lg.dot(rows, g.tile(64, 64)[step, j], gate)
            return gate, lg.dot(rows, u.tile(64, 64)[j, step].T, up)

        out.tile(64, 64)[i, j] = (lg.silu(state[0]) * state[1]).to("f16")

    x, g, u = normal(m, k, scale=0.3), normal(k, n, scale=0.3), normal(n, k, scale=0.3)
    wide = [v.astype(np.float64) for v in (x, g, u)]
    gate, up = wide[0] @ wide[1], wide[0] @ wide[2].T
    expected = gate / (1 + np.exp(-gate)) * up
    out = np.zeros((m, n), np.float16)
    return Program(kernel, {"x": x, "g": g, "u": u, "out": out}, expected, 2)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "gemm": lambda: gemm(128, 128, 128, (64, 64, 64)),
    "gemm by columns": lambda: gemm(128, 128, 128, (64, 64, 64), by_columns=True),
    "two warpgroups": lambda: gemm(128, 160, 96, (128, 80, 32), warps=8),
    "two warpgroups side by side": lambda: gemm(64, 128, 64, (64, 128, 64), warps=8),
    "edges": lambda: gemm(100, 90, 80, (64, 64, 32)),
    "bf16": lambda: gemm(64, 128, 128, (64, 128, 64), "bf16"),
    "e4m3": lambda: gemm(64, 64, 128, (64, 64, 64), "f8E4M3FN", by_columns=True),
    "e5m2": lambda: gemm(64, 64, 128, (64, 64, 64), "f8E5M2"),
    "i8": lambda: gemm(64, 64, 128, (64, 64, 64), "i8", by_columns=True),
    "i8 by rows": lambda: gemm(64, 64, 64, (64, 64, 64), "i8"),
    "chained": chained,
    "swiglu": swiglu,
}


REGISTERS = {"stages": 2, "producer_registers": 40, "consumer_registers": 232}
OVERLAPPED: dict[str, Callable[[], Program]] = {
    "gemm": lambda: gemm(256, 128, 256, (128, 128, 64), warps=8, schedule="overlapped"),
    "registers": lambda: gemm(
        128, 192, 192, (128, 192, 64), warps=8, schedule="overlapped", params=REGISTERS
    ),
    "i8": lambda: gemm(64, 64, 256, (64, 64, 64), "i8", by_columns=True, schedule="overlapped"),
    "swiglu": lambda: swiglu(schedule="overlapped", params={"stages": 2}),
}


@pytest.mark.parametrize("name", OVERLAPPED)
def test_dots_that_overlap_with_the_next_iteration(name: str) -> None:
    compared(OVERLAPPED[name](), WGMMA, 1e-3)


@pytest.mark.parametrize("name", OVERLAPPED)
def test_overlapped_dots_are_not_serialized(name: str) -> None:
    ptx = OVERLAPPED[name]().kernel.compilation().ptx
    pending = 2 if name == "swiglu" else 1
    assert re.search(rf"wgmma\.wait_group\.sync\.aligned\s+{pending};", ptx)
    assert "cp.async.bulk.tensor" in ptx
    check_strict(assemble(ptx, Target.parse(WGMMA)))


@pytest.mark.parametrize("target", [WGMMA, MMA])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, target: str) -> None:
    compared(PROGRAMS[name](), target, 1e-2 if name in ("e4m3", "e5m2") else 1e-3)


def test_sums_of_tiles_that_registers_round_up_and_tensors_cut() -> None:
    """40 columns are 64 in registers, of which 3 lie in the tensor in the second tile."""
    compared(gemm(79, 43, 48, (48, 40, 32)), MMA, 1e-3)


def compared(program: Program, target: str, tolerance: float) -> None:
    """Run a program in each order of the simulator; compare, relative to the largest element."""
    artifact = program.kernel.compile(target)
    *_, last = program.arguments
    shape, dtype = program.arguments[last].shape, program.arguments[last].dtype
    scale = float(np.abs(program.expected).max())
    for order in ORDERS:
        given = {key: x.copy() for key, x in program.arguments.items()}
        found = run(artifact, given, device=select("sim", order=order)).outputs
        result = np.asarray(found[last]).view(dtype).reshape(shape).astype(np.float64)
        np.testing.assert_allclose(
            result, program.expected, atol=tolerance * scale, rtol=0, err_msg=order
        )


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assembler_finds_nothing_to_slow_down(name: str) -> None:
    ptx = PROGRAMS[name]().kernel.compilation().ptx
    assert "wgmma.mma_async" in ptx
    assert "\tmma.sync" not in ptx
    check_strict(assemble(ptx, Target.parse(WGMMA)))


@pytest.mark.parametrize("name", ["gemm by columns", "chained", "swiglu", "e4m3", "i8 by rows"])
def test_each_pass_keeps_what_is_computed(name: str) -> None:
    assert check_each_step(PROGRAMS[name]().kernel.compilation())


def test_an_accumulator_is_the_next_dots_operand_in_registers() -> None:
    text = chained().kernel.compilation().text("placed")
    conversions = [line for line in text.splitlines() if "lego.convert" in line]
    assert len(conversions) == 4, "of x, y and z to shared memory, and of the result"
    assert sum("-> tensor" in c and "#lego.shared" in c.split("->")[1] for c in conversions) == 3


def test_operands_from_memory_are_read_from_shared_memory() -> None:
    """A tile of two dots, too: registers that an iteration fills anew could not be in flight."""
    text = swiglu().kernel.compilation().text("placed")
    dots = [line for line in text.splitlines() if "lego.dot" in line]
    assert len(dots) == 2
    assert all(line.split(" : ")[1].split(", tensor")[0].count("#lego.shared") for line in dots)


def test_the_explanation_says_by_what_dots_are_computed() -> None:
    assert "wgmma m64n64k16, A from registers" in str(chained().kernel.explain())
    assert "mma.sync m16n8k16: 48 rows are no multiple of 64" in str(
        gemm(48, 64, 64, (48, 64, 64)).kernel.explain()
    )


def test_dots_that_share_an_accumulator_are_placed_together() -> None:
    @lg.kernel(grid=1, warps=4)
    def kernel(
        x: lg.Tensor["f16", (64, 64)],
        y: lg.Tensor["f16", (64, 64)],
        c: lg.Tensor["f32", (64, 64)],
    ) -> None:
        a, b = x[:, :] * 2, y[:, :] * y[:, :]
        c[:, :] = lg.dot(a, b, lg.dot(a, b, c[:, :]))

    dots = [line for line in str(kernel.explain()).splitlines() if "lego.dot" in line]
    assert len(dots) == 2
    assert all("wgmma m64n64k16" in line for line in dots)


def named(instruction: Any, m: int = 64, **options: Any) -> lg.Kernel:
    """Return a kernel of one dot, of few elements, by a named instruction."""

    @lg.kernel(grid=1, warps=4, **options)
    def kernel(
        x: lg.Tensor["f16", (m, 2)], y: lg.Tensor["f16", (2, 9)], out: lg.Tensor["f32", (m, 9)]
    ) -> None:
        a, b = x.tile(m, 16)[0, 0], y.tile(16, 16)[0, 0]
        out.tile(m, 16)[0, 0] = lg.dot(a, b, instruction=instruction)

    return kernel


@pytest.mark.parametrize(
    ("instruction", "by"), [("wgmma", "wgmma m64n16k16"), ("mma.sync", "mma.sync m16n8k16")]
)
def test_a_dot_may_name_its_instruction(instruction: str, by: str) -> None:
    kernel = named(instruction)
    assert by in kernel.explain()
    x, y, out = normal(64, 2), normal(2, 9), np.zeros((64, 9), np.float32)
    kernel(x, y, out, device="sim")
    np.testing.assert_allclose(out, x.astype("f4") @ y.astype("f4"), rtol=1e-6)


@pytest.mark.parametrize(
    ("instruction", "m", "message"),
    [
        ("wgmma", 32, "wgmma does not compute this dot: 32 rows are no multiple of 64"),
        ("tcgen05", 64, "'dot' of instruction = 'tcgen05'.*'wgmma', 'mma.sync'"),
    ],
)
def test_a_dot_of_another_instruction(instruction: str, m: int, message: str) -> None:
    with pytest.raises(LegoError) as caught:
        named(instruction, m).compilation().text("placed")
    assert re.search(message, caught.value.render(), re.S)
