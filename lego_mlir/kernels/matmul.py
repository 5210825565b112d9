"""Products of matrices on tensor cores: layout-free, a schedule finds the instructions."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.compiler.targets import Target
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType, kernel
from lego_mlir.kernels.choice import choose
from lego_mlir.kernels.configuration import Config, Problem
from lego_mlir.kernels.matrices import contiguous_dimension, layout_of, transposed
from lego_mlir.kernels.multiply import Division, Epilogue, Operand, multiply

_SUMS = {"f16": "f32", "bf16": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", "i8": "i32"}
"""By the type of A and B the type of their sums."""

_OUTPUTS = {"f32": ("f16", "bf16", "f32"), "i32": ("i32", "f16", "bf16", "f32")}
"""By the type of the sums the types that C may have."""

_DEFAULT_OUTPUT = {"f8E4M3FN": "f16", "f8E5M2": "f16", "i8": "i32"}

ALIGNMENT = 16
"""Of all arrays' addresses, in bytes."""

SCHEDULE = "hmma"


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
    config: Config | None = None,
    blocks: Layout | None = None,
    schedule: str | None = None,
    target: str = DEFAULT_TARGET,
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
        config: how the product is divided; chosen by its sizes and the target by default.
        blocks: from the number of a block to its tile of C (of the transpose of C where C is
            column-major); the config's by default.
        schedule: the schedule's name or file; `hmma` by default.
        target: the GPU architecture that the config is chosen for.

    Raises:
        LegoError: a size, a type or a layout is not what it should be, or the target cannot.
    """
    sums = _check(m, n, k, dtype, batch, target)
    out = out or _DEFAULT_OUTPUT.get(dtype, dtype)
    if out not in _OUTPUTS[sums]:
        raise LegoError(
            f"matmul: C of {out} from sums of {sums}",
            hint=f"out is one of {', '.join(_OUTPUTS[sums])}",
        )
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
    # The tile of C leaves by rows: of a column-major C the transpose is computed.
    is_transposed = problem.c == "col"
    if is_transposed:
        problem = problem.transpose
        second, first, third = (transposed(layout) for layout in places)
    else:
        first, second, third = places
    machine = Target.parse(target)
    config = config or choose(problem, machine)
    config.check(problem, machine.optin_shared_bytes)
    body = multiply(
        Division(problem, config, _blocks(blocks, config, problem), len(lead), is_transposed),
        (first, second, third),
        sums,
        epilogue,
        extra,
    )
    return kernel(
        grid=(prod(config.tiles(problem)), problem.batch),
        block=config.threads,
        reference="matmul" if epilogue is None else None,
        parameters={**types, **extra},
        schedule=schedule or SCHEDULE,
        settings=config.settings(problem),
        strict=True,
    )(body)


def _check(m: int, n: int, k: int, dtype: str, batch: int | None, target: str) -> str:
    """Check sizes and type; the type of the sums."""
    sizes = (m, n, k) if batch is None else (m, n, k, batch)
    if any(type(size) is not int or size < 1 for size in sizes):
        raise LegoError(f"matmul: {list(sizes)} are no sizes", hint="sizes are positive integers")
    if dtype not in _SUMS:
        raise LegoError(
            f"matmul: tensor cores do not multiply {dtype!r}", hint=f"known: {', '.join(_SUMS)}"
        )
    capability = Target.parse(target).capability
    needed = (8, 9) if dtype.startswith("f8") else (8, 0)
    if capability < needed:
        raise LegoError(
            f"matmul: {target} has no instruction that multiplies {dtype} as 'mma.sync' does",
            hint="f16, bf16 and i8 from sm_80 on, f8E4M3FN and f8E5M2 from sm_89 on",
        )
    return _SUMS[dtype]


def _order(layout: Layout, lead: int) -> str:
    """Whether a matrix is contiguous along its rows or its columns."""
    return "col" if contiguous_dimension(layout) == lead else "row"


def _blocks(given: Layout | None, config: Config, problem: Problem) -> Layout:
    """From the number of a block to its tile."""
    tiles = config.tiles(problem)
    if given is None:
        return config.blocks(problem)
    if tuple(given.dims) != tiles:
        raise LegoError(
            f"matmul: the layout blocks = '{given}' has the sizes {sizes_text(given.dims)}, "
            f"C has {tiles[0]}×{tiles[1]} tiles of {config.tile[0]}×{config.tile[1]}",
            hint="a layout of the tiles, such as OrderBy(Row(down, across))",
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
