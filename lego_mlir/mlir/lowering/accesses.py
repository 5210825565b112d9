"""Loads and stores through a layout: elements, and vectors of them.

A vector access takes a slice of the layout. It becomes as few accesses of memory as is proven:
runs of elements that lie one after another are read as one vector, the rest element by element.
Their alignment is what is proven of the offset and known of the buffer, up to 16 bytes: a vector
that is not known to be aligned is accessed in the parts that are.

Where tiles are partial, what may be padding is accessed under its mask; what is not there reads
as the operation's `other`, or 0.

    %v = "lego.load"(%a, %m, %n, %i) {layout = #A, slice = array<i64: 3>}

becomes, with the rows of a whole tile contiguous,

    %row = vector.load %flat[%base] : memref<4096xf32>, vector<64xf32>
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from math import prod
from typing import Any, TypeAlias, cast

from lego_mlir.algebra import partial
from lego_mlir.algebra.blocks import unflatten
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, construct, substitute
from lego_mlir.index.nodes import Spelled
from lego_mlir.index.polynomial import parts
from lego_mlir.index.proofs.prover import is_nonnegative
from lego_mlir.mlir.bindings import arith, ir, memref, scf, vector
from lego_mlir.mlir.lowering.streamed_loads import STREAMED_BYTES, streamed_load

Print: TypeAlias = Callable[[Int], Any]
"""Makes the operations that compute an expression; their value."""


@dataclass(frozen=True, slots=True)
class Run:
    """Elements that one memory operation accesses.

    Attributes:
        start: the position of its first element in the slice.
        offset: of its first element in memory.
        inside: the mask, 1 where all of them exist and 0 where none does.
    """

    start: int
    offset: Int
    inside: Int


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that all have the same mask.

    Attributes:
        condition: the value of the mask, or a bool where it is known.
        runs: in order.
        offsets: the value of each run's offset; empty if no run exists.
    """

    condition: Any
    runs: Sequence[Run]
    offsets: Sequence[Any]


@dataclass(frozen=True, slots=True)
class LayoutAccess:
    """The memory accesses of one lego.load, lego.store or lego.atomic.

    Attributes:
        piece: the slice of the layout, without dimensions for a single element.
        kind: the type of the value: the element's, or a vector.
        flat: the memory, a buffer of one dimension.
        base: bytes that are known to divide the address of its first element.
        other: the attribute of the value where there is no element; `None` for 0.
        index: prints an expression.
        condition: prints an expression's truth.
        streamed: of elements that are read once, from global memory, the bytes that a load brings
            into the L2 cache; 0 for others.
    """

    piece: Slice
    kind: Any
    flat: Any
    base: int
    other: Any
    index: Print
    condition: Print
    streamed: int = 0
    _printed: dict[Int, tuple[int, Any]] = field(default_factory=dict)

    @property
    def element(self) -> Any:
        """The type of an element."""
        return ir.MemRefType(self.flat.type).element_type

    def offset_value(self, offset: Int) -> Any:
        """Return the value of an offset; offsets that differ by a constant share the rest."""
        if isinstance(offset, Spelled):
            return self.index(offset)
        constant, _ = parts(offset)
        rest = construct.sub(offset, constant)
        if rest not in self._printed:
            self._printed[rest] = constant, self.index(offset)
        known, value = self._printed[rest]
        if constant == known:
            return value
        distance = arith.ConstantOp(ir.IndexType.get(), constant - known).result
        return arith.AddIOp(value, distance).result

    def alignment(self, offset: Int) -> int | None:
        """Return the greatest power of two, in bytes, known to divide an offset's address.

        It is `None` if that is no more than the element's own alignment.
        """
        size = _bytes_of(self.element)
        alignment = self.base
        while alignment > size and not _is_multiple(offset, alignment // size):
            alignment //= 2
        return alignment if alignment > size else None

    def groups(self, runs: Sequence[Run]) -> list[Group]:
        """Group successive runs with the same mask; print their offsets and conditions."""
        found = []
        for inside, same in groupby(runs, key=lambda run: run.inside):
            group = list(same)
            known = bool(inside) if isinstance(inside, int) else None
            offsets = [] if known is False else [self.offset_value(run.offset) for run in group]
            condition = self.condition(inside) if known is None else known
            found.append(Group(condition, group, offsets))
        return found

    def whole(self, runs: Sequence[Run]) -> Any:
        """Return the condition that all runs exist; `None` if testing it saves nothing.

        It tests the elements that are proven to lie furthest out, the last or the first.
        """
        bounds = {run.inside for run in runs if not isinstance(run.inside, int)}
        if len(bounds) < 2 or any(_is_never(run.inside) for run in runs):
            return None
        free = self.piece.symbols
        last = tuple(construct.sub(n, 1) for n in self.piece.shape)
        first = tuple(0 for _ in last)
        limits = (self.piece.limits(*at) for at in (free, last, first))
        outmost = []
        for (c, n), *ends in zip(*limits, strict=True):
            far = [end for end, _ in ends if is_nonnegative(construct.sub(end, c))]
            if not far:
                return None
            outmost.append((far[0], n))
        mask = partial.mask(outmost)
        return None if isinstance(mask, int) else self.condition(mask)

    def runs(self, *, whole: bool = False) -> tuple[int, list[Run]]:
        """Return the number of elements of each run, and the runs in order.

        Args:
            whole: all elements exist, so that runs end only where memory is not contiguous.
        """
        shape = cast("tuple[int, ...]", self.piece.shape)
        width = 1
        if shape and takes_vectors(self.flat.type):
            width = cast("int", self.piece.contiguous) if whole else self.piece.run
        free = self.piece.symbols
        inside = self.piece.mask(*free)
        offset = 0 if _is_never(inside) else _offset(self.piece, free)  # derived once for all runs
        if not free:
            return width, [Run(0, offset, inside)]
        runs = []
        for start in range(0, prod(shape), width):
            at = dict(zip(free, unflatten(shape, start), strict=True))
            runs.append(Run(start, substitute(offset, at), substitute(inside, at)))
        return width, runs


def _offset(piece: Slice, free: tuple[Int, ...]) -> Int:
    """Return `piece.offset`, cached unless the layout calls functions of its module."""
    known = not piece.layout.functions
    return _known_offset(piece, free) if known else cast("Int", piece.offset(*free))


@lru_cache(maxsize=1 << 12)
def _known_offset(piece: Slice, free: tuple[Int, ...]) -> Int:
    return cast("Int", piece.offset(*free))


def load(access: LayoutAccess) -> Any:
    """Build the reads of an access; return its value."""
    width, runs = access.runs()
    unit = access.element if width == 1 else ir.VectorType.get([width], access.element)
    groups, whole = access.groups(runs), access.whole(runs)
    if whole is None:
        return _joined(access.kind, _read_by_groups(access, unit, groups), width)
    guard = scf.IfOp(whole, [unit] * len(runs), has_else=True)
    with ir.InsertionPoint(guard.then_block):
        scf.YieldOp([x for group in groups for x in _read(access, unit, group)])
    with ir.InsertionPoint(guard.else_block):
        scf.YieldOp(_read_by_groups(access, unit, groups))
    return _joined(access.kind, list(guard.results), width)


def store(access: LayoutAccess, value: Any) -> None:
    """Build the writes of a value to memory."""
    width, runs = access.runs()
    groups, whole = access.groups(runs), access.whole(runs)
    if whole is None:
        _write_by_groups(access, groups, _run_values(value, runs, width))
        return
    guard = scf.IfOp(whole, has_else=True)
    with ir.InsertionPoint(guard.then_block):
        wide, together = access.runs(whole=True)
        offsets = [access.offset_value(run.offset) for run in together]
        _write(access, Group(True, together, offsets), _run_values(value, together, wide))
        scf.YieldOp([])
    with ir.InsertionPoint(guard.else_block):
        _write_by_groups(access, groups, _run_values(value, runs, width))
        scf.YieldOp([])


def _read_by_groups(access: LayoutAccess, unit: Any, groups: Sequence[Group]) -> list[Any]:
    """Build the reads of each group under its mask; return the values, `other` where masked."""
    found: list[Any] = []
    for group in groups:
        count = len(group.runs)
        match group.condition:
            case True:
                found += _read(access, unit, group)
            case False:
                found += [_nothing(access, unit)] * count
            case condition:
                guard = scf.IfOp(condition, [unit] * count, has_else=True)
                with ir.InsertionPoint(guard.then_block):
                    scf.YieldOp(_read(access, unit, group))
                with ir.InsertionPoint(guard.else_block):
                    scf.YieldOp([_nothing(access, unit)] * count)
                found += guard.results
    return found


def _write_by_groups(
    access: LayoutAccess, groups: Sequence[Group], values: Mapping[int, Any]
) -> None:
    """Build the writes of each group under its mask."""
    for group in groups:
        match group.condition:
            case True:
                _write(access, group, values)
            case False:
                continue
            case condition:
                guard = scf.IfOp(condition)
                with ir.InsertionPoint(guard.then_block):
                    _write(access, group, values)
                    scf.YieldOp([])


def _read(access: LayoutAccess, unit: Any, group: Group) -> list[Any]:
    if unit == access.element:
        return [memref.LoadOp(access.flat, [offset]).result for offset in group.offsets]
    return [
        _load(access, unit, run, offset)
        for run, offset in zip(group.runs, group.offsets, strict=True)
    ]


def _load(access: LayoutAccess, unit: Any, run: Run, offset: Any) -> Any:
    """Build the load of a run, a vector."""
    alignment = access.alignment(run.offset)
    width = int(ir.VectorType(unit).shape[0]) * _bytes_of(access.element)
    if access.streamed and width == alignment == STREAMED_BYTES:
        constant = 0 if isinstance(run.offset, Spelled) else parts(run.offset)[0]
        start = access.offset_value(construct.sub(run.offset, constant))
        return streamed_load(unit, access.flat, start, constant, access.streamed)
    return vector.LoadOp(unit, access.flat, [offset], alignment=alignment).result


def _write(access: LayoutAccess, group: Group, values: Mapping[int, Any]) -> None:
    for run, offset in zip(group.runs, group.offsets, strict=True):
        value = values[run.start]
        if value.type == access.element:
            memref.StoreOp(value, access.flat, [offset])
        else:
            alignment = access.alignment(run.offset)
            vector.StoreOp(value, access.flat, [offset], alignment=alignment)


def _joined(kind: Any, found: list[Any], width: int) -> Any:
    """Build the value of an access from the values of its runs."""
    if not isinstance(kind, ir.VectorType) or found[0].type == kind:
        return found[0]
    if width == 1:
        return vector.FromElementsOp(kind, found).result
    kind = ir.VectorType(kind)
    row = found[0]
    if len(found) > 1:
        row_type = ir.VectorType.get([width * len(found)], kind.element_type)
        row = constant(row_type, zero(kind.element_type))
        for k, part in enumerate(found):
            row = vector.InsertStridedSliceOp(part, row, [k * width], [1]).result
    return row if row.type == kind else vector.ShapeCastOp(kind, row).result


def _run_values(value: Any, runs: Sequence[Run], width: int) -> dict[int, Any]:
    """Return the value that each run writes, by its start."""
    return {run.start: _run_value(value, run.start, width) for run in runs}


def _run_value(value: Any, start: int, width: int) -> Any:
    """Build the elements of the stored value that belong to one run."""
    if not isinstance(value.type, ir.VectorType):
        return value
    kind = ir.VectorType(value.type)
    total = prod(kind.shape)
    if width == 1:
        return vector.ExtractOp(value, [], list(unflatten(tuple(kind.shape), start))).result
    row_type = ir.VectorType.get([total], kind.element_type)
    row = value if value.type == row_type else vector.ShapeCastOp(row_type, value).result
    if width == total:
        return row
    part = ir.VectorType.get([width], kind.element_type)
    return vector.ExtractStridedSliceOp(part, row, [start], [width], [1]).result


def _nothing(access: LayoutAccess, kind: Any) -> Any:
    """Build the value where there is no element."""
    return constant(kind, zero(access.element) if access.other is None else access.other)


def constant(kind: Any, value: Any) -> Any:
    """Build the constant of type `kind` that equals `value`, or has it as every element."""
    same = getattr(value, "type", None) == kind
    splat = value if same else ir.DenseElementsAttr.get_splat(kind, value)
    return arith.ConstantOp(kind, splat).result


def zero(kind: Any) -> Any:
    """Return the attribute of a type's zero.

    Raises:
        LegoError: it is not an integer, floating-point or vector type.
    """
    match kind:
        case ir.VectorType():
            return ir.DenseElementsAttr.get_splat(kind, zero(kind.element_type))
        case ir.FloatType():
            return ir.FloatAttr.get(kind, 0.0)
        case ir.IntegerType() | ir.IndexType():
            return ir.IntegerAttr.get(kind, 0)
    raise LegoError(
        f"there is no 0 of type {kind} to stand for what is not there",
        hint="name what does: {layout = #L, other = ...}",
    )


def takes_vectors(kind: Any) -> bool:
    """Return whether a vector may hold neighbouring elements of a buffer.

    They must be neighbours in memory and have whole bytes: smaller ones are packed in a vector.
    """
    buffer = ir.MemRefType(kind)
    strides, _ = buffer.get_strides_and_offset()
    match buffer.element_type:
        case ir.IndexType():
            wide = True
        case ir.IntegerType() | ir.FloatType() as element:
            wide = element.width in (8, 16, 32, 64)
        case _:
            wide = False
    return bool(strides[-1] == 1 and wide)


def _bytes_of(element: Any) -> int:
    """Return the size of a buffer's element in bytes, 1 if it is unknown here."""
    match element:
        case ir.IntegerType() | ir.FloatType():
            return max(1, int(element.width) // 8)
    return 1


def _is_multiple(offset: Int, n: int) -> bool:
    rest = construct.mod(offset, n)
    return isinstance(rest, int) and rest == 0


def _is_never(inside: Int) -> bool:
    return isinstance(inside, int) and inside == 0
