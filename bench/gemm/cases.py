"""The products that are measured; see `bench.cases`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from bench.cases import Case
from bench.gemm.product import Product
from bench.movement import Order

if TYPE_CHECKING:
    from lego_mlir import Kernel, Layout

CUBLAS = "cuBLAS"
FAST = "cuBLAS, short sums"

TRANSPOSES = ("NN", "NT", "TN", "TT")

_ORDERS: dict[str, Order] = {"N": "row", "T": "col"}
OUTPUTS = {"f16": "f16", "bf16": "bf16", "i8": "i32", "f8E4M3FN": "f16", "f8E5M2": "f16"}
_SHORT = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}


def multiplied(
    m: int,
    n: int,
    k: int,
    dtype: str = "f16",
    transposes: str = "NN",
    *,
    c: Order = "row",
    variant: str = "",
) -> Case:
    """A product of an m×k and a k×n matrix.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        dtype: element type of A and B; C is of it too, i32 for integers, f16 for fp8.
        transposes: in the words of BLAS: `NT` is A row-major and B column-major.
        c: where C's elements lie.
        variant: the schedule; empty where it is left to the kernel library.
    """
    first, second = (_ORDERS[letter] for letter in transposes)
    reference = Product(m, n, k, dtype, OUTPUTS[dtype], first, second, c)
    return Case(
        name_of(reference, variant),
        partial(make, reference, variant),
        dtype,
        reference,
        variant,
        (CUBLAS, FAST) if dtype in _SHORT else (CUBLAS,),
    )


def short_name(dtype: str) -> str:
    """`e4m3` of `f8E4M3FN`; other types have short names."""
    return _SHORT.get(dtype, dtype)


def name_of(product: Product, variant: str = "") -> str:
    """`gemm_f16_4096_nt`, or with all three sizes where they differ."""
    m, n, k = product.m, product.n, product.k
    sizes = f"{m}" if m == n == k else f"{m}x{n}x{k}"
    parts = ["gemm", short_name(product.dtype), sizes, product.transposes.lower()]
    parts += ["col"] if product.c == "col" else []
    return "_".join([*parts, *([variant] if variant else [])])


def make(
    product: Product, variant: str, target: str, config: Any = None, promote: int = 0
) -> Kernel:
    """The kernel of a product.

    Args:
        product: what it computes.
        variant: the schedule; empty for the library's choice.
        target: the GPU architecture that the library chooses for.
        config: the library's own choice if `None`.
        promote: as `lego_mlir.kernels.gemm.matmul` takes it.
    """
    from lego_mlir.kernels import matmul

    m, n, k = product.m, product.n, product.k
    kernel: Kernel = matmul(
        m,
        n,
        k,
        product.dtype,
        out=product.out,
        a=layout_of(product.a, m, k),
        b=layout_of(product.b, k, n),
        c=layout_of(product.c, m, n),
        config=config,
        schedule=variant or None,
        target=target,
        promote=promote,
    )
    return kernel


def layout_of(order: Order, rows: int, columns: int) -> Layout:
    """Where the elements of a matrix lie."""
    from lego_mlir import Col, OrderBy, Row

    return OrderBy((Row if order == "row" else Col)(rows, columns))


SQUARES = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)

OTHERS = (
    (4096, 4096, 1024),
    (8192, 1024, 8192),
    (2112, 7168, 2048),
    (128, 7168, 16384),
    (64, 4096, 4096),
    (16, 8192, 8192),
    (4864, 4096, 8192),
    (4097 * 8, 2048, 2048),
)
"""Sizes of language models, thin and odd ones among them."""

CASES = (
    *(multiplied(n, n, n, "f16", t) for n in SQUARES for t in TRANSPOSES),
    *(multiplied(m, n, k, "f16", t) for m, n, k in OTHERS for t in ("NN", "NT")),
    multiplied(4096, 4096, 4096, c="col"),
    *(multiplied(n, n, n, "bf16", t) for n in (512, 1024, 4096, 8192) for t in TRANSPOSES[:2]),
    *(multiplied(n, n, n, "f8E4M3FN", "NT") for n in (1024, 2048, 4096, 8192)),
    multiplied(4096, 4096, 4096, "f8E5M2", "NT"),
    *(multiplied(n, n, n, "i8", "NT") for n in (1024, 2048, 4096, 8192)),
    *(
        multiplied(n, n, n, "f16", t, variant="hmma")
        for n in (512, 1024, 2048, 4096, 8192)
        for t in TRANSPOSES
    ),
    *(
        multiplied(4096, 4096, 4096, dtype, "NT", variant="hmma")
        for dtype in ("bf16", "i8")  # of fp8 Hopper has only wgmma; ptxas emulates mma.sync
    ),
)
