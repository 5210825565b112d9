"""What is measured: movements of data; `bench.gemm.cases` has the products.

A new case is one more value in `CASES`; nothing else has to know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bench.gemm.groups import Groups
from bench.gemm.product import Product
from bench.movement import Order, Permute

if TYPE_CHECKING:
    from lego_mlir import Kernel

COPIES = ("memcpy", "copy kernel")
"""The peers that only copy the bytes: the faster of them is the limit."""

PEERS = (*COPIES, "torch eager", "torch.compile")


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel of ours, what it must compute, and whom it is compared with.

    Attributes:
        name: unique; also the name of its file in a bundle.
        make: gives the kernel, traced, that is best for a GPU architecture. Its arguments are the
            inputs and the output.
        dtype: element type of the inputs.
        reference: what the output must be.
        variant: which of several kernels for the same work; empty where the choice is left to the
            kernel library. The figure shows the cases that leave it.
        peers: names from `bench.peers.PEERS`.
        alternatives: gives, for a GPU architecture, other kernels of ours that do the same work and
            are measured beside the first, by name.
    """

    name: str
    make: Callable[[str], Kernel]
    dtype: str
    reference: Permute | Product | Groups
    variant: str = ""
    peers: tuple[str, ...] = PEERS
    alternatives: Callable[[str], dict[str, Kernel]] | None = None


def transposed(
    m: int,
    n: int,
    dtype: str = "f32",
    *,
    source: Order = "row",
    target: Order = "row",
    variant: str = "",
    peers: tuple[str, ...] = PEERS,
) -> Case:
    """A transpose of an m×n matrix.

    Args:
        m: rows of the input.
        n: columns of the input.
        dtype: element type.
        source: where the input's elements lie.
        target: where the output's elements lie.
        variant: as `lego_mlir.kernels.permute.transpose` takes it; empty for its own choice.
        peers: whom to compare with.
    """
    orders = "" if source == target == "row" else f"_{source}_{target}"
    name = f"transpose_{dtype}_{m}x{n}{orders}{variant and '_' + variant}"
    make = partial(_transpose, m, n, dtype, source, target, variant)
    reference = Permute((m, n), source=source, target=target)
    return Case(name, make, dtype, reference, variant, peers)


def _transpose(
    m: int, n: int, dtype: str, source: Order, target: Order, variant: str, _: str
) -> Kernel:
    from lego_mlir import Col, OrderBy
    from lego_mlir.kernels import transpose

    a = OrderBy(Col(m, n)) if source == "col" else None
    b = OrderBy(Col(n, m)) if target == "col" else None
    return transpose(m, n, dtype, a=a, b=b, variant=variant or None)


def permuted(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "f32") -> Case:
    """A tensor with its dimensions in another order, row-major both."""
    name = f"permute_{dtype}_{'x'.join(map(str, shape))}_{''.join(map(str, axes))}"
    return Case(name, partial(_permute, shape, axes, dtype), dtype, Permute(shape, axes))


def _permute(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, _: str) -> Kernel:
    from lego_mlir.kernels import permute

    return permute(shape, axes, dtype)


_SQUARES = tuple((n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 16384))
_ORDERS: tuple[tuple[Order, Order], ...] = (("row", "col"), ("col", "row"), ("col", "col"))
_SAME_ALGORITHM = {"naive": ("nvcc naive",), "shared": ("nvcc coalesced", "nvcc padded")}
_SIZES = (*_SQUARES, (8192, 2048), (4099, 8191))

CASES = (
    *(transposed(m, n, dtype) for dtype in ("f32", "f16", "i8") for m, n in _SIZES),
    *(transposed(m, n, "f64") for m, n in ((1024, 1024), (8192, 8192))),
    *(transposed(m, n, "i8") for m, n in ((96, 160), (1000, 1001))),
    *(transposed(4096, 4096, source=a, target=b) for a, b in _ORDERS),
    *(permuted((64, 512, 768), axes, "f16") for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0))),
    *(
        transposed(n, n, variant=variant, peers=COPIES + peers)
        for n in (2048, 8192)
        for variant, peers in _SAME_ALGORITHM.items()
    ),
)
