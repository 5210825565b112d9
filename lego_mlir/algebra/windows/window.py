"""Windows: views of a tensor in which several indices may have the same element, or some none.

    OrderBy(Row(64, 64)).Window([64, 64, 3, 3], (y, x, i, j) -> (y + i - 1, x + j - 1), zero)

Each coordinate in the tensor is an affine function of the window's index: strides, dilation and
padding are its coefficients. What lies outside of the tensor is said by the boundary, one for all
coordinates or one each:

    inside    nothing does, which is proven when the window is made
    zero      there is no element: a load reads 0, or its `other`, and nothing is stored
    clamp     the nearest element of the tensor
    wrap      the element a whole number of sizes away

A window without functions is the corner of its tensor: `OrderBy(Row(32, 33)).Window([32, 32])` has
an offset for each of 32x32 elements, and a hole at the end of each row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from lego_mlir.algebra import partial
from lego_mlir.algebra.blocks import Sizes
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import as_sizes, sizes_text
from lego_mlir.algebra.windows.affine import Affine, affine
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, construct, maximum, minimum, substitute
from lego_mlir.index import symbols as symbols_of
from lego_mlir.index.nodes import plain
from lego_mlir.index.proofs import prover

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout

Boundary: TypeAlias = Literal["inside", "zero", "clamp", "wrap"]
_OUTSIDE = "there is no element; the layout's mask is 1 where there is one"

_ALWAYS = (0, 1)
"""A limit that holds."""

BOUNDARIES: tuple[Boundary, ...] = get_args(Boundary)


@dataclass(frozen=True)
class TensorWindow:
    """What `Window(sizes, coordinates, boundary)` adds to a layout.

    Attributes:
        base: the layout of the tensor that is looked at.
        dims: the sizes of the window's index.
        names: of the dimensions, in the notation.
        coordinates: for each dimension of the tensor its function of the window's index.
        boundaries: what stands outside of the tensor, for each of its dimensions.
    """

    base: Layout
    dims: Sizes
    names: tuple[str, ...]
    coordinates: tuple[Affine, ...]
    boundaries: tuple[Boundary, ...]

    @property
    def text(self) -> str:
        """The notation of this part of a layout."""
        parts = [sizes_text(self.dims)]
        if not self._is_corner:
            found = ", ".join(f.text(self.names) for f in self.coordinates)
            parts.append(f"({', '.join(self.names)}) -> ({found})")
        if len(set(self.boundaries)) > 1:
            parts.append(f"[{', '.join(self.boundaries)}]")
        elif self.boundaries[0] != "inside":
            parts.append(self.boundaries[0])
        return f"Window({', '.join(parts)})"

    @property
    def _is_corner(self) -> bool:
        count = len(self.dims)
        corner = (Affine(tuple(int(j == k) for j in range(count)), 0) for k in range(count))
        return self.names == default_names(count) and self.coordinates == tuple(corner)

    @property
    def sizes(self) -> Sizes:
        """The sizes and all numbers of the functions, which may have symbols."""
        functions = ((*f.coefficients, f.constant) for f in self.coordinates)
        return (*self.dims, *(n for numbers in functions for n in numbers))

    @cached_property
    def reach(self) -> tuple[Int, ...]:
        """The tensor's coordinates as expressions in symbols that range over the window."""
        index = [
            Sym(f"window {k}", 0, construct.sub(n, 1)) if n != 1 else 0
            for k, n in enumerate(self.dims)
        ]
        return tuple(plain(f.at(index)) for f in self.coordinates)

    @cached_property
    def is_inside(self) -> tuple[bool, ...]:
        """For each coordinate, whether it is proven to lie in the tensor at every index."""
        pairs = zip(self.reach, self.base.dims, strict=True)
        return tuple(prover.is_within(x, n) for x, n in pairs)

    @property
    def has_holes(self) -> bool:
        """Whether some index may have no element."""
        pairs = zip(self.boundaries, self.is_inside, strict=True)
        return self.base.is_partial or any(b == "zero" and not inside for b, inside in pairs)

    def substitute(self, values: Mapping[Sym, Int]) -> TensorWindow:
        """Return the window with symbolic sizes replaced."""
        return TensorWindow(
            self.base.substitute(values),
            tuple(substitute(n, values) for n in self.dims),
            self.names,
            tuple(f.substitute(values) for f in self.coordinates),
            self.boundaries,
        )

    def clamped(self) -> TensorWindow:
        """Return the window that has the nearest element where this one has none."""
        words = ("clamp" if b == "zero" else b for b in self.boundaries)
        return replace(self, base=self.base.clamped(), boundaries=tuple(words))

    def of_copies(self, base: Layout) -> TensorWindow:
        """Return the window with one more dimension, its first, and that of copies of the base."""
        name = next(n for n in ("copy", *default_names(len(self.names) + 1)) if n not in self.names)
        moved = (Affine((0, *f.coefficients), f.constant) for f in self.coordinates)
        return TensorWindow(
            base,
            (base.dims[0], *self.dims),
            (name, *self.names),
            (Affine((1, *(0 for _ in self.dims)), 0), *moved),
            ("inside", *self.boundaries),
        )

    def at(self, index: Index) -> Index:
        """Return the coordinates at an index; those that `zero` leaves out stay as they are."""
        found = []
        for f, n, boundary, inside in zip(
            self.coordinates, self.base.dims, self.boundaries, self.is_inside, strict=True
        ):
            x = f.at(index)
            if boundary == "clamp" and not inside:
                x = maximum(minimum(x, n - 1), 0)
            elif boundary == "wrap" and not inside:
                x = x % n
            found.append(x)
        return tuple(found)

    def limits(self, index: Index) -> list[tuple[Any, Int]]:
        """Return what has to hold for an element at an index: values, and limits above them.

        What follows from the index being in the window is replaced by what always holds.
        """
        at, found = self.at(index), []
        within = self._within(index)
        for x, f, n, boundary, inside in zip(
            at, self.coordinates, self.base.dims, self.boundaries, self.is_inside, strict=True
        ):
            if boundary == "zero" and not inside:
                y = f.at(within)
                y = plain(y) if isinstance(y, Expr) else None
                found.append((x, n) if y is None or not prover.is_less(y, n) else _ALWAYS)
                found.append((-x, 1) if y is None or not prover.is_nonnegative(y) else _ALWAYS)
        return found + self.base.limits(at)

    def _within(self, index: Index) -> Index:
        """Return an index with symbols of their ranges for entries not proven to be in theirs."""
        pairs = enumerate(zip(index, self.dims, strict=True))
        return tuple(
            Sym(f"within {k}", 0, construct.sub(n, 1))
            if isinstance(i, Expr) and n != 1 and not prover.is_within(plain(i), n)
            else i
            for k, (i, n) in pairs
        )

    def offset(self, index: Index, through: Callable[..., Any]) -> Any:
        """Return the offset at an index that has an element.

        Args:
            index: in the window.
            through: returns the offset of the base's index.

        Raises:
            LegoError: numbers lie outside of the tensor.
        """
        at, shape = self.at(index), self.base.dims
        partial.check_inside(shape, at, f"'{self.text}' at {list(index)}", _OUTSIDE)
        pairs = zip(at, shape, self.boundaries, self.is_inside, strict=True)
        if all(
            inside or boundary != "zero" or not isinstance(x, Expr) or prover.is_within(plain(x), n)
            for x, n, boundary, inside in pairs
        ):
            return through(self.base, *at)
        return partial.derive_inside(shape, at, lambda inside: through(self.base, *inside))


def default_names(count: int) -> tuple[str, ...]:
    """Return the names of dimensions that have none: d0, d1, and so on."""
    return tuple(f"d{k}" for k in range(count))


def make_window(
    base: Layout,
    sizes: Any,
    coordinates: Callable[..., Any] | None = None,
    boundary: str | Sequence[str] = "inside",
) -> TensorWindow:
    """Return a window on the tensor of a layout.

    Args:
        base: the layout.
        sizes: of the window's index.
        coordinates: returns the tensor's coordinates at an index of the window; without it they
            are the index.
        boundary: what lies outside of the tensor, for all coordinates or for each.

    Raises:
        LegoError: the functions are not affine, there is not one for each dimension of the tensor,
            or coordinates may lie outside of the tensor where nothing is said of that.
    """
    dims = as_sizes(sizes, "Window")
    if coordinates is None:
        names = default_names(len(dims))
        values: Any = tuple(Sym(name, 0) for name in names)
    else:
        names = _names_of(coordinates, len(dims))
        values = coordinates(*(Sym(name, 0) for name in names))
    if not isinstance(values, tuple | list):
        values = (values,)
    return window_of(base, dims, names, values, boundary)


def _names_of(function: Callable[..., Any], count: int) -> tuple[str, ...]:
    """Return the names of a function's parameters.

    Raises:
        LegoError: it does not take so many.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return default_names(count)
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return default_names(count)
    if len(parameters) != count:
        raise LegoError(
            f"Window: the function takes {len(parameters)} indices, the window has {count} "
            "dimensions",
            hint="it has one parameter for each size: Window([64, 3], lambda x, i: x + i - 1)",
        )
    return tuple(p.name for p in parameters)


def window_of(
    base: Layout,
    dims: Sizes,
    names: tuple[str, ...],
    values: Iterable[Any],
    boundary: str | Sequence[str],
) -> TensorWindow:
    """Return a window whose coordinates are expressions in symbols of these names.

    Raises:
        LegoError: as `make_window`.
    """
    found = tuple(affine(x, names) for x in values)
    if base.is_padded:
        raise LegoError(
            f"Window: the tiles of '{base}' stick out of its tensor",
            hint="first the window, then its tiles: OrderBy(...).Window(...).TileBy(...)",
        )
    if len(found) != base.rank:
        raise LegoError(
            f"Window: {len(found)} coordinates, but '{base}' has the dimensions "
            f"{sizes_text(base.dims)}",
            hint="there is one function of the window's index for each of them",
        )
    window = TensorWindow(base, dims, names, found, _boundaries(boundary, base.rank))
    if len(names) != len(dims) or len(set(names)) != len(names):
        raise LegoError(f"{window.text}: each dimension has a name of its own")
    taken = {s.name for n in window.sizes for s in symbols_of(n)}
    taken |= {s.name for s in base.symbols}
    if both := sorted(taken & set(names)):
        raise LegoError(f"{window.text}: '{both[0]}' is the name of a dimension and of a size")
    _check_inside(window)
    return window


def _boundaries(boundary: str | Sequence[str], rank: int) -> tuple[Boundary, ...]:
    found = (boundary,) * rank if isinstance(boundary, str) else tuple(boundary)
    for word in found:
        if word not in BOUNDARIES:
            raise LegoError(
                f"Window: there is no boundary {word!r}", hint=f"there are: {', '.join(BOUNDARIES)}"
            )
    if len(found) != rank:
        raise LegoError(
            f"Window: {len(found)} boundaries for {rank} coordinates",
            hint="write one word for all coordinates, or one for each",
        )
    return cast("tuple[Boundary, ...]", found)


def _check_inside(window: TensorWindow) -> None:
    """Raise LegoError if a coordinate that has to lie in the tensor may lie outside."""
    for k, (boundary, inside) in enumerate(zip(window.boundaries, window.is_inside, strict=True)):
        if boundary == "inside" and not inside:
            function = window.coordinates[k].text(window.names)
            raise LegoError(
                f"{window.text}: coordinate {k}, {function}, is not proven to lie in the tensor's "
                f"dimension {k} of size {window.base.dims[k]!r}",
                hint="say what lies outside: zero, clamp or wrap",
            )
