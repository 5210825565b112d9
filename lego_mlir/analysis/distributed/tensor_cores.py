"""The layouts of what tensor cores read from and leave in registers.

Each constructor covers a whole tile: the warps, or warpgroups, of a CTA divide the tile into equal
contiguous parts, and each part is a grid of instructions. A thread's registers are numbered by
instruction first, row of instructions by row, then as the instruction numbers them. So an
accumulator of 16-bit elements and the operand A of the next instruction are one layout.

With p elements in a 32-bit register (p = 32 / bits), g = lane / 4 and t = lane % 4:

    accumulator     row g + 8 (c / 2 % 2)    column 2 t + c % 2           register c of 4
    operand A       row g + 8 (a / p % 2)    k = p t + a % p + 4 p (a / 2p)    a of 4 p
    operand B       k = p t + b % p + 4 p (b / p)    column g             b of 2 p
"""

from __future__ import annotations

from lego_mlir.analysis.distributed.factors import Factor, replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import (
    MMA_COLUMNS,
    MMA_ROWS,
    WARPGROUP_WARPS,
    WGMMA_COLUMNS,
    WGMMA_ROWS,
)

Shape2 = tuple[int, int]


def mma_accumulator(shape: Shape2, warps: Shape2 = (1, 1)) -> DistributedLayout:
    """Return the layout of an accumulator of `mma.sync.m16n8k*`, for every type of 32 bits.

    Args:
        shape: rows and columns of the tile.
        warps: how many warps divide the rows and the columns; warps are numbered row by row.

    Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", accumulators;
    m16n8k8 and m16n8k32 have the same.

    Raises:
        LegoError: the parts of the warps are no multiples of 16 by 8.
    """
    rows, columns = _parts("mma.m16n8", shape, warps, (MMA_ROWS, MMA_COLUMNS), "warp")
    return DistributedLayout.of(
        shape,
        warps=[Factor(0, warps[0], rows), Factor(1, warps[1], columns)],
        lanes=[Factor(0, 8, 1), Factor(1, 4, 2)],
        registers=_accumulator(rows // MMA_ROWS, MMA_ROWS, columns),
    )


def mma_operand_a(shape: Shape2, bits: int, warps: Shape2 = (1, 1)) -> DistributedLayout:
    """Return the layout of operand A of `mma.sync.m16n8kK`, with K = 256 / bits.

    Args:
        shape: rows and depth (k) of the tile.
        bits: of an element: 8, 16 or 32 (tf32), for m16n8k32, m16n8k16 and m16n8k8.
        warps: as for the accumulator: warps along its columns hold copies.

    Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" (tf32), "k16" and "k32", A.

    Raises:
        LegoError: there is no such element, or the parts are no multiples of 16 by K.
    """
    packed = _packed(bits)
    owner = f"operand A of mma.m16n8k{8 * packed}"
    rows, depth = _parts(owner, shape, (warps[0], 1), (MMA_ROWS, 8 * packed), "warp")
    return DistributedLayout.of(
        shape,
        warps=[Factor(0, warps[0], rows), replicas(warps[1])],
        lanes=[Factor(0, 8, 1), Factor(1, 4, packed)],
        registers=_operand_a(rows // MMA_ROWS, MMA_ROWS, depth, packed),
    )


def mma_operand_b(shape: Shape2, bits: int, warps: Shape2 = (1, 1)) -> DistributedLayout:
    """Return the layout of operand B of `mma.sync.m16n8kK`, with K = 256 / bits.

    Args:
        shape: depth (k) and columns of the tile.
        bits: of an element: 8, 16 or 32 (tf32).
        warps: as for the accumulator: warps along its rows hold copies.

    Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" (tf32), "k16" and "k32", B.

    Raises:
        LegoError: there is no such element, or the parts are no multiples of K by 8.
    """
    packed = _packed(bits)
    owner = f"operand B of mma.m16n8k{8 * packed}"
    depth, columns = _parts(owner, shape, (1, warps[1]), (8 * packed, MMA_COLUMNS), "warp")
    return DistributedLayout.of(
        shape,
        warps=[replicas(warps[0]), Factor(1, warps[1], columns)],
        lanes=[Factor(1, 8, 1), Factor(0, 4, packed)],
        registers=[
            Factor(1, columns // MMA_COLUMNS, MMA_COLUMNS),
            Factor(0, depth // (4 * packed), 4 * packed),
            Factor(0, packed, 1),
        ],
    )


def wgmma_accumulator(shape: Shape2, warpgroups: Shape2 = (1, 1)) -> DistributedLayout:
    """Return the layout of an accumulator of `wgmma.mma_async.m64nNk*`.

    N is the number of columns of a warpgroup: 8 to 256 in steps of 8, so not only powers of two.

    Args:
        shape: rows and columns of the tile.
        warpgroups: how many warpgroups divide the rows and the columns.

    Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", accumulator D.

    Raises:
        LegoError: the rows of a warpgroup are no multiple of 64, or its columns no such N.
    """
    tile = (WGMMA_ROWS, MMA_COLUMNS)
    rows, columns = _parts("wgmma.m64nN", shape, warpgroups, tile, "warpgroup")
    if columns not in WGMMA_COLUMNS:
        raise LegoError(
            f"wgmma has 8 to 256 columns, not {columns}",
            hint="divide the tile by columns, into several accumulators or among warpgroups",
        )
    return DistributedLayout.of(
        shape,
        warps=[
            Factor(0, warpgroups[0], rows),
            Factor(1, warpgroups[1], columns),
            Factor(0, WARPGROUP_WARPS, 16),
        ],
        lanes=[Factor(0, 8, 1), Factor(1, 4, 2)],
        registers=_accumulator(rows // WGMMA_ROWS, WGMMA_ROWS, columns),
    )


def wgmma_operand_a(shape: Shape2, bits: int, warpgroups: Shape2 = (1, 1)) -> DistributedLayout:
    """Return the layout of operand A of `wgmma` in registers, 64×K with K = 256 / bits.

    Args:
        shape: rows and depth (k) of the tile.
        bits: of an element: 8, 16 or 32 (tf32).
        warpgroups: as for the accumulator: warpgroups along its columns hold copies.

    Source: PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk8", "k16" and "k32", A.

    Raises:
        LegoError: there is no such element, or the parts are no multiples of 64 by K.
    """
    packed = _packed(bits)
    owner = f"operand A of wgmma.m64nNk{8 * packed}"
    tile = (WGMMA_ROWS, 8 * packed)
    rows, depth = _parts(owner, shape, (warpgroups[0], 1), tile, "warpgroup")
    return DistributedLayout.of(
        shape,
        warps=[
            Factor(0, warpgroups[0], rows),
            replicas(warpgroups[1]),
            Factor(0, WARPGROUP_WARPS, 16),
        ],
        lanes=[Factor(0, 8, 1), Factor(1, 4, packed)],
        registers=_operand_a(rows // WGMMA_ROWS, WGMMA_ROWS, depth, packed),
    )


def _accumulator(repeats: int, distance: int, columns: int) -> list[Factor]:
    """Return the register factors of an accumulator, its instructions `distance` rows apart."""
    return [
        Factor(0, repeats, distance),
        Factor(1, columns // MMA_COLUMNS, MMA_COLUMNS),
        Factor(0, 2, 8),
        Factor(1, 2, 1),
    ]


def _operand_a(repeats: int, distance: int, depth: int, packed: int) -> list[Factor]:
    """Return the register factors of operand A, its instructions `distance` rows apart."""
    return [
        Factor(0, repeats, distance),
        Factor(1, depth // (4 * packed), 4 * packed),
        Factor(0, 2, 8),
        Factor(1, packed, 1),
    ]


def _packed(bits: int) -> int:
    """Return how many elements a 32-bit register of an operand holds."""
    if bits not in (8, 16, 32):
        raise LegoError(f"tensor cores take elements of 8, 16 or 32 bits, not {bits}")
    return 32 // bits


def _parts(owner: str, shape: Shape2, parts: Shape2, tile: Shape2, who: str) -> Shape2:
    """Return the shape that each warp or warpgroup has, a multiple of the instruction's tile."""
    given: tuple[tuple[int, ...], ...] = (shape, parts)
    if any(len(sizes) != 2 for sizes in given):
        raise LegoError(
            f"{owner}: a tile {list(shape)} and {who}s {list(parts)} have two dimensions each"
        )
    for dim, (n, p, t) in enumerate(zip(shape, parts, tile, strict=True)):
        if p < 1 or n < 1 or n % (p * t):
            raise LegoError(
                f"{owner}: dimension {dim} of the tile {list(shape)} is no multiple of {p} "
                f"{who}s times {t}"
            )
    return shape[0] // parts[0], shape[1] // parts[1]
