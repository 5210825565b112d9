"""Composition and inverse of layouts, inside the notation.

A layout is a chain of stages, each a bijection of flat positions: the stages desugared from its
dots, whatever index space views them. Chains are composed by writing one behind the other, and
inverted by inverting each stage and reading them from the end:

    f(a.compose(b)) = f(a) . f(b)          stages of a, then those of b, viewed as b is
    f(a.inverse())  = f(a)^-1              inverted stages of a backwards, viewed as one dimension

Stages that do nothing are dropped, neighbours that undo one another cancel, and a regular
permutation of what another one gives is one of the two together.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from lego_mlir.algebra.blocks import RegP, Row, Sizes, permuted, regular
from lego_mlir.algebra.parts import Order, Stage, make_view
from lego_mlir.algebra.sizes import check_same_size, product
from lego_mlir.diagnostics import LegoError
from lego_mlir.index.work import measured

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout


@measured()
def composed(outer: Layout, inner: Layout) -> Layout:
    """Compose two layouts: the offset of `inner` is the flat position of the index of `outer`.

    The index space is that of `inner`. Where `inner` is tiled it stays written so, unless stages
    of the two merge, or `outer` nests blocks in one another, which TileBy would take for levels.

    Raises:
        LegoError: the sizes differ, or one of the two has partial tiles or is no layout.
    """
    check_layout("compose", inner)
    refuse_partial("compose", outer, inner)
    check_same_size(f"'{outer}'", outer.size, f"'{inner}'", inner.size)
    kept = simplified_stages(outer.stages)
    if not kept:
        return inner
    stages = simplified_stages((*kept, *inner.stages))
    apart = len(stages) == len(kept) + len(simplified_stages(inner.stages))
    tiled = inner.view is not None and inner.view.kind == "TileBy"
    if not (tiled and apart) or any(len(stage) > 1 for stage in kept):
        return chain(outer, stages, inner.dims)
    moving = (o for o in inner.orders if len(o.blocks) > 1 or not _is_identity(o.blocks))
    return type(outer)((*(Order("OrderBy", stage) for stage in kept), *moving), inner.view)


@measured()
def inverted(layout: Layout) -> Layout:
    """Return the layout of the inverse function, from offset to the index's flat position.

    Its index space has one dimension, as offsets do.

    Raises:
        LegoError: it has partial tiles: some of its indices have no offset.
    """
    refuse_partial("inverse", layout)
    backwards = tuple(inverse_stage(stage) for stage in reversed(layout.stages))
    return chain(layout, simplified_stages(backwards), (layout.size,))


@measured()
def simplified(layout: Layout) -> Layout:
    """Return the same function in as few plain OrderBy's as these rules reach."""
    refuse_partial("simplified", layout)
    return chain(layout, simplified_stages(layout.stages), layout.dims)


def chain(like: Layout, stages: tuple[Stage, ...], dims: Sizes) -> Layout:
    """Return a layout of plain OrderBy's with this index space; a view only where one is needed."""
    orders = tuple(Order("OrderBy", stage) for stage in stages)
    view = None if orders and orders[-1].dims == dims else make_view("GroupBy", (dims,))
    return type(like)(orders, view)


def inverse_stage(stage: Stage) -> Stage:
    """Return the stage that undoes another: its blocks stay inside one another as they are."""
    return tuple(block.inverted() for block in stage)


def simplified_stages(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return a chain that maps flat positions alike, with stages dropped, cancelled and merged."""
    return reduce(_with_stage, stages, ())


def _with_stage(kept: tuple[Stage, ...], stage: Stage) -> tuple[Stage, ...]:
    stage = _as_one_block(stage)
    if _is_identity(stage):
        return kept
    merged = _merged(kept[-1], stage) if kept else None
    return (*kept, stage) if merged is None else _with_stage(kept[:-1], merged)


def _as_one_block(stage: Stage) -> Stage:
    """Join nested regular blocks into one: each permutes dimensions of its own."""
    perm: list[int] = []
    for block in stage:
        if not isinstance(block, RegP):
            return stage
        perm += [len(perm) + p for p in block.perm]
    return (regular(tuple(n for block in stage for n in block.dims), perm),)


def _is_identity(stage: Stage) -> bool:
    """Return whether positions stay: where a dimension of size 1 stands makes no difference."""
    for block in stage:
        if not isinstance(block, RegP):
            return False
        moved = [p for p in block.perm if block.dims[p] != 1]
        if moved != sorted(moved):
            return False
    return True


def _merged(outer: Stage, inner: Stage) -> Stage | None:
    """Return the two as one stage, if a rule merges them."""
    match outer, inner:
        case (RegP() as a,), (RegP() as b,) if a.dims == permuted(b.dims, b.perm):
            return (regular(b.dims, permuted(b.perm, a.perm)),)
    if outer == inverse_stage(inner):
        return (Row(product(block.size for block in inner)),)
    return None


def check_layout(what: str, x: object) -> None:
    """Raise LegoError if `x` is no layout."""
    from lego_mlir.algebra.layout import Layout

    if not isinstance(x, Layout):
        raise LegoError(f"{what} takes a layout, not {x!r}")


def refuse_partial(what: str, *layouts: Layout) -> None:
    """Refuse windows, and layouts with partial tiles, some of whose indices have no offset.

    Raises:
        LegoError: one of the layouts is such a one; names it.
    """
    for layout in layouts:
        if layout.window is not None:
            raise LegoError(
                f"{what}: '{layout}' is a window, which is no bijection",
                hint="layout.base is the layout that it looks at; a window goes behind it",
            )
        if layout.is_partial:
            raise LegoError(
                f"{what}: the tiles of '{layout}' stick out of the tensor, so it is no bijection",
                hint="use sizes that the tiles divide",
            )
