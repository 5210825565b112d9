"""What a layout does with indices and offsets: numbers, arrays, and expressions of three kinds.

SymPy's expressions are converted, values of kernels bring their own methods (`__lego_apply__`), and
index expressions are derived in the cheapest form.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import partial
from lego_mlir.algebra.arguments import check_broadcast, check_int64, checked, through_sympy
from lego_mlir.algebra.blocks import Sizes, flatten, unflatten
from lego_mlir.algebra.parts import stage_apply, stage_inv
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import is_sympy, sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int
from lego_mlir.index.extraction import forms
from lego_mlir.index.functions import is_array
from lego_mlir.index.work import measured

if TYPE_CHECKING:
    import numpy as np

    from lego_mlir.algebra.layout import Layout

    Offsets = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def apply(layout: Layout, index: Index) -> Any:
    """Return the flat offset of a logical index: `Layout.apply`."""
    index = _index(layout, index)
    for i in index:
        if hasattr(type(i), "__lego_apply__"):
            return i.__lego_apply__(layout, index)
    if any(is_sympy(i) for i in index):
        return through_sympy(index, layout.dims, layout.symbols, lambda xs: layout.apply(*xs))
    index = _checked(layout, index)
    if any(isinstance(i, Expr) for i in index):
        return forms.derive(lambda *at: _apply(layout, *at), *index)
    return _apply(layout, *index)


def mask(layout: Layout, index: Index) -> Any:
    """Return 1 where there is an element at a logical index, else 0: `Layout.mask`."""
    index = _index(layout, index)
    for i in index:
        if hasattr(type(i), "__lego_mask__"):
            return i.__lego_mask__(layout, index)
    if any(is_sympy(i) for i in index):
        return through_sympy(index, layout.dims, layout.symbols, lambda xs: layout.mask(*xs))
    index = _checked(layout, index)
    with measured():
        inside = partial.mask(layout.limits(index))
    if any(is_array(i) for i in index):
        import numpy as np

        everywhere = np.broadcast_shapes(*(np.shape(i) for i in index))
        return np.broadcast_to(np.asarray(inside, bool), everywhere)
    return inside


def inv(layout: Layout, flat: Any) -> Index:
    """Return the logical index at a flat offset: `Layout.inv`."""
    if hasattr(type(flat), "__lego_inv__"):
        return flat.__lego_inv__(layout)  # type: ignore[no-any-return]
    if layout.window is not None:
        raise LegoError(
            f"'{layout}' is a window: no index belongs to an offset",
            hint="layout.base is the layout that it looks at",
        )
    if is_sympy(flat):
        sizes = layout.symbols
        return tuple(through_sympy((flat,), (layout.size,), sizes, lambda xs: layout.inv(xs[0])))
    flat = checked(flat, layout.size, f"offset of '{layout}'")
    if is_array(flat):
        _check_int64(layout)
    if isinstance(flat, Expr):
        return forms.derive(lambda at: _inv(layout, at), flat)
    return _inv(layout, flat)


def offsets(layout: Layout) -> Offsets:
    """Return the offset of every element of the tensor: `Layout.offsets`."""
    import numpy as np

    shape = [_number(layout, n) for n in layout.tensor_shape]
    if layout.window is not None:
        raise LegoError(
            f"'{layout}' is a window: not every element of its tensor has one offset",
            hint="layout.base is the layout that it looks at",
        )
    tiled = layout.view is not None and layout.view.kind == "TileBy"
    stages = layout.stages[:-1] if tiled else layout.stages
    flat: Any = np.arange(_number(layout, layout.size), dtype=np.int64)
    for stage in reversed(stages):
        dims = tuple(n for b in stage for n in b.dims)
        flat = stage_apply(stage, unflatten(dims, flat))
    return flat.reshape(shape)  # type: ignore[no-any-return]


def _inv(layout: Layout, flat: Any) -> Index:
    """Return the index at an offset that is checked."""
    dims: Sizes | None = None
    index: Index = (flat,)
    for stage in layout.stages:
        flat = flat if dims is None else flatten(dims, index)
        index, dims = stage_inv(stage, flat), tuple(n for b in stage for n in b.dims)
    if layout.is_padded:
        assert layout.view is not None
        return partial.tiled_index(layout.view, index)
    flat = flat if dims is None else flatten(dims, index)
    return index if dims == layout.dims else unflatten(layout.dims, flat)


def _index(layout: Layout, index: Index) -> Index:
    """Return the values of an index, which may come as one tuple."""
    if len(index) == 1 and isinstance(index[0], tuple | list):
        index = tuple(index[0])
    if len(index) != layout.rank:
        raise LegoError(
            f"'{layout}' takes {layout.rank} indices ({sizes_text(layout.dims)}), got {len(index)}"
        )
    return index


def _checked(layout: Layout, index: Index) -> Index:
    if any(is_array(i) for i in index):
        _check_int64(layout)
        check_broadcast(index, f"the indices of '{layout}'")
    return tuple(
        checked(i, n, f"index {position} of '{layout}'")
        for position, (i, n) in enumerate(zip(index, layout.dims, strict=True))
    )


def _check_int64(layout: Layout) -> None:
    """Raise LegoError where positions, or coordinates of the padding, do not fit arrays."""
    check_int64(layout.size, f"'{layout}'")
    least = prod(n for n in layout.dims if isinstance(n, int))  # of sizes without values, 1
    if layout.view is not None and layout.view.skew is not None:
        least = max(least, layout.view.skew.span)  # the skewed dimension is no shorter
    check_int64(least, f"the index space of '{layout}'")


def _apply(layout: Layout, *index: Any) -> Any:
    """Return the offset of an index whose values are checked."""
    if layout.window is not None:
        return layout.window.offset(index_of_window(layout, index), _apply)
    if not layout.is_padded:
        return layout.placed(_through_stages(layout, index, layout.dims))
    assert layout.view is not None
    shape, coordinates = layout.tensor_shape, partial.coordinates(layout.view, index)
    partial.check_inside(shape, coordinates, f"'{layout}' at {list(index)}")
    return partial.derive_inside(
        shape, coordinates, lambda inside: layout.placed(_through_stages(layout, inside, shape))
    )


def index_of_window(layout: Layout, index: Index) -> Index:
    """Return the index in its window of a layout's index; in padding it lies outside."""
    assert layout.window is not None
    view, dims = layout.view, layout.window.dims
    if view is None:
        return index
    shape = view.dims
    if view.kind == "TileBy":
        index, shape = partial.coordinates(view, index), layout.tensor_shape
        if len(shape) == len(dims):
            return index
    return unflatten(dims, flatten(shape, index))


def _through_stages(layout: Layout, index: Index, dims: Sizes) -> Any:
    """Return the offset of an index of a space with these sizes, last stage first."""
    for stage in reversed(layout.stages):
        stage_dims = tuple(n for b in stage for n in b.dims)
        if stage_dims != dims:
            index = unflatten(stage_dims, flatten(dims, index))
        index, dims = (stage_apply(stage, index),), (layout.size,)
    return flatten(dims, index)


def _number(layout: Layout, n: Int) -> int:
    if not isinstance(n, int):
        names = ", ".join(s.name for s in layout.symbols)
        raise LegoError(
            f"'{layout}' has symbolic sizes ({names})", hint="give them values: layout.bind(...)"
        )
    return n
