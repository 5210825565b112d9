"""GEMMs with a size of 0.

Without rows, columns or GEMMs there is nothing to compute, and nothing is launched. Without k the
sums are empty: C is 0, or what the epilogue makes of it. Then zeros are multiplied, one line of
each row of A and of each column of B, from workspaces that hold them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.frontend import (
    EmptyType,
    Kernel,
    KernelCall,
    KernelSequence,
    TensorType,
    Workspace,
    sequence,
)
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import CACHE_LINE_BYTES
from lego_mlir.kernels.gemm.kernel import Operand
from lego_mlir.kernels.gemm.matrices import layout_of

Sizes = tuple[int, ...]
"""m, n and k, and the number of GEMMs in a batch."""

Multiply = Callable[[int, Layout, Layout], Kernel | KernelSequence]
"""Returns the GEMM of the same sizes with another k, and with these layouts of A and B."""


def empty_matmul(
    sizes: Sizes,
    types: tuple[str, str],
    layouts: Mapping[str, Layout | None],
    operands: Mapping[str, Operand],
    alignment: int,
    multiply: Multiply,
) -> Kernel | KernelSequence:
    """Return the kernels of a GEMM of which a size is 0.

    Args:
        sizes: of the GEMM.
        types: the element types of A and B, and of C.
        layouts: the layouts of A, B and C that the caller gives, by name.
        operands: the epilogue's parameters.
        alignment: bytes that the addresses of the matrices are a multiple of.
        multiply: makes the GEMM that is computed instead, of zeros.

    Raises:
        LegoError: a layout does not have the sizes of its matrix.
    """
    m, n, k, *lead = sizes
    dtype, out = types
    shapes = {"a": (*lead, m, k), "b": (*lead, k, n), "c": (*lead, m, n)}
    parameters: dict[str, Parameter] = {}
    for name, shape in shapes.items():
        kind = out if name == "c" else dtype
        if 0 in shape:
            parameters[name] = EmptyType(kind, shape)
        else:
            layout = layout_of(name, layouts[name], shape)
            parameters[name] = TensorType(kind, layout, alignment)
    parameters |= operands
    if 0 in shapes["c"]:
        return sequence("matmul", [], parameters=parameters, explanation=lambda: "C is empty")
    line = CACHE_LINE_BYTES // ELEMENT_BYTES[dtype]
    zeros = OrderBy(Row(*lead, m, line)), _columns((*lead, line, n))
    gemm = multiply(line, *zeros)
    calls = gemm.calls if isinstance(gemm, KernelSequence) else (gemm.on(),)
    names = {"a": "zeros_a", "b": "zeros_b"}
    renamed = [
        KernelCall(call.kernel, {p: names.get(name, name) for p, name in call.names.items()})
        for call in calls
    ]
    workspaces = {
        names[name]: Workspace(dtype, (prod((*lead, line, extent)),), zeroed=True)
        for name, extent in (("a", m), ("b", n))
    }
    if isinstance(gemm, KernelSequence):
        workspaces |= gemm.workspaces
    return sequence(
        "matmul",
        renamed,
        parameters=parameters,
        workspaces=workspaces,
        explanation=lambda: "k is 0: zeros are multiplied",
    )


def _columns(shape: tuple[int, ...]) -> Layout:
    """Return the layout of column-major matrices."""
    rank = len(shape)
    return OrderBy(RegP(list(shape), [*range(rank - 2), rank - 1, rank - 2]))
