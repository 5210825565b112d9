"""The blocks: bijections between the index space of one tile and its flat space.

The canonical bijection flattens row-major, `((i1*n2 + i2)*n3 + ...)`, and its inverse peels from
the innermost dimension. RegP does that in a permuted order of dimensions, GenP by the user's
pair of functions (papers/lego, section 3.2 and Figure 6).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from lego_mlir.algebra.permutations import Index, Permutation, as_permutation, inverse
from lego_mlir.algebra.sizes import as_sizes, product, sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, substitute
from lego_mlir.index.integers import is_numpy_integer

Sizes: TypeAlias = tuple[Int, ...]


def flatten(dims: Sizes, index: Index) -> Any:
    """Return the canonical bijection: the row-major flat position of `index`."""
    flat: Any = 0
    for n, i in zip(dims, index, strict=True):
        flat = flat * n + i
    return flat


def unflatten(dims: Sizes, flat: Any) -> Index:
    """Return the inverse of `flatten`."""
    index: list[Any] = []
    for n in reversed(dims[1:]):
        index.append(flat % n)
        flat = flat // n
    index.append(flat)
    return tuple(reversed(index))


def permuted(xs: Sequence[Any], perm: Sequence[int]) -> tuple[Any, ...]:
    """Return `xs` reordered: entry k is `xs[perm[k]]`, as in NumPy's transpose."""
    return tuple(xs[p] for p in perm)


def inverse_permutation(perm: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes `perm`."""
    inverse = [0] * len(perm)
    for position, p in enumerate(perm):
        inverse[p] = position
    return tuple(inverse)


class Block(ABC):
    """A bijection of one tile. `apply` takes an index to a flat position, `inv` takes it back.

    Blocks are immutable values: equal if they are written the same.
    """

    __slots__ = ("_size", "dims")
    dims: Sizes
    _size: int

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name} cannot be set")

    @property
    def size(self) -> Int:
        """The number of elements."""
        if not hasattr(self, "_size"):
            object.__setattr__(self, "_size", product(self.dims))
        return self._size

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @property
    @abstractmethod
    def text(self) -> str:
        """The block as a layout's text has it; equal blocks have the same text."""

    @abstractmethod
    def apply(self, index: Index) -> Any:
        """Return the flat position of an index, one value a dimension."""

    @abstractmethod
    def inv(self, flat: Any) -> Index:
        """Return the index at a flat position."""

    @abstractmethod
    def bind(self, values: Mapping[Sym, Int]) -> Block:
        """Return the block with symbolic sizes replaced."""

    @abstractmethod
    def inverted(self) -> Block:
        """Return the block that undoes it, flat position for flat position."""

    @abstractmethod
    def _key(self) -> tuple[Any, ...]:
        """Return what makes two blocks equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Block) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @abstractmethod
    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by construction: nothing is set afterwards."""

    def __repr__(self) -> str:
        return self.text


class RegP(Block):
    """A regular permutation: row-major over the dimensions in another order.

    `apply(i)` is the canonical flat position of `perm(i)` in the space `perm(dims)`, where
    `perm(x)[k] = x[perm[k]]`.

    Args:
        dims: the sizes of the tile.
        perm: a permutation of `0 .. rank-1`.

    Raises:
        LegoError: a size is no positive integer, or `perm` is no permutation of that rank.
    """

    __slots__ = ("perm",)
    perm: tuple[int, ...]

    def __init__(self, dims: Iterable[Int], perm: Iterable[int]) -> None:
        sizes = as_sizes(dims, "RegP")
        order = _as_permutation(perm)
        if len(order) != len(sizes):
            raise LegoError(
                f"RegP: {len(sizes)} sizes but a permutation of {len(order)}: "
                f"{list(sizes)}, {list(order)}"
            )
        if any(isinstance(p, bool) or not isinstance(p, int) for p in order) or sorted(
            order
        ) != list(range(len(sizes))):
            raise LegoError(
                f"RegP: {list(order)} is not a permutation of {list(range(len(sizes)))}",
                hint="permutations are 0-based, as in NumPy",
            )
        object.__setattr__(self, "dims", sizes)
        object.__setattr__(self, "perm", order)

    @property
    def text(self) -> str:
        sizes = sizes_text(self.dims)
        if is_ascending(self.perm):
            return f"Row({sizes[1:-1]})"
        if is_descending(self.perm):
            return f"Col({sizes[1:-1]})"
        return f"RegP({sizes}, {list(self.perm)})"

    def _key(self) -> tuple[Any, ...]:
        return RegP, self.dims, self.perm

    def __reduce__(self) -> tuple[Any, ...]:
        return RegP, (self.dims, self.perm)

    def apply(self, index: Index) -> Any:
        return flatten(permuted(self.dims, self.perm), permuted(index, self.perm))

    def inv(self, flat: Any) -> Index:
        index = unflatten(permuted(self.dims, self.perm), flat)
        return permuted(index, inverse_permutation(self.perm))

    def bind(self, values: Mapping[Sym, Int]) -> RegP:
        return RegP(_bound(self.dims, values), self.perm)

    def inverted(self) -> RegP:
        return regular(permuted(self.dims, self.perm), inverse_permutation(self.perm))


class Row(RegP):
    """Row-major: the last dimension is contiguous. `Row(M, N)`, or `Row([M, N])`."""

    __slots__ = ()

    def __init__(self, *dims: Any) -> None:
        sizes = as_sizes(_spread(dims), "Row")
        super().__init__(sizes, range(len(sizes)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, self.dims

    def bind(self, values: Mapping[Sym, Int]) -> Row:
        return Row(*_bound(self.dims, values))


class Col(RegP):
    """Column-major: the first dimension is contiguous; (i, j) of `Col(M, N)` is at `i + j*M`."""

    __slots__ = ()

    def __init__(self, *dims: Any) -> None:
        sizes = as_sizes(_spread(dims), "Col")
        super().__init__(sizes, range(len(sizes) - 1, -1, -1))

    def __reduce__(self) -> tuple[Any, ...]:
        return Col, self.dims

    def bind(self, values: Mapping[Sym, Int]) -> Col:
        return Col(*_bound(self.dims, values))


def regular(dims: Sizes, perm: Sequence[int]) -> RegP:
    """Return RegP, as Row or Col where it is one."""
    if is_ascending(perm):
        return Row(*dims)
    if is_descending(perm):
        return Col(*dims)
    return RegP(dims, perm)


def is_ascending(perm: Sequence[int]) -> bool:
    """Return whether a permutation is the identity: the order of `Row`."""
    return list(perm) == sorted(perm)


def is_descending(perm: Sequence[int]) -> bool:
    """Return whether a permutation reverses the dimensions: the order of `Col`."""
    return list(perm) == sorted(perm, reverse=True)


class GenP(Block):
    """A general permutation: given by a pair of functions.

    Args:
        dims: the sizes of the tile.
        f: a named permutation, or a function from one index a dimension to the flat position.
        f_inv: with a function, its inverse: from the flat position to the tuple of indices.

    Raises:
        LegoError: a size is no positive integer, the permutation cannot permute such a tile, or
            `f_inv` is missing.
    """

    __slots__ = ("permutation",)
    permutation: Permutation

    def __init__(
        self,
        dims: Iterable[Int],
        f: Permutation | Callable[..., Any],
        f_inv: Callable[..., Any] | None = None,
    ) -> None:
        sizes = as_sizes(dims, "GenP")
        permutation = as_permutation(f, f_inv)
        permutation.check(sizes)
        object.__setattr__(self, "dims", sizes)
        object.__setattr__(self, "permutation", permutation)

    @property
    def text(self) -> str:
        return f"GenP({sizes_text(self.dims)}, {self.permutation.text})"

    def _key(self) -> tuple[Any, ...]:
        return GenP, self.dims, self.permutation

    def __reduce__(self) -> tuple[Any, ...]:
        return GenP, (self.dims, self.permutation)

    def apply(self, index: Index) -> Any:
        return self.permutation.forward(self.dims, index)

    def inv(self, flat: Any) -> Index:
        return self.permutation.inverse(self.dims, flat)

    def bind(self, values: Mapping[Sym, Int]) -> GenP:
        return GenP(_bound(self.dims, values), self.permutation)

    def inverted(self) -> GenP:
        return GenP(self.dims, inverse(self.permutation))


def _as_permutation(perm: Any) -> tuple[Any, ...]:
    if isinstance(perm, str) or not isinstance(perm, Iterable):
        raise LegoError(f"RegP: expected a permutation as a list, not {perm!r}")
    return tuple(int(p) if is_numpy_integer(p) else p for p in perm)


def _spread(dims: tuple[Any, ...]) -> Any:
    return dims[0] if len(dims) == 1 and isinstance(dims[0], list | tuple) else dims


def _bound(dims: Sizes, values: Mapping[Sym, Int]) -> Sizes:
    return tuple(substitute(n, values) for n in dims)
