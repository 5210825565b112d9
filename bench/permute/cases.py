"""The data movements that are measured: transposes of matrices and permutations of tensors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench.case import COPIES, Case, Order
from bench.permute.reference import PermuteReference

if TYPE_CHECKING:
    from lego_mlir import Kernel

PEERS = (*COPIES, "torch eager", "torch.compile")


def transpose_case(
    m: int,
    n: int,
    dtype: str = "f32",
    *,
    source: Order = "row",
    target: Order = "row",
    variant: str = "",
    peers: tuple[str, ...] = PEERS,
) -> Case:
    """Return the case that transposes an m×n matrix.

    Args:
        m: rows of the input.
        n: columns of the input.
        dtype: element type.
        source: memory order of the input.
        target: memory order of the output.
        variant: as `lego_mlir.kernels.permute.transpose` takes it; empty if the library chooses.
        peers: what to compare with.
    """
    orders = "" if source == target == "row" else f"_{source}_{target}"
    name = f"transpose_{dtype}_{m}x{n}{orders}{variant and '_' + variant}"
    make = partial(_transpose, m, n, dtype, source, target, variant)
    reference = PermuteReference((m, n), source=source, target=target)
    return Case(name, make, dtype, reference, variant, peers)


def _transpose(
    m: int, n: int, dtype: str, source: Order, target: Order, variant: str, _: str
) -> Kernel:
    from lego_mlir import Col, OrderBy
    from lego_mlir.kernels import transpose

    a = OrderBy(Col(m, n)) if source == "col" else None
    b = OrderBy(Col(n, m)) if target == "col" else None
    return transpose(m, n, dtype, a=a, b=b, variant=variant or None)


def permute_case(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "f32") -> Case:
    """Return the case that permutes the dimensions of a row-major tensor."""
    name = f"permute_{dtype}_{'x'.join(map(str, shape))}_{''.join(map(str, axes))}"
    make = partial(_permute, shape, axes, dtype)
    return Case(name, make, dtype, PermuteReference(shape, axes), peers=PEERS)


def _permute(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str, _: str) -> Kernel:
    from lego_mlir.kernels import permute

    return permute(shape, axes, dtype)


_SHORT: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((64, 3, 512, 512), (0, 2, 3, 1)),
    ((64, 512, 512, 3), (0, 3, 1, 2)),
    ((16, 20, 384, 384), (0, 2, 3, 1)),
    ((5, 8388608), (1, 0)),
    ((8388608, 5), (1, 0)),
    ((128, 96, 1024, 4), (0, 2, 1, 3)),
)
"""With short dimensions: channels of images, few rows, few columns."""

_SQUARES = tuple((n, n) for n in (256, 512, 1024, 2048, 4096, 8192, 16384))
_ORDERS: tuple[tuple[Order, Order], ...] = (("row", "col"), ("col", "row"), ("col", "col"))
_SAME_ALGORITHM = {"naive": ("nvcc naive",), "shared": ("nvcc coalesced", "nvcc padded")}
_SIZES = (*_SQUARES, (8192, 2048), (4099, 8191))

CASES = (
    *(transpose_case(m, n, dtype) for dtype in ("f32", "f16", "i8") for m, n in _SIZES),
    *(transpose_case(m, n, "f64") for m, n in ((1024, 1024), (8192, 8192))),
    *(transpose_case(m, n, "i8") for m, n in ((96, 160), (1000, 1001))),
    *(transpose_case(4096, 4096, source=a, target=b) for a, b in _ORDERS),
    *(permute_case((64, 512, 768), axes, "f16") for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0))),
    *(permute_case(*shape, dtype) for shape in _SHORT for dtype in ("f32", "f16", "i8")),
    *(
        transpose_case(n, n, variant=variant, peers=COPIES + peers)
        for n in (2048, 8192)
        for variant, peers in _SAME_ALGORITHM.items()
    ),
)
