"""The verifier: every operation of a kernel on tiles, one after another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.encodings import layout_text
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.interpreter.pointwise import POINTWISE
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import CONSTANT
from lego_mlir.mlir.tile_ir.types import is_shared_type
from lego_mlir.mlir.tile_ir.verifier.checked import Checked
from lego_mlir.mlir.tile_ir.verifier.encodings import layout_in
from lego_mlir.mlir.tile_ir.verifier.launches import check_launch
from lego_mlir.mlir.tile_ir.verifier.multicast import check_multicast
from lego_mlir.mlir.tile_ir.verifier.pipelines import (
    CHECKS,
    DOTS,
    check_shared_tiles,
    check_shared_type,
)
from lego_mlir.mlir.tile_ir.verifier.placement import misplaced
from lego_mlir.mlir.tile_ir.verifier.reduce_scatter import check_reduce_scatters
from lego_mlir.mlir.tile_ir.verifier.rings.protocol import check_rings
from lego_mlir.mlir.tile_ir.verifier.rings.runs import check_ring_run
from lego_mlir.mlir.tile_ir.verifier.roles import check_roles
from lego_mlir.mlir.tile_ir.verifier.shapes import SHAPES
from lego_mlir.mlir.tile_ir.verifier.warpgroup_dots import check_warpgroup_dot

MOST_ELEMENTS = 1 << 20
"""Of a tile: more than the registers of a CTA hold, whatever the type."""

_CONTROL = ("scf.for", "scf.if", "scf.while", "scf.yield", "scf.condition", "gpu.yield")
_OF_ONE_THREAD = (
    "gpu.thread_id",
    "gpu.lane_id",
    "gpu.subgroup_id",
    "gpu.global_id",
    "gpu.cluster_block_id",
    "gpu.shuffle",
    "gpu.barrier",
)
_ELEMENTS = ("f16", "bf16", "f32", "f64", "f8E4M3FN", "f8E5M2")
_INTEGERS = (1, 8, 16, 32, 64)
_CLEAN = "lego.full makes a tile of one number; lego.reshape and lego.broadcast change shapes"


_OF_TYPES = frozenset(POINTWISE) - {*SHAPES, *CHECKS, CONSTANT}
"""Operations of which all that is asked follows from their names and the types of their tiles."""

_Typed: TypeAlias = Sequence[tuple[Any, Any]]
"""Values that are tensors, vectors or memrefs, with their types."""

_SHARED = "shared"
"""What is noted of a tile in shared memory where others have their layouts."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the operations of a kernel so far have.

    Attributes:
        layouts: the layout of each type of tiles.
        made: the tiles that are defined.
        pointwise: the names of pointwise operations, with the types of their tiles.
    """

    layouts: dict[Any, Any] = field(default_factory=dict)
    made: set[Any] = field(default_factory=set)
    pointwise: set[Any] = field(default_factory=set)


def verify_tiles(kernel: TileKernel, *, placed: bool = False) -> None:
    """Check every operation of a kernel on tiles.

    Args:
        kernel: what is checked; MLIR's own verifier holds of it.
        placed: whether every tile must have a layout.

    Raises:
        LegoError: at the first operation that is wrong.
    """
    check_launch(kernel)
    is_filled = dialect.FILLED in kernel.launch.attributes
    seen = _Seen()
    has_pipelines = False
    reductions = []
    with kernel.launch.context:
        inside = list(operations_in(kernel.launch))
        for op in inside:
            name = op.name
            _verify(kernel, op, name, seen, placed=placed)
            if is_filled and name == tiles.RESTRICT:
                _check_restrict(kernel, op)
            has_pipelines = has_pipelines or name in CHECKS
            if name == tiles.REDUCE_SCATTER:
                reductions.append(op)
        if has_pipelines:
            check_roles(kernel, inside)
            check_rings(kernel, inside)
            check_ring_run(kernel, inside)
            check_multicast(kernel, inside)
        check_reduce_scatters(kernel, reductions)


def _verify(kernel: TileKernel, op: Any, name: str, seen: _Seen, *, placed: bool) -> None:
    """Check an operation.

    Args:
        kernel: that it is in.
        op: the operation.
        name: its name.
        seen: what the kernel has before it, to which it is added.
        placed: whether every tile must have a layout.
    """
    if name in _OF_ONE_THREAD:
        raise kernel.source.error(
            f"'{name}' in a kernel whose tiles all threads hold together",
            op.location,
            hint="barriers are placed automatically, and lego.iota is the index of each element",
        )
    operands, results = _shaped(op.operands), _shaped(op.results)
    inside: _Typed = []
    if len(op.regions):
        inside = _shaped(x for region in op.regions for b in region.blocks for x in b.arguments)
    defined = [*results, *inside]
    seen.made.update(value for value, kind in defined if not isinstance(kind, ir.MemRefType))
    kinds = [kind for _, kind in (*operands, *defined)]
    is_access = name in (dialect.LOAD, dialect.STORE)  # of an element, too
    if is_access or any(not isinstance(kind, ir.MemRefType) for kind in kinds):
        _check_types(kernel, op, kinds, seen.layouts)
        _check_outside(kernel, op, operands, seen.made)
        of_types = (name, len(operands), *kinds) if name in _OF_TYPES else None
        if of_types in seen.pointwise:
            return
        checked = Checked(op, kernel.layouts, kernel.source)
        if name in SHAPES:
            SHAPES[name](checked)
        elif name in CHECKS:
            CHECKS[name](checked)
        else:
            _check_known(checked)
        if any(seen.layouts.get(kind) is _SHARED for _, kind in operands + results):
            check_shared_tiles(checked)
            if name in DOTS:
                check_warpgroup_dot(kernel, checked)
        else:
            _check_layouts(checked, seen.layouts, operands, results, inside, placed=placed)
            if of_types is not None:
                seen.pointwise.add(of_types)
    elif name in CHECKS:
        CHECKS[name](Checked(op, kernel.layouts, kernel.source))


def _shaped(values: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return those of the values that are tensors, vectors or memrefs, with their types."""
    shaped = ir.ShapedType
    return [(x, kind) for x in values if isinstance(kind := x.type, shaped)]


def _check_restrict(kernel: TileKernel, op: Any) -> None:
    """Check that what is restricted goes to accesses of memory, where invalid tiles are filled."""
    for use in op.results[0].uses:
        user = use.owner.operation
        if user.name == tiles.CONVERT:
            _check_restrict(kernel, user)
        elif user.name not in (dialect.STORE, tiles.SCATTER, tiles.GATHER):
            raise kernel.source.error(
                f"'{tiles.RESTRICT}' before '{user.name}', in a kernel with {dialect.FILLED}",
                op.location,
                hint="there it says only which elements a store, scatter or gather accesses",
            )


def _check_types(kernel: TileKernel, op: Any, kinds: Iterable[Any], seen: dict[Any, Any]) -> None:
    """Check that the types are those of tiles; note the layout of each."""
    for kind in kinds:
        if kind in seen or isinstance(kind, ir.MemRefType):
            continue
        wrong = _why_no_tile(kind)
        if wrong is not None:
            message, hint = wrong
            raise kernel.source.error(f"'{op.name}': {message}", op.location, hint=hint)
        if is_shared_type(kind):
            check_shared_type(kernel, kind, op)
            seen[kind] = _SHARED
            continue
        has_layout = ir.RankedTensorType(kind).encoding is not None
        seen[kind] = layout_in(kernel, kind, op) if has_layout else None
        if has_layout and layout_text(kind.encoding) != seen[kind].text:
            raise kernel.source.error(
                f"'{op.name}' has a tile whose layout is not written in canonical form: {kind}",
                op.location,
                hint=f"write '{seen[kind]}'",
            )


def _why_no_tile(kind: Any) -> tuple[str, str] | None:
    """Return why a type is not that of a tile, and a hint; `None` if it is."""
    if not isinstance(kind, ir.RankedTensorType):
        return (
            f"{kind} in a kernel on tiles",
            "a tile is a tensor, such as tensor<64x64xf32>; schedules' vectors belong to kernels "
            "of their own",
        )
    tile = ir.RankedTensorType(kind)
    if not tile.has_static_shape or not tile.rank or 0 in tile.shape:
        return (
            f"a tile has sizes of at least 1, and one dimension or more, not {kind}",
            "a tile may extend past the end of a tensor: what is not there is invalid",
        )
    if prod(tile.shape) > MOST_ELEMENTS:
        return (
            f"a tile {list(tile.shape)} of {prod(tile.shape)} elements; a CTA holds at most "
            f"{MOST_ELEMENTS}",
            "take smaller tiles, more of them",
        )
    element = tile.element_type
    is_integer = (
        isinstance(element, ir.IntegerType) and element.is_signless and element.width in _INTEGERS
    )
    if not (is_integer or str(element) in _ELEMENTS or isinstance(element, ir.IndexType)):
        return (
            f"a tile with elements of {element}",
            f"elements are i1, i8, i16, i32, i64, {', '.join(_ELEMENTS)}",
        )
    return None


def _check_outside(kernel: TileKernel, op: Any, operands: _Typed, made: Collection[Any]) -> None:
    """Check that no tile comes from outside of the kernel: values are defined before their uses."""
    for value, kind in operands:
        if not isinstance(kind, ir.MemRefType) and value not in made:
            raise kernel.source.error(
                f"'{op.name}' of a tile that is not made in the kernel",
                op.location,
                hint="pass a memref, and load the tile from it",
            )


def _check_known(c: Checked) -> None:
    """Check an operation that has tiles and is none of lego's."""
    name = c.op.name
    if name == CONSTANT:
        value = c.op.attributes["value"]
        is_splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat
        c.require(is_splat, lambda: "of a tile whose elements differ", _CLEAN)
    elif name not in POINTWISE and name not in _CONTROL:
        c.fail(
            "on a tile, which it does not know", _CLEAN if name.startswith("tensor.") else _KNOWN
        )


_KNOWN = "tiles have operations of arith and math, of element by element, scf.for, if and while"


def _check_layouts(
    c: Checked,
    seen: Mapping[Any, Any],
    operands: _Typed,
    results: _Typed,
    inside: _Typed,
    *,
    placed: bool,
) -> None:
    """Check the layouts of an operation's tiles, where all are placed."""
    if placed:
        for _, kind in (*operands, *results, *inside):
            if not isinstance(kind, ir.MemRefType) and seen[kind] is None:
                c.fail(f"has a tile without a layout, {kind}", "every tile needs one from here on")
    before = [seen[kind] for _, kind in operands if not isinstance(kind, ir.MemRefType)]
    after = [seen[kind] for _, kind in results if not isinstance(kind, ir.MemRefType)]
    if None in before or None in after or c.op.name in _CONTROL:
        return  # MLIR verifies that control flow has equal types
    wrong = misplaced(c.op, before, after)
    if wrong is not None:
        c.fail(wrong, "lego.convert takes a tile to another layout")
