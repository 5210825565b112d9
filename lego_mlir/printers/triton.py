"""Layouts, tiles of offsets and index expressions in Triton.

A slice of a layout, `A[pid_m, k, :, :]`, is a tile of offsets: each `:` becomes a `tl.arange` along
a dimension of its own. Where the tile is a box of a strided tensor, it is a tensor descriptor, too,
and a block pointer for the versions of Triton that have those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from lego_mlir.algebra import partial
from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.parts import make_view
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, construct
from lego_mlir.index.proofs import prover
from lego_mlir.index.width import widest
from lego_mlir.printers.layout_functions import takes_64_bits
from lego_mlir.printers.names import Names
from lego_mlir.printers.python import printed
from lego_mlir.printers.python_writer import TritonWriter
from lego_mlir.printers.values import as_expression, is_list, with_variables
from lego_mlir.printers.writer import ATOM


@dataclass(frozen=True, slots=True)
class TritonTile:
    """A tile of offsets; `str` writes them.

    Attributes:
        offsets: the text of the offsets, which broadcast to the shape of the tile.
        mask: the text of the condition that an offset is of an element; None if all are.
        shape: the sizes of the tile.
    """

    offsets: str
    mask: str | None
    shape: tuple[str, ...]
    _box: Box | LegoError

    def __str__(self) -> str:
        return self.offsets

    @property
    def boundary_check(self) -> tuple[int, ...]:
        """The dimensions that a load of the block pointer has to check: those with padding.

        Raises:
            LegoError: the tile is no box of a strided tensor.
        """
        return self._checked_box().padded

    def block_pointer(self, base: str) -> str:
        """Return the `tl.make_block_ptr` of the tile, for Triton before 3.9.

        Args:
            base: the text of the tensor's pointer.

        Raises:
            LegoError: the tile is no box of a strided tensor; says why.
        """
        box = self._checked_box()
        order = ", ".join(map(str, box.order)) + "," * (len(box.order) == 1)
        return (
            f"tl.make_block_ptr({_moved(base, box.base)}, shape={_listed(box.shape)}, "
            f"strides={_listed(box.strides)}, offsets={_listed(box.offsets)}, "
            f"block_shape={_listed(box.block)}, order=({order}))"
        )

    def descriptor(self, base: str) -> str:
        """Return the `tl.make_tensor_descriptor` of the tensor, with blocks of the tile.

        Its `load` and `store` take `descriptor_offsets`. Its dimensions are those of the tile from
        the slowest to the fastest, so what it loads is the tile once `descriptor_permute` is
        written behind it: `desc.load(offsets).permute(1, 0)` of a column-major tensor.

        Args:
            base: the text of the tensor's pointer.

        Raises:
            LegoError: the tile is no box of a strided tensor with contiguous rows; says why.
        """
        box = self._checked_box()
        dims = box.order[::-1]
        if box.strides[dims[-1]] != "1":
            raise LegoError(
                f"the least stride of the tile is {box.strides[dims[-1]]}: a tensor descriptor "
                "needs stride 1",
                hint="use the offsets, and the mask where there is one",
            )
        shape, strides, block = (
            ", ".join(texts[d] for d in dims) for texts in (box.shape, box.strides, box.block)
        )
        return (
            f"tl.make_tensor_descriptor({_moved(base, box.base)}, shape=[{shape}], "
            f"strides=[{strides}], block_shape=[{block}])"
        )

    @property
    def descriptor_offsets(self) -> str:
        """The list of coordinates at which the tile begins, in the descriptor's dimensions.

        Raises:
            LegoError: the tile is no box of a strided tensor.
        """
        box = self._checked_box()
        return f"[{', '.join(box.offsets[d] for d in box.order[::-1])}]"

    @property
    def descriptor_permute(self) -> str:
        """The text that makes the tile of a block that the descriptor loads; empty if it is it.

        Raises:
            LegoError: the tile is no box of a strided tensor.
        """
        dims = list(self._checked_box().order[::-1])
        if dims == sorted(dims):
            return ""
        return f".permute({', '.join(str(dims.index(d)) for d in range(len(dims)))})"

    def _checked_box(self) -> Box:
        if isinstance(self._box, LegoError):
            raise self._box
        return self._box


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a strided tensor, as texts: the dimensions are those of the tile.

    Attributes:
        base: the offset of the box's first plane, from the dimensions that the tile does not have.
        shape: the sizes of the tensor.
        strides: its strides.
        offsets: the coordinates at which the box begins.
        block: the sizes of the box.
        order: the dimensions from the fastest to the slowest.
        padded: the dimensions along which the box may leave the tensor.
    """

    base: str
    shape: tuple[str, ...]
    strides: tuple[str, ...]
    offsets: tuple[str, ...]
    block: tuple[str, ...]
    order: tuple[int, ...]
    padded: tuple[int, ...]


def to_triton(
    x: Any, name: str = "layout", bits: int | None = None, names: Mapping[str, str] | None = None
) -> Any:
    """Return a layout as a Triton module, a slice as a tile, or an expression as text.

    The module of a layout `A` has the functions `A_apply`, `A_inv`, `A_dims`, `A_size`, and
    `A_mask` if some index has no element, for `triton.jit`. Their first parameters are the symbolic
    sizes.

    Args:
        x: a layout; a slice of one, whose indices may be numbers, expressions or names of
            variables; an index expression, a SymPy expression, or several of these.
        name: what the names of the functions begin with.
        bits: 64 casts the symbols of tiles and expressions to 64 bits, 32 does not; None does so
            if their offsets are known to take more than 32.
        names: texts for symbols, by name.

    Raises:
        LegoError: a name is none in Triton, a tile's size is no power of two, or 64 bits are not
            enough.
    """
    if isinstance(x, Slice):
        return _tile(x, bits, names)
    if is_list(x):
        return type(x)(to_triton(e, name, bits, names) for e in x)
    if isinstance(x, Layout) or bits is None:
        return printed("triton", x, name, names)
    return _writer(names, takes_64_bits((), bits)).write(as_expression(x, "triton"))


def _writer(names: Mapping[str, str] | None, casts: bool) -> TritonWriter:
    return TritonWriter(Names("triton", names), casts=casts)


def _tile(x: Slice, bits: int | None, names: Mapping[str, str] | None) -> Any:
    """Return a slice as a tile, or as one offset if no dimension is whole."""
    x = with_variables(x)
    given = dict(names or {})
    free = []
    for k, n in enumerate(x.shape):
        _check_tile_size(x, n)
        s = Sym(f"whole dimension {k}", 0, construct.sub(n, 1))
        free.append(s)
        size = _writer(names, False).write(n)
        given[s.name] = f"tl.arange(0, {size}){_broadcast(k, len(x.shape))}"
    offset = x.offset(*free)
    width = widest(offset)
    known = width is not None and width >= 1 << 31
    writer = _writer(given, known if bits is None else takes_64_bits((), bits))
    offsets = writer.write(offset)
    if not free:
        return offsets
    mask = x.mask(*free)
    shape = tuple(_writer(names, False).within(n, ATOM) for n in x.shape)
    box: Box | LegoError
    try:
        box = _box_of(x, free, _writer(given, False))
    except LegoError as e:
        box = LegoError(f"'{x}' is no box of a strided tensor: {e.message}", hint=e.hint)
    always = isinstance(mask, int) and mask == 1
    return TritonTile(offsets, None if always else f"({writer.condition(mask)})", shape, box)


def _check_tile_size(x: Slice, n: Int) -> None:
    if isinstance(n, int) and n & (n - 1):
        raise LegoError(
            f"'{x}' is {n} elements wide: the sizes of Triton's tiles are powers of two",
            hint="tile the dimension by a power of two: TileBy([ceildiv(N, 64)], [64])",
        )


def _broadcast(k: int, rank: int) -> str:
    """Return the subscript that puts an arange along dimension `k` of a tile."""
    if rank == 1:
        return ""
    return f"[{', '.join(':' if d == k else 'None' for d in range(rank))}]"


def _box_of(x: Slice, free: list[Sym], writer: TritonWriter) -> Box:
    """Return the box that a slice is.

    Raises:
        LegoError: it is none.
    """
    # The symbol of a dimension of size 1 would be the number 0: here each stays a symbol.
    free = [Sym(s.name, 0, 1) if n == 1 else s for s, n in zip(free, x.shape, strict=True)]
    tensor, shape, at = _tensor(x.layout, x._full(tuple(free)))
    _, _, start = _tensor(x.layout, x._full(tuple(0 for _ in free)))
    modes = tensor.to_strides().stride
    if any(isinstance(m, tuple) for m in modes):
        raise LegoError("a dimension of the tensor has several strides")
    strides = [  # CuTe's stride of a size 1 is 0; here it is the slowest
        tensor.size if n == 1 else m
        for n, m in zip(shape, modes, strict=True)
        if not isinstance(m, tuple)
    ]
    base: Int = 0
    kept: list[int] = []
    for d, (c, first) in enumerate(zip(at, start, strict=True)):
        moved = construct.sub(c, first)
        if isinstance(moved, int):
            base = construct.add(base, construct.mul(first, strides[d]))
        elif len(kept) < len(free) and moved is free[len(kept)]:
            kept.append(d)
        else:
            raise LegoError(
                f"dimension {d} of the tensor is not one dimension of the tile, in order",
                hint="use the offsets, and the mask where there is one",
            )
    if len(kept) < len(free):
        raise LegoError("several dimensions of the tile are one of the tensor")

    def texts(values: Any) -> tuple[str, ...]:
        return tuple(writer.write(v) for v in values)

    limited = [c for c, _ in x.limits(*free)]
    return Box(
        base=writer.write(base),
        shape=texts(shape[d] for d in kept),
        strides=texts(strides[d] for d in kept),
        offsets=texts(start[d] for d in kept),
        block=texts(x.shape),
        order=_order([strides[d] for d in kept]),
        padded=tuple(k for k, d in enumerate(kept) if any(c is at[d] for c in limited)),
    )


def _tensor(layout: Layout, index: Any) -> tuple[Layout, Any, Any]:
    """Return the layout of the tensor by its coordinates, its shape, and those of an index."""
    view = layout.view
    if layout.window is not None:
        raise LegoError("it is a window")
    if view is None or view.kind == "GroupBy":
        return layout, layout.dims, index
    if view.skew is not None:
        raise LegoError("its tiles are skewed")
    shape = layout.tensor_shape
    tensor = Layout(layout.orders, make_view("TileBy", (shape,)))
    return tensor, shape, partial.coordinates(view, index)


def _order(strides: list[Int]) -> tuple[int, ...]:
    """Return the dimensions by growing stride.

    Raises:
        LegoError: which of two is greater is not known.
    """

    def compare(a: int, b: int) -> int:
        for x, y, sign in ((a, b, -1), (b, a, 1)):
            if prover.is_nonnegative(construct.sub(strides[y], strides[x])):
                return sign
        raise LegoError("which of its strides is the least is not known")

    return tuple(sorted(range(len(strides)), key=cmp_to_key(compare)))


def _moved(base: str, by: str) -> str:
    return base if by == "0" else f"{base} + {by}"


def _listed(texts: tuple[str, ...]) -> str:
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"
