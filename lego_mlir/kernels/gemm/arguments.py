"""What a caller says of a GEMM: sizes, element types, and what its epilogue takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import TensorType
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int
from lego_mlir.kernels.gemm.kernel import Epilogue, Operand
from lego_mlir.kernels.gemm.planner import EpilogueKind

_ACCUMULATORS = {"f16": "f32", "bf16": "f32", "f8E4M3FN": "f32", "f8E5M2": "f32", "i8": "i32"}
"""The accumulator's element type by that of A and B."""

_OUTPUTS = {"f32": ("f16", "bf16", "f32"), "i32": ("i32", "f16", "bf16", "f32")}
"""The element types that C may have by that of the accumulator."""

_MOST_ELEMENTS = 1 << 48
"""Of all matrices of an argument: addresses of bytes have no more bits on any GPU."""

_DEFAULT_OUTPUT = {"f8E4M3FN": "f16", "f8E5M2": "f16", "i8": "i32"}


def check_sizes(what: str, sizes: tuple[int, ...], *, least: int = 1) -> None:
    """Check that sizes are integers of at least `least`, and no larger than any memory.

    Args:
        what: the function that was called, for the message.
        sizes: m, n, k, and maybe the number of GEMMs.
        least: the least size.

    Raises:
        LegoError: they are not.
    """
    if any(type(size) is not int or size < least for size in sizes):
        raise LegoError(
            f"{what}: {list(sizes)} are not sizes",
            hint=f"sizes are integers of at least {least}",
        )
    m, n, k, *batch = sizes
    if max(m * n, m * k, k * n) * prod(batch) >= _MOST_ELEMENTS:
        raise LegoError(
            f"{what}: the sizes {list(sizes)} are those of a matrix of {_MOST_ELEMENTS} elements "
            "or more",
            hint="no device has so much memory",
        )


def check_types(
    what: str, dtype: str, out: str | None, target: str, promote: int
) -> tuple[str, str]:
    """Return the element types of a GEMM's accumulator and of C, after checking all types.

    Args:
        what: the function that was called, for the message.
        dtype: the element type of A and B.
        out: the element type of C; `None` for the default of `dtype`.
        target: the GPU architecture.
        promote: iterations after which accumulators are promoted.

    Raises:
        LegoError: there is no such GEMM, or not on that target.
    """
    if dtype not in tuple(_ACCUMULATORS):
        raise LegoError(
            f"{what}: tensor cores do not multiply {dtype!r}",
            hint=f"known: {', '.join(_ACCUMULATORS)}",
        )
    capability = Target.parse(target).capability
    needed = (8, 9) if dtype.startswith("f8") else (8, 0)
    if capability < needed:
        raise LegoError(
            f"{what}: {target} has no tensor core instruction for {dtype}",
            hint="f16, bf16 and i8 from sm_80 on, f8E4M3FN and f8E5M2 from sm_89 on",
        )
    accumulator = _ACCUMULATORS[dtype]
    if type(promote) is not int or promote < 0 or (promote and accumulator != "f32"):
        raise LegoError(
            f"{what}: promote = {promote!r} with {accumulator} accumulators",
            hint="a number of iterations, for accumulators of f32; or 0",
        )
    out = out or _DEFAULT_OUTPUT.get(dtype, dtype)
    if out not in _OUTPUTS[accumulator]:
        raise LegoError(
            f"{what}: C of {out} from {accumulator} accumulators",
            hint=f"out is one of {', '.join(_OUTPUTS[accumulator])}",
        )
    return accumulator, out


def epilogue_kind(operands: Mapping[str, Operand], shape: tuple[Int, int]) -> EpilogueKind:
    """Return what an epilogue computes with besides the accumulator."""
    is_matrix = (
        isinstance(kind, TensorType) and tuple(kind.layout.dims) == shape
        for kind in operands.values()
    )
    return "tiles" if any(is_matrix) else "values"


def check_operands(
    operands: Mapping[str, Operand], epilogue: Epilogue | None, shape: tuple[Int, int]
) -> None:
    """Check the parameters that an epilogue adds."""
    if operands and epilogue is None:
        raise LegoError(
            f"matmul: operands without an epilogue that takes them: {', '.join(operands)}"
        )
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
