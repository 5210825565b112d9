"""Layouts: a logical view of an index space over a chain of reorderings.

A layout is written as the paper writes it, in dots:

    OrderBy(Row(M, K)).TileBy([M//128, K//64], [128, 64])

Read it from the right: the user indexes by tile and by element within the tile; the elements lie
in memory as a row-major M×K matrix. `apply` takes the logical index to the flat offset, `inv`
takes a flat offset back to the index, and both work on integers, NumPy arrays, SymPy symbols,
index expressions and a kernel's values, by the same code.

The sugar is defined by the paper (section 3.2) and desugared here into `stages`, a chain of
plain OrderBy's; with σ(d, q) the permutation that gathers the q levels of each of d dimensions:

    TileBy(T1, ..., Tq)      OrderBy(RegP(T1++...++Tq, σ)).GroupBy(T1++...++Tq)
    TileOrderBy(P1, ..., Pq) OrderBy(P1, ..., Pq).OrderBy(RegP(σ(P1.dims++...), σ⁻¹))

Under TileBy every OrderBy means TileOrderBy, so that its levels meet those of the tiles.

A window (`algebra.windows`) looks at another layout's elements: it is the one part that may make a
layout something else than a bijection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lego_mlir.algebra import evaluation, partial
from lego_mlir.algebra.blocks import Block, GenP, Sizes
from lego_mlir.algebra.notation.facts import with_facts
from lego_mlir.algebra.parts import (
    Order,
    OrderKind,
    Skew,
    Stage,
    View,
    ViewKind,
    check_equal_ranks,
    make_order,
    make_view,
    stages_of,
)
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import bound_values, check_same_size, product, unified
from lego_mlir.algebra.slices import Slice, make_slice
from lego_mlir.algebra.windows.window import TensorWindow, make_window
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, substitute, symbols

if TYPE_CHECKING:
    from lego_mlir.algebra.evaluation import Offsets
    from lego_mlir.algebra.strides import Strides
    from lego_mlir.algebra.verification.verdict import Method, Verdict
    from lego_mlir.pictures import Picture


@dataclass(frozen=True)
class Layout:
    """A bijection between a logical index space and flat offsets 0 .. size-1, or a window on one.

    Made by `OrderBy(...)`, `TileOrderBy(...)`, `GroupBy(...)` and `TileBy(...)`, each of which is
    a function and a method. Immutable. Layouts of equal blocks and views are equal, and have the
    same text; `equals` compares what they compute.

    Attributes:
        orders: the reorderings, in the order of the dots; of a window they are in its base.
        view: the logical space; without one it is that of the window, or of the last reordering.
        window: the window on another layout, if it is one.
    """

    orders: tuple[Order, ...] = ()
    view: View | None = None
    window: TensorWindow | None = None

    def __post_init__(self) -> None:
        if not self.orders and self.view is None and self.window is None:
            raise LegoError("an empty layout has no elements")
        if same := unified(self._sizes()):
            orders, view, window = self._substituted(same)
            object.__setattr__(self, "orders", orders)
            object.__setattr__(self, "view", view)
            object.__setattr__(self, "window", window)
        if self.window is not None:
            self._check_view_of_window(self.window)
            return
        first, *others = self.parts
        if self.is_padded:
            others.pop()
        for part in others:
            check_same_size(first.text, self.size, part.text, product(part.dims), self._size_hint)
        if self.view is not None and self.view.kind == "TileBy":
            for order in self.orders:
                check_equal_ranks(order, "TileBy")

    def _check_view_of_window(self, window: TensorWindow) -> None:
        """Raise LegoError unless the view, if there is one, has the elements of the window."""
        if self.orders:
            raise LegoError(f"{self.orders[0].text}: a window is not reordered")
        if self.view is not None and not self.is_padded:
            size, elements = product(window.dims), product(self.view.dims)
            check_same_size(window.text, size, self.view.text, elements, self._size_hint)

    def _size_hint(self) -> str | None:
        """Return a hint about orders and views of different sizes."""
        tensor = self._viewed_tensor
        return None if tensor is None or self.view is None else partial.hint(tensor, self.view)

    @property
    def _viewed_tensor(self) -> Sizes | None:
        """The shape of the tensor below the view; none if its dimensions are not known."""
        if self.window is not None:
            return self.window.dims
        if not self.orders or len({b.rank for b in self.orders[-1].blocks}) > 1:
            return None
        return partial.shape_of_order(self.orders[-1])

    # The dot notation of the paper, hence the capitals.
    def OrderBy(self, *blocks: Block) -> Layout:  # noqa: N802
        """Reorder further: the blocks' tiles one inside the other, the first outermost."""
        return self._with_order("OrderBy", blocks)

    def TileOrderBy(self, *blocks: Block) -> Layout:  # noqa: N802
        """Reorder a space that is grouped by dimension, level by level."""
        return self._with_order("TileOrderBy", blocks)

    def GroupBy(self, *tiles: Iterable[Int]) -> Layout:  # noqa: N802
        """View the elements, in their order, as an array of these sizes."""
        return self._with_view("GroupBy", tiles)

    def TileBy(self, *tiles: Iterable[Int], skew: Skew | None = None) -> Layout:  # noqa: N802
        """View a tensor as tiles of tiles: one list of sizes a level, outermost first."""
        return self._with_view("TileBy", tiles, skew)

    def Window(  # noqa: N802
        self,
        sizes: Iterable[Int],
        coordinates: Callable[..., Any] | None = None,
        boundary: str | Sequence[str] = "inside",
    ) -> Layout:
        """Look at elements of this layout, any of them several times: `algebra.windows`.

        Args:
            sizes: of the window's index.
            coordinates: returns the index of the element that is looked at, affine in the window's
                index: `lambda x, i: x + i - 1`. Without it both are the same.
            boundary: what lies outside of the tensor: "zero", "clamp", "wrap", or "inside" if
                nothing does, for all coordinates or for each.

        Raises:
            LegoError: the coordinates are not affine or do not fit, or may lie outside of the
                tensor where nothing is said of that.
        """
        return Layout(window=make_window(self, sizes, coordinates, boundary))

    def _with_order(self, kind: OrderKind, blocks: Any) -> Layout:
        if self.view is not None:
            raise LegoError(f"{kind} after {self.view.kind}: the view comes last")
        if self.window is not None:
            raise LegoError(f"{kind} after Window: a window is viewed, but not reordered")
        return Layout((*self.orders, make_order(kind, blocks)))

    def _with_view(self, kind: ViewKind, tiles: Any, skew: Skew | None = None) -> Layout:
        if self.view is not None:
            raise LegoError(f"{kind} after {self.view.kind}: a layout has one view")
        return Layout(self.orders, make_view(kind, tiles, skew), self.window)

    # What it is.
    @cached_property
    def parts(self) -> tuple[Order | TensorWindow | View, ...]:
        """The calls of the dots, in order."""
        below = (*self.window.base.parts, self.window) if self.window else self.orders
        return (*below, self.view) if self.view else below

    @property
    def base(self) -> Layout:
        """The layout that windows look at: the one without a window."""
        return self.window.base.base if self.window else self

    def clamped(self) -> Layout:
        """Return the layout with the nearest element wherever a window has none."""
        if self.window is None or not self.window.has_holes:
            return self
        return Layout(self.orders, self.view, self.window.clamped())

    def _sizes(self) -> Iterator[Int]:
        """Yield all sizes, which may have symbols, part by part."""
        if self.window is not None:
            yield from self.window.base._sizes()
            yield from self.window.sizes
        for order in self.orders:
            yield from order.dims
        if self.view is not None:
            yield from self.view.dims

    @cached_property
    def dims(self) -> Sizes:
        """The sizes of the logical index space, one a dimension of the index."""
        below = self.window.dims if self.window else self.orders[-1].dims if self.orders else ()
        return self.view.dims if self.view else below

    @property
    def rank(self) -> int:
        """How many values an index has."""
        return len(self.dims)

    @cached_property
    def size(self) -> Int:
        """The number of offsets; without a window it is also the number of elements."""
        return product(self.parts[0].dims)

    @cached_property
    def is_padded(self) -> bool:
        """Whether its tiles pad the tensor, or the window, up."""
        tensor = self._viewed_tensor
        return tensor is not None and self.view is not None and partial.is_padded(tensor, self.view)

    @cached_property
    def is_partial(self) -> bool:
        """Whether some index has no element: in padding, or outside of a window's tensor."""
        return self.is_padded or (self.window is not None and self.window.has_holes)

    @property
    def tensor_shape(self) -> Sizes:
        """The shape of the tensor the layout is of: tiles joined, dimension by dimension."""
        if self.view is None or self.view.kind == "GroupBy":
            return self.dims
        if self.is_padded and self._viewed_tensor is not None:
            return self._viewed_tensor
        return partial.shape_of_view(self.view)

    @cached_property
    def text(self) -> str:
        """The layout as `#lego.layout<"...">` has it."""
        text = ".".join(part.text for part in self.parts)
        if not any(s.divisors for s in self.symbols):
            return text
        blocks = (b for order in self.base.orders for b in order.blocks)
        stated = (
            pair
            for b in blocks
            if isinstance(b, GenP)
            for pair in zip(b.dims, b.permutation.divisors, strict=False)
        )
        return with_facts(text, self._sizes(), stated)

    def __str__(self) -> str:
        return self.text

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.orders, self.view, self.window))

    @cached_property
    def symbols(self) -> tuple[Sym, ...]:
        """The symbolic sizes, dimension by dimension, and by name within one dimension's size."""
        found: dict[Sym, None] = {}
        for n in self._sizes():
            found |= dict.fromkeys(sorted(symbols(n), key=lambda s: s.name))
        return tuple(found)

    @cached_property
    def functions(self) -> tuple[Callable[..., Any], ...]:
        """The functions of users' own permutations in it, each before its inverse."""
        found: dict[Callable[..., Any], None] = {}
        for block in (b for order in self.base.orders for b in order.blocks):
            if isinstance(block, GenP):
                found |= dict.fromkeys(block.permutation.functions or ())
        return tuple(found)

    def verify(self, method: Method | None = None) -> Verdict:
        """Return whether the layout is a bijection onto 0 .. size-1 with the inverse `inv`."""
        from lego_mlir.algebra.verification.bijectivity import verify

        return verify(self, method)

    def verify_injective(self) -> Verdict:
        """Return whether no two indices have the same offset: a bijection, or a window like one."""
        from lego_mlir.algebra.verification.injectivity import verify_injective

        return verify_injective(self)

    def compose(self, inner: Layout) -> Layout:
        """Return the layout that applies `inner`, then `self` to the flat position it gives."""
        from lego_mlir.algebra.compose import composed

        return composed(self, inner)

    def inverse(self) -> Layout:
        """Return the layout from flat offset to the index's flat position, in one dimension."""
        from lego_mlir.algebra.compose import inverted

        return inverted(self)

    def simplified(self) -> Layout:
        """Return the same function in fewer, plain OrderBy's: `algebra.compose`."""
        from lego_mlir.algebra.compose import simplified

        return simplified(self)

    def equals(self, other: Layout) -> Verdict:
        """Return whether both are the same function, however written."""
        from lego_mlir.algebra.verification.equality import equality

        return equality(self, other)

    def to_strides(self) -> Strides:
        """Return shape and strides, in CuTe's notation; raise LegoError if there are none."""
        from lego_mlir.algebra.strides import to_strides

        return to_strides(self)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The chain desugared to plain OrderBy's, in the order of the dots.

        Of partial tiles the last one takes coordinates (`algebra.partial`), not tiled indices.
        """
        if self.window is not None:
            raise LegoError(
                f"'{self}' is a window, not a chain of reorderings",
                hint="take the layout that it looks at: layout.base",
            )
        return stages_of(self.orders, self.view, self.tensor_shape if self.is_padded else None)

    def bind(self, **sizes: int) -> Layout:
        """Return the layout with symbolic sizes given values.

        Raises:
            LegoError: no such symbol, no positive integer, or a size that does not divide.
        """
        return self.substitute(bound_values(self.symbols, sizes, self.text))

    def substitute(self, values: Mapping[Sym, Int]) -> Layout:
        """Return the layout with symbolic sizes replaced by other sizes."""
        return Layout(*self._substituted(values))

    def _substituted(
        self, values: Mapping[Sym, Int]
    ) -> tuple[tuple[Order, ...], View | None, TensorWindow | None]:
        orders = tuple(Order(o.kind, tuple(b.bind(values) for b in o.blocks)) for o in self.orders)
        view = None
        if self.view is not None:
            tiles = tuple(tuple(substitute(n, values) for n in t) for t in self.view.tiles)
            view = make_view(self.view.kind, tiles, self.view.skew)
        window = None if self.window is None else self.window.substitute(values)
        return orders, view, window

    # What it does.
    def apply(self, *index: Any) -> Any:
        """Return the flat offset of a logical index.

        Args:
            index: one value a dimension: ints, NumPy integer arrays, SymPy expressions, index
                expressions or kernel values. A plain SymPy symbol counts as an index of its
                dimension, so its range is known.

        Raises:
            LegoError: a wrong number of indices, or a number out of range.
        """
        return evaluation.apply(self, index)

    def mask(self, *index: Any) -> Any:
        """Return 1 where there is an element at a logical index, 0 in padding and outside.

        The comparisons that are proven to hold are left out, so where the tiles divide the tensor
        the mask is 1.

        Args:
            index: as for `apply`. Arrays give an array of booleans.

        Raises:
            LegoError: as `apply`, but not for an index in the padding.
        """
        return evaluation.mask(self, index)

    def inv(self, flat: Any) -> Index:
        """Return the logical index at a flat offset, one value a dimension.

        Raises:
            LegoError: a number out of range.
        """
        return evaluation.inv(self, flat)

    def offsets(self) -> Offsets:
        """Return the offset of every element of the tensor: an int64 array of shape `tensor_shape`.

        Raises:
            LegoError: a size is symbolic.
        """
        return evaluation.offsets(self)

    def draw(self, by: str | None = None, **options: Any) -> Picture:
        """Return a picture of the layout, colored by `tile`, `bank`, `thread` and so on.

        Args:
            by: what cells are colored by.
            options: as for `pictures.draw`: element, access, vector, rows, columns.

        Raises:
            LegoError: a size is symbolic, or there is no such coloring.
        """
        from lego_mlir.pictures import draw

        return draw(self, by=by, **options)

    def _repr_svg_(self) -> str | None:
        """Return the picture that a notebook shows; none if the layout cannot be drawn."""
        try:
            return self.draw().svg()
        except LegoError:  # a size is symbolic or too large
            return None

    def __getitem__(self, item: Any) -> Slice:
        """Return the slice `layout[i, k, :, :]`; `:` is a whole dimension, `...` all the others."""
        return make_slice(self, item)

    __iter__ = None
    """A layout is indexed, not iterated: without this, Python would try both."""

    def placed(self, offset: Any) -> Any:
        """Return where the element at a flat offset lies in memory: there."""
        return offset

    def limits(self, index: Index) -> list[tuple[Any, Int]]:
        """Return what the mask compares: coordinates of an index, and their upper limits."""
        found = self.padding_limits(index)
        if self.window is not None and self.window.has_holes:
            found += self.window.limits(evaluation.index_of_window(self, index))
        return found

    def padding_limits(self, index: Index) -> list[tuple[Any, Int]]:
        """Return those limits that come from tiles that pad the tensor or window."""
        if not self.is_padded:
            return []
        assert self.view is not None
        return partial.limits(self.view, self.tensor_shape, index)
