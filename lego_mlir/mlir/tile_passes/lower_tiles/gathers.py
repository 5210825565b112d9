"""Gathers and scatters: each thread accesses the elements at the indices that it holds.

    %v = "lego.gather"(%x, %rows, %columns) {layout = #X} : ... -> tensor<32x64xf32, #D>

Where registers have neighbouring columns of one row, `lego.load_parts` loads them together:

    %row = arith.index_cast %rows0 : i32 to index
    %v0 = "lego.load_parts"(%x, %row, %column)
        {layout = #X, registers = array<i64: 1, 4, 1>, in_bounds, ...}

Elements that a lego.restrict of an index makes invalid are not accessed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Sym
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.lowering.accesses import constant, zero
from lego_mlir.mlir.lowering.parts_access.lanes import Lane, element, grouped, lanes_of, source_of
from lego_mlir.mlir.lowering.parts_access.masks import MaskElement
from lego_mlir.mlir.lowering.parts_access.masks import elements as mask_elements
from lego_mlir.mlir.tile_ir.types import bytes_of, element_of
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import (
    Fragment,
    once,
    part_types,
    repeated,
    without_copies,
)
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads


@dataclass(frozen=True, slots=True)
class _Index:
    """An index along one dimension: a value and what is added to it.

    Attributes:
        base: of type index, an element of i32, or `None`.
        constant: added to it.
    """

    base: Lane | None
    constant: int

    def value(self) -> Any:
        """Build the index."""
        if self.base is None:
            return build.index(self.constant)
        x = element(self.base)
        if not isinstance(x.type, ir.IndexType):
            x = build.make("arith.index_cast", ir.IndexType.get(), x)
        return build.binary("addi", x, build.index(self.constant)) if self.constant else x


@dataclass(frozen=True, slots=True)
class _Run:
    """Registers whose elements are accessed together.

    Attributes:
        first: the first of them.
        count: their number.
        dim: along which they are neighbours.
        index: of the first element.
        mask: whether they are accessed, the same for all; `None` for always.
    """

    first: int
    count: int
    dim: int
    index: tuple[_Index, ...]
    mask: MaskElement | None

    @property
    def factors(self) -> list[tuple[int, int, int]]:
        """The register factors of their access."""
        return [(self.dim, self.count, 1)] if self.count > 1 else []

    def truth(self) -> Any | None:
        """Build whether they are accessed; `None` for always."""
        return None if self.mask is None else element(self.mask.lane)


def lower_gather(
    op: Any, indices: Sequence[Fragment], masks: Sequence[Fragment], layout: DistributedLayout
) -> Fragment:
    """Build a gather by the threads.

    Args:
        op: a lego.gather.
        indices: the fragments of its indices, all in the layout of the result.
        masks: which elements are valid, of those indices that say so.
        layout: of the result.
    """
    buffer, own = op.operands[0], without_copies(layout)
    sizes = _sizes(op)
    kind = element_of(op.results[0])
    lanes: list[Lane] = []
    for run in _runs(indices, masks, MAX_ACCESS_BYTES // bytes_of(kind)):
        unit = build.vector_type(run.count, kind)

        def read(run: _Run = run, unit: Any = unit) -> Any:
            index = [*(x.value() for x in run.index), *sizes]
            layout = op.attributes[dialect.LAYOUT]
            return tiles.load_parts([unit], buffer, index, layout, run.factors, in_bounds=True)[0]

        truth = run.truth()
        if truth is None:
            lanes += lanes_of([read()])
            continue
        branch = _branch(truth, [unit])
        with ir.InsertionPoint(branch.regions[0].blocks.append()):
            ir.Operation.create("scf.yield", operands=[read()])
        with ir.InsertionPoint(branch.regions[1].blocks.append()):
            ir.Operation.create("scf.yield", operands=[constant(unit, zero(kind))])
        lanes += lanes_of(list(branch.results))
    parts = grouped(lanes, part_types(own, kind))
    return repeated(Fragment(own, tuple(parts)), layout)


def lower_scatter(
    op: Any,
    tile: Fragment,
    indices: Sequence[Fragment],
    masks: Sequence[Fragment],
    threads: Threads,
) -> None:
    """Build a scatter by the threads; of those with the same element one stores or updates it.

    Args:
        op: a lego.scatter.
        tile: what is stored.
        indices: the fragments of its indices, all in the layout of the tile.
        masks: which elements are valid, of those tiles that say so.
        threads: those of the kernel.
    """
    buffer, layout, sizes = op.operands[1], op.attributes[dialect.LAYOUT], _sizes(op)
    by = tiles.kind_of(op) if tiles.KIND in op.attributes else None
    lanes = lanes_of(once(tile).parts)
    widest = MAX_ACCESS_BYTES // bytes_of(tile.element) if by is None else 1
    number = next(threads.scatters)
    with where(threads.is_first_copy(without_copies(tile.layout))):
        for run in _runs(indices, masks, widest):
            held = lanes[run.first : run.first + run.count]
            (value,) = grouped(held, [build.vector_type(run.count, tile.element)])
            truth = run.truth()
            branch = None if truth is None else _branch(truth, [])
            inside = None if branch is None else branch.regions[0].blocks.append()
            with ir.InsertionPoint.current if inside is None else ir.InsertionPoint(inside):
                index = [*(x.value() for x in run.index), *sizes]
                if by is None:
                    tiles.store_parts(
                        [value],
                        buffer,
                        index,
                        layout,
                        run.factors,
                        in_bounds=True,
                        scatter=number,
                    )
                else:
                    dialect.atomic(by, value, buffer, index, {dialect.LAYOUT: layout})
                if inside is not None:
                    ir.Operation.create("scf.yield")


def _sizes(op: Any) -> list[Any]:
    """Return the values of the symbols of an access's layout, which stand behind the indices."""
    return [x for x in op.operands if isinstance(x.type, ir.IndexType)]


def _branch(truth: Any, kinds: Sequence[Any]) -> Any:
    """Build an empty scf.if that threads take differently."""
    return ir.Operation.create(
        "scf.if",
        results=list(kinds),
        operands=[truth],
        attributes={dialect.DIVERGENT: ir.UnitAttr.get()},
        regions=2,
    )


def _runs(indices: Sequence[Fragment], masks: Sequence[Fragment], widest: int) -> list[_Run]:
    """Return the accesses of all registers: neighbours together, up to `widest` of them."""
    by_dim = [[_index(lane) for lane in lanes_of(once(x).parts)] for x in indices]
    index = list(zip(*by_dim, strict=True))
    let_through = _joint_masks(masks, len(index))
    runs = []
    first = 0
    while first < len(index):
        dim, count = 0, 1
        for along in range(len(by_dim)):
            n = 1
            while (
                n < widest
                and first + n < len(index)
                and index[first + n] == _moved(index[first], along, n)
                and _same(let_through[first], let_through[first + n])
            ):
                n += 1
            n = 1 << (n.bit_length() - 1)
            dim, count = (along, n) if n > count else (dim, count)
        mask = let_through[first]
        runs.append(_Run(first, count, dim, index[first], mask))
        first += count
    return runs


def _moved(index: tuple[_Index, ...], dim: int, by: int) -> tuple[_Index, ...]:
    """Return an index that lies further along a dimension."""
    return tuple(_Index(x.base, x.constant + by) if k == dim else x for k, x in enumerate(index))


def _same(a: MaskElement | None, b: MaskElement | None) -> bool:
    return (None if a is None else a.key) == (None if b is None else b.key)


def _joint_masks(masks: Sequence[Fragment], count: int) -> list[MaskElement | None]:
    """Build the conjunction of masks for each register; `None` where all are true."""
    if not masks:
        return [None] * count
    parts = list(once(masks[0]).parts)
    for mask in masks[1:]:
        others = once(mask).parts
        parts = [build.binary("andi", a, b) for a, b in zip(parts, others, strict=True)]
    symbols: dict[Any, Sym] = {}

    def read(value: Any) -> Sym:
        return symbols.setdefault(value, Sym(f"index {len(symbols)}"))

    return [None if m.key is True else m for m in mask_elements(parts, read)]


def _index(lane: Lane) -> _Index:
    """Return an element of an index as a value and what is added to it.

    Sums do not wrap around: an index that did would lie outside of the tensor.
    """
    total = 0
    while True:
        lane = source_of(lane)
        value, position = lane
        if isinstance(value, ir.BlockArgument):
            return _Index(lane, total)
        op = value.owner
        if (number := _number(lane)) is not None:
            return _Index(None, total + number)
        match op.name:
            case "arith.addi":
                a, b = ((operand, position) for operand in op.operands)
                known = [(_number(x), y) for x, y in ((a, b), (b, a))]
                constant, rest = next(((n, y) for n, y in known if n is not None), (None, None))
                if constant is None or rest is None or isinstance(value.type, ir.IndexType):
                    return _Index(lane, total)
                total, lane = total + constant, rest
            case "arith.index_cast" if isinstance(op.operands[0].type, ir.IndexType):
                return _Index((op.operands[0], 0), total)
            case _:
                return _Index(lane, total)


def _number(lane: Lane) -> int | None:
    """Return the number that an element is, `None` if it is no constant."""
    value, position = source_of(lane)
    if isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant":
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        return int(attribute[0 if attribute.is_splat else position])
    return int(attribute.value)
