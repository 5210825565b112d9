"""The GEMMs that are measured; `bench.gemm.variants` has split-K, promotion and grouped GEMMs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Order
from bench.gemm.references import GemmReference

if TYPE_CHECKING:
    from lego_mlir import Kernel, Layout

CUBLAS = "cuBLAS"
CUBLAS_FAST = "cuBLAS, fast accumulation"

TRANSPOSES = ("NN", "NT", "TN", "TT")

_ORDERS: dict[str, Order] = {"N": "row", "T": "col"}
OUTPUT_TYPES = {"f16": "f16", "bf16": "bf16", "i8": "i32", "f8E4M3FN": "f16", "f8E5M2": "f16"}
_SHORT = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


def gemm_case(
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    transposes: str = "NN",
    *,
    c: Order = "row",
    variant: str = "",
) -> Case:
    """Return the case that multiplies an m×k by a k×n matrix.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: element type of A and B; C has the same, but i32 for integers and f16 for fp8.
        transposes: in BLAS notation: `NT` is A row-major and B column-major.
        c: memory order of C.
        variant: the schedule; empty if the kernel library chooses it.
    """
    a, b = (_ORDERS[letter] for letter in transposes)
    reference = GemmReference(m, n, k, dtype, OUTPUT_TYPES[dtype], a, b, c)
    return Case(
        case_name(reference, variant),
        partial(make_kernel, reference, variant),
        dtype,
        reference,
        variant,
        (CUBLAS, CUBLAS_FAST) if dtype in _SHORT else (CUBLAS,),
    )


def short_name(dtype: str) -> str:
    """Return the short name of an element type: `e4m3` for `f8E4M3FN`."""
    return _SHORT.get(dtype, dtype)


def case_name(reference: GemmReference, variant: str = "") -> str:
    """Return the name of a case: `gemm_f16_4096_nt`, or with m, n and k if they differ."""
    m, n, k = reference.m, reference.n, reference.k
    sizes = f"{m}" if m == n == k else f"{m}x{n}x{k}"
    words = ["gemm", short_name(reference.dtype), sizes, reference.transposes.lower()]
    words += ["col"] if reference.c == "col" else []
    return "_".join([*words, *([variant] if variant else [])])


def make_kernel(
    reference: GemmReference, variant: str, target: str, config: Any = None, promote: int = 0
) -> Kernel:
    """Return the library's kernel for a GEMM.

    Args:
        reference: what it computes.
        variant: the schedule; empty for the library's choice.
        target: the GPU architecture that the library chooses for.
        config: the GEMM config; the library's own choice if `None`.
        promote: as `lego_mlir.kernels.gemm.matmul` takes it.
    """
    from lego_mlir.kernels import matmul

    m, n, k = reference.m, reference.n, reference.k
    kernel: Kernel = matmul(
        m,
        n,
        k,
        reference.dtype,
        out=reference.out,
        a=layout_of(reference.a, m, k),
        b=layout_of(reference.b, k, n),
        c=layout_of(reference.c, m, n),
        config=config,
        schedule=variant or None,
        target=target,
        promote=promote,
    )
    return kernel


def layout_of(order: Order, rows: int, columns: int) -> Layout:
    """Return the layout of a matrix in a memory order."""
    from lego_mlir import Col, OrderBy, Row

    return OrderBy((Row if order == "row" else Col)(rows, columns))


SQUARES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)

OTHER_SHAPES = (
    (4096, 4096, 1024),
    (8192, 1024, 8192),
    (2112, 7168, 2048),
    (128, 7168, 16384),
    (64, 4096, 4096),
    (16, 8192, 8192),
    (4864, 4096, 8192),
    (4097 * 8, 2048, 2048),
)
"""m, n and k from language models, among them few rows and sizes that tiles do not divide."""

CASES = (
    *(gemm_case(n, n, n, "f16", t) for n in SQUARES for t in TRANSPOSES),
    *(gemm_case(m, n, k, "f16", t) for m, n, k in OTHER_SHAPES for t in ("NN", "NT")),
    gemm_case(4096, 4096, 4096, c="col"),
    *(gemm_case(n, n, n, "bf16", t) for n in (512, 1024, 4096, 8192) for t in TRANSPOSES[:2]),
    *(gemm_case(n, n, n, "f8E4M3FN", "NT") for n in (1024, 2048, 4096, 8192)),
    gemm_case(4096, 4096, 4096, "f8E5M2", "NT"),
    *(gemm_case(n, n, n, "i8", "NT") for n in (1024, 2048, 4096, 8192)),
    *(
        gemm_case(n, n, n, "f16", t, variant="cp_async")
        for n in (512, 1024, 2048, 4096, 8192)
        for t in TRANSPOSES
    ),
    *(
        gemm_case(4096, 4096, 4096, dtype, "NT", variant="cp_async")
        for dtype in ("bf16", "i8")  # for fp8 Hopper has only wgmma; ptxas emulates mma.sync
    ),
)
