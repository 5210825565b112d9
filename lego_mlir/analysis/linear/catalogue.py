"""Named linear layouts and the two families they fall into (papers/linear_layouts, section 4.3).

A distributed layout says where the registers of threads hold a tensor, from `register`, `lane`
and `warp` to its dimensions; a memory layout says where memory does, from `offset` to the same.
A tensor's dimensions are `dim0, dim1, ...` unless named otherwise, and like everything in a linear
layout stand fastest first: a matrix is (dim1, dim0), or (j, i).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul

from lego_mlir.algebra.verification.verdict import Verdict
from lego_mlir.analysis.linear import f2
from lego_mlir.analysis.linear.layout import LinearLayout, identity
from lego_mlir.analysis.linear.spaces import dim, dims_text, join, split
from lego_mlir.analysis.linear.translation import axes
from lego_mlir.diagnostics import LegoError

REGISTER, LANE, WARP, OFFSET = "register", "lane", "warp", "offset"


# The families.
def is_distributed(layout: LinearLayout) -> Verdict:
    """Return whether it is a distributed layout (Definition 4.10).

    That is a surjective map from registers, lanes and warps whose columns have at most one bit
    set, no two of them the same: a permutation matrix with zero columns in between.
    """
    strange = [d.name for d in layout.inputs if d.name not in (REGISTER, LANE, WARP)]
    if strange:
        return _no(f"{', '.join(strange)} is none of {REGISTER}, {LANE} and {WARP}")
    wide = [c for c in layout.columns if c.bit_count() > 1]
    if wide:
        return _no(f"a column maps to {layout.image_text(wide[0])}: more than one bit")
    images = [c for c in layout.columns if c]
    twice = [c for c in images if images.count(c) > 1]
    if twice:
        return _no(f"two columns map to {layout.image_text(twice[0])}")
    if not layout.is_surjective:
        return _no(f"it does not reach all of ({dims_text(layout.outputs)})")
    return _yes("a permutation matrix, with zero columns where elements are held more than once")


def is_memory(layout: LinearLayout) -> Verdict:
    """Return whether it is a memory layout (Definition 4.14).

    That is an invertible map whose columns have one or two bits set.
    """
    if not layout.is_invertible:
        return _no(f"it is no bijection to ({dims_text(layout.outputs)})")
    wide = [c for c in layout.columns if c.bit_count() > 2]
    if wide:
        return _no(f"a column maps to {layout.image_text(wide[0])}: more than two bits")
    return _yes("a bijection whose columns have one or two bits set")


def _yes(detail: str) -> Verdict:
    return Verdict(True, "construction", detail)


def _no(detail: str) -> Verdict:
    return Verdict(False, "construction", detail)


def _order(owner: str, shape: Sequence[int], order: Sequence[int] | None) -> tuple[int, ...]:
    """Return the order of the dimensions, fastest first."""
    rank = len(shape)
    checked = tuple(range(rank))[::-1] if order is None else tuple(order)
    if not checked or sorted(checked) != list(range(rank)):
        raise LegoError(f"{owner}: {list(checked)} is no order of {rank} dimensions, {list(shape)}")
    return checked


# Distributed layouts.
def blocked(
    shape: Sequence[int],
    registers: Sequence[int],
    lanes: Sequence[int],
    warps: Sequence[int],
    order: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> LinearLayout:
    """Return a blocked layout (Proposition 4.6): register tiles in lane tiles in warp tiles.

    A tensor larger than the tile is covered by more registers; in a smaller one, lanes and warps
    hold the same elements.

    Args:
        shape: of the tensor.
        registers: elements that a thread holds next to each other, by dimension.
        lanes: lanes of a warp, by dimension.
        warps: warps of a block, by dimension.
        order: the dimensions, fastest first; by default the last is the fastest.
        names: of the dimensions.

    Raises:
        LegoError: not one size a dimension, none that is a power of two, or no such order.
    """
    tensor, order = axes(len(shape), names), _order("blocked", shape, order)
    parts = {REGISTER: registers, LANE: lanes, WARP: warps}
    for part, sizes in parts.items():
        if len(sizes) != len(shape):
            raise LegoError(f"blocked: {part} has sizes {list(sizes)}, the tensor {list(shape)}")
    tile = reduce(mul, (identity(p, tensor[k], n[k]) for p, n in parts.items() for k in order))
    return _fitted(tile, shape, order, tensor)


def _fitted(
    tile: LinearLayout, shape: Sequence[int], order: Sequence[int], names: Sequence[str]
) -> LinearLayout:
    """Return the tile repeated by registers until it covers the tensor, and cut to it."""
    bits = {d.name: d.bits for d in tile.outputs}
    for k in order:
        missing = dim(names[k], shape[k]).bits - bits[names[k]]
        tile = tile * identity(REGISTER, names[k], 1 << max(0, missing))
    tile = tile.with_outputs(*reversed(names))
    cut = tuple(dim(name, size) for name, size in reversed(list(zip(names, shape, strict=True))))
    columns = []
    for column in tile.columns:
        coordinates = split(column, tile.outputs)
        inside = all(x < d.size for x, d in zip(coordinates, cut, strict=True))
        columns.append(join(coordinates, cut) if inside else 0)
    return LinearLayout(tile.inputs, cut, tuple(columns))


def mma_accumulator(names: Sequence[str] | None = None) -> LinearLayout:
    """Return the accumulator of `mma.m16n8`, 16×8: what every shape of that instruction gives.

    Source: Proposition 9.2; PTX ISA, "Matrix fragments for mma.m16n8k16".
    """
    i, j = axes(2, names)
    return (
        identity(REGISTER, j, 2)
        * identity(LANE, j, 4)
        * identity(LANE, i, 8)
        * identity(REGISTER, i, 2)
    )


def mma_lhs(bits: int, names: Sequence[str] | None = None) -> LinearLayout:
    """Return the left operand of `mma.m16n8`, 16×K with K = 256 / bits.

    Args:
        bits: of an element: 4, 8, 16 or 32 (tf32).
        names: of its rows and columns.

    Source: Proposition 9.2; PTX ISA, "Matrix fragments for mma.m16n8k8", "k16", "k32", "k64".

    Raises:
        LegoError: there is no such element.
    """
    i, j = axes(2, names)
    return (
        identity(REGISTER, j, _packed(bits))
        * identity(LANE, j, 4)
        * identity(LANE, i, 8)
        * identity(REGISTER, i, 2)
        * identity(REGISTER, j, 2)
    )


def mma_rhs(bits: int, names: Sequence[str] | None = None) -> LinearLayout:
    """Return the right operand of `mma.m16n8`, K×8 with K = 256 / bits.

    It is the left one's upper half, transposed. The paper prints its last factor as going to the
    columns; by the PTX ISA it goes to the rows.

    Args:
        bits: of an element: 4, 8, 16 or 32 (tf32).
        names: of its rows and columns.

    Source: Proposition 9.2; PTX ISA, "Matrix fragments for mma.m16n8k8", "k16", "k32", "k64".

    Raises:
        LegoError: there is no such element.
    """
    i, j = axes(2, names)
    tile = (
        identity(REGISTER, i, _packed(bits))
        * identity(LANE, i, 4)
        * identity(LANE, j, 8)
        * identity(REGISTER, i, 2)
    )
    return tile.with_outputs(j, i)


def wgmma_accumulator(columns: int, names: Sequence[str] | None = None) -> LinearLayout:
    """Return the accumulator of `wgmma.m64nN`, 64×`columns` over four warps.

    Source: Proposition 9.2; PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16", D.

    Raises:
        LegoError: the columns are no power of two from 8 to 256.
    """
    i, j = axes(2, names)
    if not 8 <= columns <= 256:
        raise LegoError(f"wgmma has 8 to 256 columns, not {columns}")
    dim(j, columns)
    repeats = identity(REGISTER, j, columns // 8)
    return mma_accumulator(names) * repeats * identity(WARP, i, 4)


def wgmma_lhs(bits: int, names: Sequence[str] | None = None) -> LinearLayout:
    """Return the left operand of `wgmma` in registers, 64×K with K = 256 / bits, over four warps.

    Source: Proposition 9.2; PTX ISA, "Register fragments for wgmma.mma_async.m64nNk16", A.

    Raises:
        LegoError: there is no such element.
    """
    i, _ = axes(2, names)
    return mma_lhs(bits, names) * identity(WARP, i, 4)


def _packed(bits: int) -> int:
    """Return how many elements a 32-bit register of an operand holds."""
    if bits not in (4, 8, 16, 32):
        raise LegoError(f"mma takes elements of 4, 8, 16 or 32 bits, not {bits}")
    return 32 // bits


def copies(layout: LinearLayout) -> dict[str, tuple[int, ...]]:
    """Return the bits of each input that change nothing: who holds copies of the same elements.

    For the lanes and warps among them one of the copies is enough to store (section 5.1).
    """
    images = iter(layout.columns)
    found = {d.name: tuple(k for k in range(d.bits) if next(images) == 0) for d in layout.inputs}
    return {name: bits for name, bits in found.items() if bits}


# Memory layouts.
def unswizzled(
    shape: Sequence[int], order: Sequence[int] | None = None, names: Sequence[str] | None = None
) -> LinearLayout:
    """Return a tensor that lies in memory dimension by dimension.

    Args:
        shape: of the tensor.
        order: the dimensions, fastest first; by default the last is the fastest: row-major.
        names: of the dimensions.

    Raises:
        LegoError: a size is no power of two, or there is no such order.
    """
    tensor, order = axes(len(shape), names), _order("unswizzled", shape, order)
    layout = reduce(mul, (identity(OFFSET, tensor[k], shape[k]) for k in order))
    return layout.with_outputs(*reversed(tensor))


def swizzled(
    shape: Sequence[int],
    vec: int,
    per_phase: int,
    max_phase: int,
    names: Sequence[str] | None = None,
) -> LinearLayout:
    """Return a matrix whose rows' chunks of `vec` elements are XORed with the row's phase.

    Definition 4.11, turned around: from offsets to coordinates, the matrix [I C; 0 I] after
    Proposition 4.12. Phases beyond a row's chunks wrap around, as its `mod 2^n` says.

    Args:
        shape: rows and columns.
        vec: elements of a chunk.
        per_phase: rows that share a phase.
        max_phase: number of phases.
        names: of rows and columns.

    Raises:
        LegoError: a size or parameter is no power of two, or there are not two dimensions.
    """
    if len(shape) != 2:
        raise LegoError(f"swizzled: a matrix has two dimensions, not {len(shape)}: {list(shape)}")
    for name, n in (("vec", vec), ("per_phase", per_phase), ("max_phase", max_phase)):
        dim(name, n)
    plain = unswizzled(shape, names=names)
    columns, rows = plain.outputs
    moved = [vec * ((1 << k) // per_phase % max_phase) % columns.size for k in range(rows.bits)]
    images = (1 << (columns.bits + k) | c for k, c in enumerate(moved))
    return LinearLayout(plain.inputs, plain.outputs, (*f2.identity(columns.bits), *images))
