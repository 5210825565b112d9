"""Between layouts of the algebra and linear layouts: both ways, equal as functions.

A layout of powers of two is a chain of reorderings, each of them blocks side by side. Where every
block is affine over F2, `x -> M x ^ c`, so is the chain, and it is linear where nothing is left of
the constants; that decides layouts of any size, for RegP, Row and Col only move bits and the XOR
swizzle is linear by Proposition 4.12. Other permutations are looked at element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from lego_mlir.algebra import Block, Col, GenP, Layout, OrderBy, RegP, Row
from lego_mlir.algebra.blocks import permuted, unflatten
from lego_mlir.analysis.linear import f2
from lego_mlir.analysis.linear.layout import LinearLayout
from lego_mlir.analysis.linear.spaces import Dim, dim, total_bits
from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    import numpy as np

    Table: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

_AFFINE = ("reverse", "swizzle")
"""Named permutations that are affine whatever their size and parameters."""
ENUMERATED = 1 << 22
"""The most elements of one permutation, or of one layout, that are looked at one by one."""


# From the algebra.
def from_layout(layout: Layout, names: Sequence[str] | None = None) -> LinearLayout:
    """Return a layout's `apply` as a linear layout, from its index to `offset`.

    Args:
        layout: its sizes are known and powers of two.
        names: of the dimensions of its index, in the index's order, slowest first; by default
            `dim0, dim1, ...`.

    Raises:
        LegoError: a size is symbolic or no power of two, or the map is not linear over F2: names
            the elements that show it; or that cannot be decided, for the layout has a permutation
            that is not affine and too many elements to look at.
    """
    names = axes(layout.rank, names)
    if layout.symbols:
        symbolic = ", ".join(s.name for s in layout.symbols)
        raise LegoError(
            f"'{layout}' has symbolic sizes ({symbolic})", hint="give them values: layout.bind(...)"
        )
    inputs = tuple(dim(*d) for d in reversed(list(zip(names, _known(layout.dims), strict=True))))
    bits = total_bits(inputs)
    found = _of_chain(layout)
    if isinstance(found, str):
        if sum(isinstance(block, GenP) for stage in layout.stages for block in stage) == 1:
            raise LegoError(f"'{layout}' is not linear over F2, for {found}")
        if 1 << bits > ENUMERATED:
            raise LegoError(
                f"whether '{layout}' is linear over F2 is not known: {found}, and its {1 << bits} "
                "elements are too many to look at whether other blocks make up for it"
            )
        found = _affine(
            lambda flat: layout.apply(*unflatten(layout.dims, flat)),
            _known(layout.dims),
            f"'{layout}'",
        )
    if isinstance(found, str):
        raise LegoError(found)
    if found.shift:
        raise LegoError(
            f"'{layout}' is not linear over F2 but affine: its element 0 goes to {found.shift}, "
            "and a linear map keeps 0 at 0",
            hint=f"it is a linear layout followed by ^ {found.shift}",
        )
    return LinearLayout(inputs, (Dim("offset", bits),), found.columns)


def axes(rank: int, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of a tensor's dimensions: those given, or `dim0, dim1, ...`.

    Raises:
        LegoError: there are not as many as dimensions.
    """
    if names is None:
        return tuple(f"dim{k}" for k in range(rank))
    if isinstance(names, str) or len(names) != rank or len(set(names)) < rank:
        raise LegoError(f"{rank} dimensions need {rank} names of their own, not {names!r}")
    return tuple(names)


@dataclass(frozen=True, slots=True)
class _Affine:
    """`x -> M x ^ shift` on flat positions."""

    columns: f2.Matrix
    shift: int = 0


def _of_chain(layout: Layout) -> _Affine | str:
    """Return the whole chain, or why one of its blocks is not affine."""
    result = _Affine(f2.identity(total_bits(tuple(dim("size", n) for n in _known(layout.dims)))))
    for stage in reversed(layout.stages):
        low: tuple[f2.Matrix, int, int] = (), 0, 0  # columns, shift and bits, innermost first
        for block in reversed(stage):
            found = _of_block(block)
            if isinstance(found, str):
                return found
            columns, shift, bits = low
            columns = (*columns, *(c << bits for c in found.columns))
            low = columns, shift | found.shift << bits, bits + len(found.columns)
        result = _Affine(
            f2.multiply(low[0], result.columns), f2.image(low[0], result.shift) ^ low[1]
        )
    return result


def _of_block(block: Block) -> _Affine | str:
    match block:
        case RegP():
            return _on_basis(block)
        case GenP(permutation=p) if p.functions is None and p.text.partition("(")[0] in _AFFINE:
            return _on_basis(block)
        case GenP(permutation=p) if p.functions and isinstance(p.functions[0], _Function):
            return _Affine(p.functions[0].columns)
    dims = _known(block.dims)
    return _affine(lambda flat: block.apply(unflatten(dims, flat)), dims, block.text)


def _on_basis(block: Block) -> _Affine:
    """Return the map of a block that is known to be affine: where 0 and the powers of two go."""
    dims = _known(block.dims)
    shift = block.apply(unflatten(dims, 0))
    bits = prod(dims).bit_length() - 1
    return _Affine(tuple(block.apply(unflatten(dims, 1 << k)) ^ shift for k in range(bits)), shift)


def _affine(f: Callable[[Any], Any], dims: tuple[int, ...], owner: str) -> _Affine | str:
    """Return the affine map that `f` is on flat positions, or why it is none.

    Of more elements than can be looked at, those whose highest bits are zero are: a space of its
    own, enough to refuse.

    Raises:
        LegoError: `f` leaves the space, or looking at a part of it does not decide.
    """
    import numpy as np

    size = prod(dims)
    seen = min(size, ENUMERATED)
    table: Table = np.broadcast_to(np.asarray(f(np.arange(seen, dtype=np.int64))), (seen,))
    outside = np.flatnonzero((table < 0) | (table >= size))
    if outside.size:
        x = int(outside[0])
        raise LegoError(
            f"{owner} is no permutation: element {unflatten(dims, x)} goes to position "
            f"{int(table[x])}, outside of 0 to {size - 1}"
        )
    shift = int(table[0])
    columns = tuple(int(table[1 << k]) ^ shift for k in range(seen.bit_length() - 1))
    spanned = np.array([shift], dtype=np.int64)
    for column in columns:
        spanned = np.concatenate([spanned, spanned ^ column])
    wrong = np.flatnonzero(table != spanned)
    if wrong.size:
        return _witness(table, int(wrong[0]), dims, owner)
    if seen < size:
        raise LegoError(
            f"whether {owner} is linear over F2 is not known: of its {size} elements only "
            f"{seen} are looked at, and on those it is affine"
        )
    return _Affine(columns, shift)


def _witness(table: Table, x: int, dims: tuple[int, ...], owner: str) -> str:
    """Return what the first element off the span shows; all elements below it are on the span."""
    top = 1 << (x.bit_length() - 1)
    a, b, zero = int(table[top]), int(table[x ^ top]), int(table[0])
    sum_text = f"{a} ^ {b} ^ {zero}" if zero else f"{a} ^ {b}"
    return (
        f"{owner} is not linear over F2, nor affine: elements {unflatten(dims, top)} and "
        f"{unflatten(dims, x ^ top)} go to {a} and {b}, so their XOR {unflatten(dims, x)} "
        f"should go to {sum_text} = {a ^ b ^ zero}, but goes to {int(table[x])}"
    )


def _known(dims: Sequence[Any]) -> tuple[int, ...]:
    return tuple(n for n in dims if isinstance(n, int))


# To the algebra.
def to_layout(linear: LinearLayout) -> Layout:
    """Return the layout of the algebra that is the same bijection: a RegP where it only moves bits.

    Its index are the inputs, slowest first, its offset the flattened outputs.

    Raises:
        LegoError: it is no bijection.
    """
    sizes = tuple(d.size for d in reversed(linear.inputs))
    block = to_regp(linear) if is_bit_permutation(linear) else to_genp(linear)
    layout = OrderBy(block)
    return layout if block.dims == sizes else layout.GroupBy(sizes)


def is_bit_permutation(linear: LinearLayout) -> bool:
    """Return whether it only moves bits: its matrix is a permutation matrix."""
    return linear.is_invertible and all(column.bit_count() == 1 for column in linear.columns)


def to_regp(linear: LinearLayout) -> RegP:
    """Return the bit permutation as a RegP, Row or Col, over the runs of bits that move together.

    Raises:
        LegoError: the matrix is no permutation matrix.
    """
    if not is_bit_permutation(linear):
        raise LegoError(
            f"only a layout that moves bits is a RegP, and this one does more:\n{linear}",
            hint="to_genp takes any bijection",
        )
    runs: list[tuple[int, int]] = []  # where each run goes and its size, fastest first
    images = iter(linear.columns)
    for d in linear.inputs:
        cut = len(runs)
        for column in (next(images) for _ in range(d.bits)):
            if len(runs) > cut and column == runs[-1][0] * runs[-1][1]:
                runs[-1] = runs[-1][0], runs[-1][1] * 2
            else:
                runs.append((column, 2))
    runs.reverse()
    if not runs:
        return Row(*(d.size for d in linear.inputs))
    sizes = tuple(size for _, size in runs)
    order = tuple(sorted(range(len(runs)), key=lambda k: -runs[k][0]))
    if order == tuple(range(len(runs))):
        return Row(*sizes)
    return Col(*sizes) if order == tuple(reversed(range(len(runs)))) else RegP(sizes, order)


def to_genp(linear: LinearLayout) -> GenP:
    """Return the bijection as a GenP, whose functions are the matrix and its inverse as arithmetic.

    Equal matrices have the same functions, named after their columns; to read the text of such a
    layout back, `parse_layout(text, functions={f.__name__: f for f in layout.functions})`.

    Raises:
        LegoError: it is no bijection.
    """
    sizes = tuple(d.size for d in reversed(linear.inputs))
    return GenP(sizes, *_functions(sizes, linear.columns, linear.inverse().columns))


@dataclass(frozen=True, slots=True)
class _Function:
    """A matrix as a function of a GenP: from an index, slowest first, or back to one.

    Attributes:
        name: what a layout's text calls it.
        columns: of the matrix.
        sources: the sizes of what it takes.
        targets: the sizes of what it returns.
    """

    name: str
    columns: f2.Matrix
    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *values: Any) -> Any:
        inputs = tuple(dim(f"x{k}", n) for k, n in enumerate(self.sources))
        outputs = tuple(dim(f"y{k}", n) for k, n in enumerate(self.targets))
        layout = LinearLayout(inputs[::-1], outputs[::-1], self.columns)
        index = {f"x{k}": value for k, value in enumerate(values)}
        results = permuted(tuple(layout.apply(**index).values()), range(len(outputs))[::-1])
        return results if len(results) > 1 else results[0]


@cache
def _functions(
    sizes: tuple[int, ...], columns: f2.Matrix, inverse: f2.Matrix
) -> tuple[_Function, _Function]:
    """One pair for equal matrices: modules tell functions of one name apart by identity."""
    shape, images = "x".join(map(str, sizes)), "_".join(map(str, columns))
    name, flat = f"linear_{shape}_by_{images}", (1 << len(columns),)
    return (
        _Function(name, columns, sizes, flat),
        _Function(f"{name}_inverse", inverse, flat, sizes),
    )
