"""Stores of rows that begin anywhere: a warp's stores begin at sectors of memory.

Lanes that store neighbouring elements of a row, from the tile's first column on, store parts of
sectors wherever one store ends and the next one begins, if rows are no multiple of a sector. The L2
cache takes longer for them than for whole sectors. A tile that goes through shared memory in any
case is therefore loaded from there with its rows moved up by what they begin behind a sector:

    lane                 0   1   2 ...  29  30  31
    first load           -   -   0 ...  27  28  29       a row that begins two elements
    second load         30  31  32 ...  59  60  61       behind a sector
    last load           62  63   -

So the only parts of sectors are those at both ends of a tile's row. A row takes one access more;
only its first and its last store are conditional.

    %y = "lego.convert"(%x)                   %room = "lego.alloc"() {layout = #Padded}
    "lego.store"(%y, %c, %i, %j)     becomes  "lego.store_parts"(%room, ..., %x0, %x1)
                                              %y:5 = "lego.load_parts"(%room, %row, %moved)
                                              "lego.store_parts"(%c, %i, %j_moved, %y0, ..., mask)

What is moved is computed from the offset of a row in its buffer. A buffer that does not begin at a
sector is stored as well, but by parts of sectors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import Col, Layout, OrderBy, Row
from lego_mlir.analysis.distributed import DistributedLayout, plan_conversion
from lego_mlir.analysis.distributed.conversions.shared_access import plan_store
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, SECTOR_BYTES
from lego_mlir.index import Int, construct
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.tile_ir.dots import matrix_instructions
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import Accesses
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.conversions.shared_memory import store_side
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import Fragment, coordinates
from lego_mlir.mlir.tile_passes.lower_tiles.memory import allocate, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_LEAST_ACCESSES = 3
"""Accesses of a row from which it is moved: n become n + 1, of which n - 1 share no sectors.
50 GEMMs took 0.57 to 1.08 of the time on an H200, 0.94 in the geometric mean; of two that take two
accesses one took 0.92 and one 1.18 (bench/results/gemm_sector_stores.jsonl)."""


@dataclass(frozen=True, slots=True)
class MovedRows:
    """How lanes store the rows of a tile.

    Attributes:
        layout: of the tile as it is stored, if rows were not moved.
        dim: the dimension of the tile along which rows go.
        unit: neighbouring elements that a lane stores at once.
        across: elements of a row that lanes store at once.
        steps: elements of memory from an index of the buffer to the next one along each dimension.
        sizes: elements of the buffer along rows, and rows.
        sector: elements of a sector.
        element_bytes: bytes of an element.
    """

    layout: DistributedLayout
    dim: int
    unit: int
    across: int
    steps: tuple[int, ...]
    sizes: tuple[int, int]
    sector: int
    element_bytes: int


def moved_rows(convert: Any, threads: Threads) -> MovedRows | None:
    """Return how the result of a conversion is stored by sectors; `None` where it is not.

    Args:
        convert: a lego.convert of a tile in registers.
        threads: those that hold the tile.
    """
    uses = [use.owner for use in convert.results[0].uses]
    if len(uses) != 1 or uses[0].name != dialect.STORE or tiles.KIND in uses[0].attributes:
        return None
    source, layout = map(threads.layout, (convert.operands[0], convert.results[0]))
    if layout.ctas > 1 or dialect.made_by(convert.operands[0], tiles.RESTRICT):
        return None
    found = _rows(uses[0], layout, threads)
    if found is None:
        return None
    instructions = matrix_instructions(threads.kernel.target)
    plan = plan_conversion(source, layout, found.element_bytes, instructions)
    return None if plan.shared is None else found


def _rows(op: Any, layout: DistributedLayout, threads: Threads) -> MovedRows | None:
    """Return the rows of a store of a tile with this layout, if they are better moved."""
    buffer = op.operands[1]
    if ir.MemRefType(buffer.type).memory_space is not None or layout.rank != 2:
        return None
    access = Accesses(threads.kernel).of(op)
    size, unit = access.element_bytes, access.vector
    if not access.order or unit * size >= MAX_ACCESS_BYTES or access.contiguous > 1:
        return None
    dim, sector = access.order[-1], SECTOR_BYTES // size
    along = access.dims[dim]
    memory = threads.kernel.layouts.of(op)
    steps = _steps(memory)
    if steps is None or steps[along] != 1:
        return None
    if all(step % sector == 0 for k, step in enumerate(steps) if k != along):
        return None
    ctas, warps, lanes, registers = (
        [(f.size, f.stride) for f in place if f.dim == dim] for place in layout.places
    )
    units = [(unit, 1)] if unit > 1 else []
    across = unit * lanes[0][0] if len(lanes) == 1 else 0
    count = layout.shape[dim] // across if across else 0
    if ctas or warps or count < _LEAST_ACCESSES or across < sector or layout.shape[dim] % across:
        return None
    if lanes[0][1] != unit or sorted(registers) != sorted([(count, across), *units]):
        return None
    length, rows = memory.dims[along], memory.dims[access.dims[1 - dim]]
    if memory.is_partial or not isinstance(length, int) or not isinstance(rows, int):
        return None
    return MovedRows(layout, dim, unit, across, steps, (length, rows), sector, size)


def _steps(layout: Layout) -> tuple[int, ...] | None:
    """Return how far apart in memory neighbours along each dimension are.

    `None` if only the launch knows, or it is not the same everywhere.
    """
    if layout.window is not None:
        return None
    origin: list[Int] = [0] * layout.rank
    found = []
    for k, size in enumerate(layout.dims):
        at = [*origin[:k], int(size != 1), *origin[k + 1 :]]
        step = construct.sub(layout.apply(*at), layout.apply(*origin))
        if not isinstance(step, int):
            return None
        found.append(step)
    return tuple(found)


def store_moved(op: Any, tile: Fragment, rows: MovedRows, threads: Threads) -> None:
    """Build a store of a tile whose rows are moved.

    Args:
        op: the lego.store.
        tile: what a thread holds, before the conversion to `rows.layout`.
        rows: how rows are stored.
        threads: those that hold the tile.
    """
    size, layout = rows.element_bytes, rows.layout
    pitch = layout.shape[rows.dim] + max(1, MAX_ACCESS_BYTES // size)
    memory = _padded(layout.shape, rows.dim, pitch)
    room = allocate(layout_attribute(memory), tile.element)
    plan = plan_store(tile.layout, memory, size, matrix_instructions(threads.kernel.target))
    store_side(tile, room, layout_attribute(memory), plan, threads)
    at = coordinates(layout)
    other, number = 1 - rows.dim, next(threads.scatters)
    with where(threads.is_first_copy(layout)):
        for ahead in sorted(set(at[other])):
            _store_row(op, rows, room, layout_attribute(memory), ahead, number, threads)


def _padded(shape: Sequence[int], dim: int, pitch: int) -> Layout:
    """Return the layout of a tile in shared memory: rows along `dim` with a pitch."""
    return OrderBy(Row(shape[0], pitch) if dim == 1 else Col(pitch, shape[1]))


def _store_row(
    op: Any,
    rows: MovedRows,
    room: Any,
    memory: Any,
    ahead: int,
    number: int,
    threads: Threads,
) -> None:
    """Build the loads and stores of a lane of one row.

    Args:
        op: the lego.store.
        rows: how rows are stored.
        room: the tile in shared memory.
        memory: the attribute of its layout.
        ahead: rows from the thread's first one to this one.
        number: of the scatter that the stores of all rows count as: no two store an element.
        threads: those that hold the tile.
    """
    along = list(ir.DenseI64ArrayAttr(op.attributes[dialect.SLICE]))
    dim, other, unit, across = rows.dim, 1 - rows.dim, rows.unit, rows.across
    first = threads.coordinates(rows.layout)
    row = _plus(first[other], ahead)
    index = list(op.operands)[2:]
    origin = index[along[dim]]
    index[along[other]] = build.binary("addi", index[along[other]], row)
    moved = build.binary("subi", first[dim], _distance(rows, index))
    held = rows.layout.shape[dim]
    begins = [_plus(moved, k) for k in range(0, held + 1, across)]
    # Lanes without an element of the first or last access load any.
    inside = [
        build.binary("maxsi", begins[0], build.index(0)),
        *begins[1:-1],
        build.binary("minsi", begins[-1], build.index(held - unit)),
    ]
    units = [(dim, unit, 1)] * (unit > 1)
    kinds = [ir.MemRefType(room.type).element_type] * unit
    loaded = []
    for begin in inside:
        place = [begin if d == dim else row for d in range(2)]
        loaded.append(tiles.load_parts(kinds, room, place, memory, units, in_bounds=True))
    limit = _limit(rows, index[along[other]], origin)
    layout, buffer = op.attributes[dialect.LAYOUT], op.operands[1]
    factors = [(along[d], n, stride) for d, n, stride in units]
    for begin, values in zip(begins, loaded, strict=True):
        index[along[dim]] = build.binary("addi", origin, begin)
        exist = [build.compare("ult", begin, limit)] * unit
        tiles.store_parts(
            values, buffer, index, layout, factors, exist, in_bounds=True, scatter=number
        )


def _plus(x: Any, number: int) -> Any:
    """Build an index that lies so many further."""
    return build.binary("addi", x, build.index(number)) if number else x


def _distance(rows: MovedRows, index: Sequence[Any]) -> Any:
    """Build by how many elements a row from an index on is moved up, a multiple of `unit`."""
    total = build.index(0)
    for x, step in zip(index, rows.steps, strict=False):  # values of symbols may follow
        if step % rows.sector:
            total = build.binary("addi", total, build.binary("muli", x, build.index(step)))
    units = rows.sector // rows.unit
    if rows.unit > 1:
        total = build.binary("divui", total, build.index(rows.unit))
    inside = build.binary("andi", total, build.index(units - 1))
    inside.owner.attributes[dialect.BOUNDS] = dialect.bounds_attribute([units])
    return build.binary("muli", inside, build.index(rows.unit))


def _limit(rows: MovedRows, row: Any, origin: Any) -> Any:
    """Build how many elements of a row of the tile exist; 0 if it lies outside of the buffer."""
    across, down = rows.sizes
    held = build.binary("subi", build.index(across), origin)
    held = build.binary("minsi", held, build.index(rows.layout.shape[rows.dim]))
    held = build.binary("maxsi", held, build.index(0))
    exists = build.compare("slt", row, build.index(down))
    return build.select(exists, held, build.index(0))
