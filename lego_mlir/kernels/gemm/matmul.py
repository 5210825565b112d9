"""Products of matrices on tensor cores: layout-free, a schedule finds the instructions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod

from lego_mlir import runtime
from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType, kernel
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.kernel import Division, Epilogue, Operand, multiply
from lego_mlir.kernels.gemm.matrices import contiguous_dimension, layout_of, transposed
from lego_mlir.kernels.gemm.planner import HOPPER, Plan, plan, slower
from lego_mlir.kernels.gemm.problem import BYTES, MmaConfig, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

_SUMS = {"f16": "f32", "bf16": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", "i8": "i32"}
"""By the type of A and B the type of their sums."""

_OUTPUTS = {"f32": ("f16", "bf16", "f32"), "i32": ("i32", "f16", "bf16", "f32")}
"""By the type of the sums the types that C may have."""

_DEFAULT_OUTPUT = {"f8E4M3FN": "f16", "f8E5M2": "f16", "i8": "i32"}

ALIGNMENT = 16
"""Of all arrays' addresses, in bytes."""


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    *,
    out: str | None = None,
    a: Layout | None = None,
    b: Layout | None = None,
    c: Layout | None = None,
    batch: int | None = None,
    epilogue: Epilogue | None = None,
    operands: Mapping[str, Operand] | None = None,
    config: MmaConfig | WgmmaConfig | None = None,
    blocks: Layout | None = None,
    schedule: str | None = None,
    target: str | None = None,
    promote: int = 0,
) -> Kernel:
    """A kernel that writes C = A B, or for a batch of matrices one product each.

        matmul(4096, 4096, 4096)(a, b, c)

    Sums are in f32, of integers in i32. Sizes that are no multiples of 16 bytes are right, but
    slower: rows then begin where no wide access may.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: of A and B: f16, bf16, i8, f8E4M3FN or f8E5M2.
        out: of C; by default that of A and B, i32 of i8, and f16 of the 8-bit floats.
        a: where A's elements lie, m×k, with a batch batch×m×k; row-major by default.
        b: where B's elements lie, k×n.
        c: where C's elements lie, m×n.
        batch: number of products, if they are more than a product.
        epilogue: what becomes of the sums before they are stored: a function of the tile of sums,
            and by name of the part of each operand that goes with it.
        operands: further parameters of the kernel, for the epilogue: numbers, `lg.Scalar["f32"]`,
            and tensors of sizes m×n, m×1, 1×n or n, `lg.Tensor["f16", OrderBy(Row(n))]`.
        config: how the product is divided; chosen by its sizes and the target by default. A
            `WgmmaConfig` is for the schedule `wgmma`, a `MmaConfig` for the others.
        blocks: from the number of a block to its tile of C, (down, across), or in a batch under
            `wgmma` (product, down, across); of the tiles of the transpose of C where C is
            column-major, or the config says `swap_ab`. The config's by default.
        schedule: the schedule's name or file; by default `wgmma` for sm_90a, and `hmma` elsewhere
            and, with a warning, where TMA cannot copy the matrices.
        target: the GPU architecture that the config is chosen for; by default that of the GPU that
            is here, and sm_90a without one.
        promote: steps over k whose products `wgmma` adds up before threads do; 0 for all of them.
            Of sums of 8-bit floats it keeps 13 bits of the fraction, and cuts off the rest; sums of
            four steps, that is of 512 products, are then added up in f32. `hmma` needs no such
            thing.

    Raises:
        LegoError: a size, a type or a layout is not what it should be, or the target cannot.
    """
    target = target or runtime.select().target or DEFAULT_TARGET
    sizes = (m, n, k) if batch is None else (m, n, k, batch)
    if any(type(size) is not int or size < 1 for size in sizes):
        raise LegoError(f"matmul: {list(sizes)} are no sizes", hint="sizes are positive integers")
    sums, out = sums_of("matmul", dtype, out, target, promote)
    lead = () if batch is None else (batch,)
    places = [
        layout_of(what, layout, (*lead, *shape))
        for what, layout, shape in (("a", a, (m, k)), ("b", b, (k, n)), ("c", c, (m, n)))
    ]
    order_a, order_b, order_c = (_order(layout, len(lead)) for layout in places)
    problem = Problem(m, n, k, dtype, out, order_a, order_b, order_c, batch or 1)
    types = {
        name: TensorType(kind, layout, ALIGNMENT)
        for name, kind, layout in zip("abc", (dtype, dtype, out), places, strict=True)
    }
    extra = dict(operands or {})
    _check_operands(extra, epilogue, (m, n))
    chosen = plan(problem, places, Target.parse(target), schedule, config, promote)
    if chosen.refusal is not None:
        warnings.warn(slower("matmul", chosen.refusal), stacklevel=2)
    elif BYTES[dtype] == 1 and (order_a, order_b) != ("row", "col"):
        warnings.warn(by_bytes("matmul", problem), stacklevel=2)
    first, second, third = places
    if chosen.is_transposed:
        second, first, third = (transposed(layout) for layout in places)
    order = _blocks(blocks, chosen, batch)
    tiles = prod(chosen.config.tiles(chosen.problem))
    body = multiply(
        Division(chosen.problem, chosen.config, order, len(lead), chosen.is_transposed),
        (first, second, third),
        sums,
        epilogue,
        extra,
    )
    return kernel(
        grid=(tiles * problem.batch,) if order.rank == 3 else (tiles, problem.batch),
        block=chosen.config.threads,
        reference=_reference(dtype, chosen) if epilogue is None else None,
        parameters={**types, **extra},
        schedule=chosen.schedule,
        params=chosen.config.params(chosen.problem),
        strict=True,
        explanation=lambda: chosen.explanation,
    )(body)


def by_bytes(what: str, problem: Problem) -> str:
    """A warning that tiles are transposed on their way to shared memory, and what would change it.

    Args:
        what: the function that was called.
        problem: of 8-bit elements.
    """
    return (
        f"{what}: tensor cores multiply {problem.dtype} along k, but A is by {problem.a}, B by "
        f"{problem.b}; so its bytes are moved one by one, which is slow\n"
        "hint: a row-major A and a column-major B: b=OrderBy(Col(k, n))"
    )


def sums_of(what: str, dtype: str, out: str | None, target: str, promote: int) -> tuple[str, str]:
    """The types of a product's sums and of C.

    Args:
        what: the function that was called.
        dtype: of A and B.
        out: of C, if it is not to be that which goes with `dtype`.
        target: the GPU architecture.
        promote: steps over k that tensor cores add up before threads do.

    Raises:
        LegoError: there is no such product, or not on that target.
    """
    if dtype not in _SUMS:
        raise LegoError(
            f"{what}: tensor cores do not multiply {dtype!r}", hint=f"known: {', '.join(_SUMS)}"
        )
    capability = Target.parse(target).capability
    needed = (8, 9) if dtype.startswith("f8") else (8, 0)
    if capability < needed:
        raise LegoError(
            f"{what}: {target} has no instruction that multiplies {dtype} as 'mma.sync' does",
            hint="f16, bf16 and i8 from sm_80 on, f8E4M3FN and f8E5M2 from sm_89 on",
        )
    sums = _SUMS[dtype]
    if promote < 0 or (promote and sums != "f32"):
        raise LegoError(
            f"{what}: promote = {promote} of sums of {sums}",
            hint="a number of steps, for sums of f32; or 0",
        )
    out = out or _DEFAULT_OUTPUT.get(dtype, dtype)
    if out not in _OUTPUTS[sums]:
        raise LegoError(
            f"{what}: C of {out} from sums of {sums}",
            hint=f"out is one of {', '.join(_OUTPUTS[sums])}",
        )
    return sums, out


def _reference(dtype: str, chosen: Plan) -> str:
    """What the product is compared with: `wgmma` keeps few bits of sums of 8-bit floats."""
    return "coarse_matmul" if chosen.schedule == HOPPER and dtype.startswith("f8") else "matmul"


def _order(layout: Layout, lead: int) -> str:
    """Whether a matrix is contiguous along its rows or its columns."""
    return "col" if contiguous_dimension(layout) == lead else "row"


def _blocks(given: Layout | None, chosen: Plan, batch: int | None) -> Layout:
    """From the number of a block to its tile."""
    config, problem = chosen.config, chosen.problem
    tiles = config.tiles(problem)
    is_numbered = isinstance(config, WgmmaConfig) and batch is not None  # along x alone
    if given is None:
        if isinstance(config, WgmmaConfig):
            return config.blocks(problem, batch)
        return config.blocks(problem)
    if tuple(given.dims) != ((batch, *tiles) if is_numbered else tiles):
        first = f"there are {batch} products, and " if is_numbered else ""
        raise LegoError(
            f"matmul: the layout blocks = '{given}' has the sizes {sizes_text(given.dims)}, "
            f"{first}C has {tiles[0]}×{tiles[1]} tiles of {config.tile[0]}×{config.tile[1]}",
            hint="a layout of the tiles, such as OrderBy(Row("
            + ("products, " if is_numbered else "")
            + "down, across))",
        )
    return given


def _check_operands(
    operands: Mapping[str, Operand], epilogue: Epilogue | None, shape: tuple[int, int]
) -> None:
    """Check the parameters that an epilogue adds."""
    if operands and epilogue is None:
        raise LegoError(f"matmul: no epilogue takes the operands {', '.join(operands)}")
    m, n = shape
    for name, kind in operands.items():
        if name in "abc":
            raise LegoError(f"matmul: the operand '{name}' has the name of a matrix")
        if isinstance(kind, TensorType):
            dims = tuple(kind.layout.dims)
            if dims not in ((n,), (m, n), (m, 1), (1, n)):
                raise LegoError(
                    f"matmul: the operand '{name}' has the sizes {sizes_text(dims)}",
                    hint=f"C is {m}×{n}: operands are {m}×{n}, {m}×1, 1×{n}, {n} or a number",
                )
