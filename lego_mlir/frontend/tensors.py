"""Tensors inside a kernel, indexed through their layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.algebra.slices import Slice
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.dtypes import is_unsigned, mlir_element
from lego_mlir.frontend.tiles import memory
from lego_mlir.frontend.tiles.sizes import BoundedSize
from lego_mlir.frontend.trace import Trace
from lego_mlir.frontend.values import Value, as_index, as_value
from lego_mlir.index import Expr, Int, Sym, substitute, symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.layouts import symbols_of


class TensorValue:
    """A tensor inside a kernel: `t[i, j]` loads, `t[i, j] = v` stores, both through its layout.

    `t[i, :]` is a vector of all elements of a dimension. What partial tiles pad the tensor with
    reads as 0 and is not written. Where the layout has symbolic sizes, `sizes` are their values.
    """

    __slots__ = (
        "_dtype",
        "_is_exclusive",
        "_is_streamed",
        "_layout",
        "_memref",
        "_name",
        "_sizes",
        "_trace",
    )

    def __init__(
        self,
        name: str,
        memref: Any,
        dtype: str,
        layout: Layout,
        trace: Trace,
        sizes: tuple[Value, ...] = (),
    ) -> None:
        self._name = name
        self._memref = memref
        self._dtype = dtype
        self._layout = layout
        self._trace = trace
        self._sizes = sizes
        self._is_exclusive = False
        self._is_streamed = False

    @property
    def dtype(self) -> str:
        """MLIR's name of the element type."""
        return self._dtype

    @property
    def name(self) -> str:
        """The name of the parameter."""
        return self._name

    @property
    def shape(self) -> tuple[int | Value, ...]:
        """The sizes of the dimensions that an index has: numbers, or values of the kernel."""
        return tuple(n if isinstance(n, int) else self.size(n) for n in self._layout.dims)

    @property
    def dims(self) -> tuple[Int, ...]:
        """The sizes of these dimensions as the layout has them: numbers, or expressions."""
        return self._layout.dims

    @property
    def trace(self) -> Trace:
        """What records the kernel."""
        return self._trace

    @property
    def memref(self) -> Any:
        """The memory."""
        return self._memref

    @property
    def layout_attribute(self) -> Any:
        """The attribute of the layout."""
        return self._trace.layout(self._layout, is_bound=bool(self._sizes))

    @property
    def size_operands(self) -> list[Any]:
        """The SSA values of the layout's symbolic sizes."""
        return [size.ssa for size in self._sizes]

    def __repr__(self) -> str:
        return f"<kernel tensor {self._name}: {self._dtype}, {self._layout}>"

    def __getitem__(self, index: Any) -> Value:
        if memory.has_tiles(index):
            return memory.gather(self, index)
        piece = self.piece(index)
        if piece.shape and self._trace.warps is not None:
            return memory.load(self, piece.index)
        kind = self._kind(piece)
        attributes = self._attributes(piece, streamed=self._is_streamed)
        indices = self._indices(piece)
        result = dialect.load(kind, self._memref, indices, attributes, self._trace.here())
        return Value(result, self._trace, unsigned=is_unsigned(self._dtype))

    def __setitem__(self, index: Any, value: Any) -> None:
        if memory.has_tiles(index):
            memory.scatter(self, index, value)
            return
        piece = self.piece(index)
        self.check_stored()
        if piece.shape and self._trace.warps is not None:
            memory.store(self, piece.index, value)
            return
        unsigned = is_unsigned(self._dtype)
        stored = as_value(value, self._kind(piece), self._trace, unsigned=unsigned)
        indices = self._indices(piece)
        attributes = self._attributes(piece, exclusive=self._is_exclusive)
        dialect.store(stored.ssa, self._memref, indices, attributes, self._trace.here())

    def tile(self, *sizes: int, step: int | Sequence[int] | None = None) -> memory.TileGrid:
        """Return the last dimensions as a grid of tiles: `x.tile(128, 64)[m, k]` is one of them.

        Elements of a tile past the end of the tensor are invalid: reductions and dots ignore them,
        and stores drop them.

        Args:
            sizes: of a tile along the last dimensions; dimensions before them have an index.
            step: elements from where one tile begins to where the next does, a number for each
                size: `x.tile(128, step=8)[k]` has the elements from 8 * k on. By default tiles
                neither overlap nor leave gaps.

        Raises:
            LegoError: they are no positive integers, or more than the tensor has dimensions.
        """
        steps = (step,) if isinstance(step, int) else step
        return memory.TileGrid(self, sizes, steps=steps)

    def update(self, kind: str, index: Any, value: Any) -> Value | None:
        """Update an element atomically; the value before, `None` in kernels on tiles.

        Args:
            kind: one of `lego_mlir.mlir.lowering.atomics.KINDS`.
            index: of one element, or of the elements at indices that tiles hold.
            value: a kernel value, or a number.

        Raises:
            LegoError: the element type has no such update, or the index is that of a slice.
        """
        from lego_mlir.mlir.lowering.atomics import why_not_atomic

        self.check_stored()
        unsigned = is_unsigned(self._dtype)
        wrong = why_not_atomic(kind, mlir_element(self._dtype))
        if wrong is None and unsigned and kind in ("max", "min"):
            wrong = f"atomic_{kind} takes its elements for signed integers", "not of unsigned ones"
        if wrong is not None:
            raise self._trace.error(f"tensor '{self._name}': {wrong[0]}", wrong[1])
        if memory.has_tiles(index):
            memory.scatter(self, index, value, kind)
            return None
        piece = self.piece(index)
        if piece.shape:
            raise self._trace.error(
                f"an atomic update of tensor '{self._name}' is of one element",
                hint="name every dimension's index, and update the elements one by one",
            )
        element = self._kind(piece)
        operand = as_value(value, element, self._trace, unsigned=unsigned).ssa
        indices, attributes = self._indices(piece), self._attributes(piece)
        old = dialect.atomic(kind, operand, self._memref, indices, attributes, self._trace.here())
        if self._trace.warps is not None:
            return None  # one thread updates the element, and only it gets the old value
        return Value(old, self._trace, unsigned=unsigned)

    def __iter__(self) -> Any:
        raise self._trace.error(f"tensor '{self._name}' is indexed, not iterated")

    def check_stored(self) -> None:
        """Raise LegoError if this is a window that repeats elements, so nothing can be stored."""
        from lego_mlir.mlir.lowering.bijectivity import why_not_stored

        if self._layout.window is not None and (wrong := why_not_stored(self._layout)):
            raise self._trace.error(
                f"tensor '{self._name}' is stored through a window: {wrong[0]}", wrong[1]
            )

    def view(self, layout: Layout) -> TensorValue:
        """Return the same memory, indexed through another layout of as many elements.

        Raises:
            LegoError: it has another size.
        """
        self._trace.check_layout(layout)
        layout, known = self._trace.sized(layout)
        if _without_divisors(layout.size) != _without_divisors(self._layout.size):
            raise self._trace.error(
                f"tensor '{self._name}' has {self._layout.size} elements, the layout '{layout}' "
                f"of its view {layout.size}"
            )
        return self._with(layout=layout, sizes=tuple(Value(size, self._trace) for size in known))

    def reshape(self, *sizes: int) -> TensorValue:
        """Return the same elements, in their order, as an array of other sizes.

        A window of images and a window of a kernel's weights so become matrices.

        Raises:
            LegoError: the sizes have another number of elements, or the tensor is seen by tiles.
        """
        layout = self._layout
        if layout.view is not None and layout.view.kind == "TileBy":
            raise self._trace.error(
                f"tensor '{self._name}' is seen by tiles: '{layout}' has no order of rows",
                "t.view(layout) indexes the same memory through another layout",
            )
        try:
            reshaped = Layout(layout.orders, None, layout.window).GroupBy(sizes)
        except LegoError as e:
            raise self._trace.error(f"tensor '{self._name}': {e.message}", e.hint) from None
        return self._seen_through(reshaped)

    def window(
        self,
        sizes: Iterable[Any],
        coordinates: Callable[..., Any] | None = None,
        boundary: str | Sequence[str] = "inside",
    ) -> TensorValue:
        """Return a window on the tensor, in which an element may stand at several indices.

        `x.window((64, 3), lambda i, k: i + k - 1, "zero")[i, k]` is the neighbour of element i on
        the left, element i, or that on the right; 0 outside of the tensor.

        Args:
            sizes: of the window's index: numbers, sizes of `t.shape`, or expressions of `t.dims`.
            coordinates: returns the index of the element, affine in the window's index. Without it
                both are the same.
            boundary: what lies outside of the tensor: "zero", "clamp", "wrap", or "inside" if
                nothing does, for all coordinates or for each.

        Raises:
            LegoError: as `Layout.Window`.
        """
        symbolic = [self._symbolic(n) for n in sizes]
        try:
            layout = self._layout.Window(symbolic, coordinates, boundary)
        except LegoError as e:
            raise self._trace.error(f"tensor '{self._name}': {e.message}", e.hint) from None
        return self._seen_through(layout)

    def _symbolic(self, size: Any) -> Any:
        """Return a size as layouts have it: where it is a value of the kernel, its symbol.

        Raises:
            LegoError: the value is no size of a tensor of the kernel.
        """
        if not isinstance(size, Value):
            return size
        for symbol, ssa in self._trace.sizes.items():
            if ssa == size.ssa:
                return symbol
        raise self._trace.error(
            f"tensor '{self._name}': a size of the window is computed while the kernel runs",
            f"sizes are numbers, sizes of {self._name}.shape, or computed of {self._name}.dims, "
            "which are the same sizes as the layout names them",
        )

    def _seen_through(self, layout: Layout) -> TensorValue:
        """Return the same memory through a layout that begins as this one does."""
        if layout.symbols == self._layout.symbols:
            return self._with(layout=layout)
        return self.view(layout)  # further sizes that the launch knows

    @property
    def is_exclusive(self) -> bool:
        """Whether the kernel promises that no two threads update one element."""
        return self._is_exclusive

    def exclusive(self) -> TensorValue:
        """Return the same tensor, with the promise that no two threads update one element.

        `t.exclusive()[i] += v` is then right where the compiler cannot see it. Without the promise
        that is an error; where several threads do have the same element, use `lg.atomic_add`.
        Tiles that are stored then need no barriers between them, even if they overlap where their
        elements are invalid.
        """
        return self._with(is_exclusive=True)

    def streamed(self) -> TensorValue:
        """Return the same tensor, whose elements the kernel reads once, 16 bytes at a time.

        Such loads leave nothing in the L1 cache, and bring 256 bytes at a time into the L2 cache,
        before sm_80 128.
        Loads of other widths, or of less alignment, are as without it.

        Raises:
            LegoError: the kernel is on tiles, whose loads the compiler chooses.
        """
        if self._trace.warps is not None:
            raise self._trace.error(
                f"tensor '{self._name}': streamed() is for kernels of threads",
                hint="leave it out: in a kernel on tiles the compiler chooses the loads",
            )
        return self._with(is_streamed=True)

    def _with(self, **changes: Any) -> TensorValue:
        """Return the same tensor with these attributes replaced."""
        other = copy(self)
        for name, value in changes.items():
            setattr(other, f"_{name}", value)
        return other

    def piece(self, index: Any) -> Slice:
        """Return the slice of the layout that an index selects."""
        try:
            return self._layout[index]
        except LegoError as e:
            raise self._trace.error(f"tensor '{self._name}': {e.message}", e.hint) from None

    def size(self, n: Expr) -> Value:
        """Return an expression of the layout's sizes as a value of the kernel."""
        from lego_mlir.mlir.emit.arith import Printer

        known = symbols_of(self._layout, self.layout_attribute)
        with self._trace.here():
            printer = Printer(dict(zip(known, self.size_operands, strict=True)))
            return Value(printer.print(n), self._trace)

    def most(self, dim: int) -> int:
        """Return the size of a dimension, or the bound that is declared for it.

        Raises:
            LegoError: only the launch knows the size, and there is no bound.
        """
        n = self._layout.dims[dim]
        if isinstance(n, int):
            return n
        name = n.name if isinstance(n, Sym) else ""
        if name in self._trace.bounds:
            return BoundedSize.of(self._trace.bounds[name], self._name, dim)
        raise self._trace.error(
            f"a whole dimension of tensor '{self._name}', whose size {n!r} only the launch knows",
            hint=f"declare how large it gets, {name or 'N'}<=8192, or take pieces of it: "
            f"{self._name}.tile(1024)[..., k]",
        )

    def _kind(self, piece: Slice) -> Any:
        """Return the type of an element, or of the vector that a slice holds."""
        element = mlir_element(self._dtype)
        if not all(isinstance(n, int) for n in piece.shape):
            raise self._trace.error(
                f"a vector of {sizes_text(piece.shape)} elements of tensor '{self._name}', a size "
                "that only the launch knows",
                hint="a vector has a known size: view the tensor in tiles, "
                "lg.parse_layout('OrderBy(Row(M, N)).TileBy([M, N/4], [1, 4])')",
            )
        sizes = [n for n in piece.shape if isinstance(n, int)]
        return ir.VectorType.get(sizes, element) if sizes else element

    def _attributes(self, piece: Slice, **units: bool) -> dict[str, Any]:
        """Return the attributes of a load or store of a slice; `units` are unit attributes."""
        layout = self.layout_attribute
        whole = [k for k, i in enumerate(piece.index) if i is None]
        return dialect.access_attributes(layout, whole, **units)

    def _indices(self, piece: Slice) -> list[Any]:
        indices = [as_index(i, self._trace) for i in piece.index if i is not None]
        return [value.ssa for value in indices] + self.size_operands


def _without_divisors(n: Int) -> Int:
    """Return a size whose symbols do not say what divides them."""
    return substitute(n, {s: Sym(s.name, s.lo, s.hi) for s in symbols(n)})
