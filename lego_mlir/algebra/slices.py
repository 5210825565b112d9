"""Slices of a layout: `layout[i, k, :, :]`, the tile of offsets at some indices.

Where `:` stands the whole dimension is meant; the other dimensions have their index. A slice tells
where the elements of the tile lie, and how many of them lie one after another, so that they can be
read at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import TYPE_CHECKING, Any, cast

from lego_mlir.algebra import partial
from lego_mlir.algebra.blocks import Sizes
from lego_mlir.algebra.permutations import Index
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Expr, Int, Sym, construct, polynomial, substitute
from lego_mlir.index.nodes import Xor
from lego_mlir.index.proofs import prover

if TYPE_CHECKING:
    import numpy as np

    from lego_mlir.algebra.layout import Layout

    Array = np.ndarray[tuple[int, ...], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Slice:
    """Some dimensions of a layout, the others at one index each. Made by `layout[i, :]`.

    Attributes:
        layout: what it is a slice of.
        index: one entry a dimension of the layout; `None` where the dimension is whole.
    """

    layout: Layout
    index: tuple[Any, ...]

    @property
    def shape(self) -> Sizes:
        """The sizes of the whole dimensions."""
        dims = zip(self.layout.dims, self.index, strict=True)
        return tuple(n for n, i in dims if i is None)

    @property
    def base(self) -> Any:
        """The offset of the first element."""
        return self.offset(*(0 for _ in self.shape))

    def __str__(self) -> str:
        return f"{self.layout}[{', '.join(':' if i is None else str(i) for i in self.index)}]"

    def offset(self, *free: Any) -> Any:
        """Return the offset of the element at an index of the slice, as `Layout.apply` gives it."""
        return self.layout.apply(*self._full(free))

    def mask(self, *free: Any) -> Any:
        """Return 1 if there is an element at an index of the slice, as `Layout.mask` does."""
        return self.layout.mask(*self._full(free))

    def limits(self, *free: Any) -> list[tuple[Any, Int]]:
        """Return what the mask compares at an index of the slice: coordinates and limits."""
        return self.layout.limits(self._full(free))

    def padding_limits(self, *free: Any) -> list[tuple[Any, Int]]:
        """Return those limits that come from padding: `Layout.padding_limits`."""
        return self.layout.padding_limits(self._full(free))

    def offsets(self) -> Array:
        """Return the offsets of all elements: an int64 array of shape `shape`, which is read-only.

        Raises:
            LegoError: a size is symbolic, an index is no number, or a part is padding.
        """
        fixed = (i for i in self.index if i is not None)
        if not all(isinstance(n, int) for n in (*self.shape, *fixed)):
            raise LegoError(
                f"the offsets of '{self}' are not all numbers",
                hint="give the sizes values by layout.bind(...), and integers as indices",
            )
        return _enumerated(self)

    @property
    def contiguous(self) -> Int:
        """How many elements, from any multiple of this on, are proven to lie one after another.

        They are counted in row-major order: trailing dimensions as long as they are contiguous
        together, and of the next one a part that divides it.
        """
        free = self.symbols
        offset = self._proven(free)
        run: Int = 1
        for s, n in zip(reversed(free), reversed(self.shape), strict=True):
            if _is_step(offset, s, run) or (isinstance(n, int) and _is_run(offset, s, n, run)):
                run = construct.mul(run, n)
                continue
            parts = _divisors(n) if isinstance(n, int) else []
            return construct.mul(run, next((d for d in parts if _is_run(offset, s, d, run)), 1))
        return run

    @property
    def run(self) -> int:
        """How many elements, from any multiple of this on, can be accessed at once.

        They lie one after another, and exist all or none of them. The sizes must be known.
        """
        every = _run_anywhere(self.layout, tuple(i is None for i in self.index))
        if every == prod(cast("tuple[int, ...]", self.shape)):
            return every
        return self._longest_run()

    def _longest_run(self) -> int:
        contiguous = self.contiguous
        assert isinstance(contiguous, int), "a slice of known sizes"
        return next(d for d in (contiguous, *_divisors(contiguous), 1) if self._is_uniform(d))

    def _full(self, free: Index) -> Index:
        if len(free) == 1 and isinstance(free[0], tuple | list):
            free = tuple(free[0])
        if len(free) != len(self.shape):
            raise LegoError(
                f"'{self}' takes {len(self.shape)} indices ({sizes_text(self.shape)}), "
                f"got {len(free)}"
            )
        values = iter(free)
        return tuple(next(values) if i is None else i for i in self.index)

    @property
    def symbols(self) -> tuple[Sym, ...]:
        """A symbol for the index of each whole dimension."""
        return tuple(Sym(f"slice {k}", 0, construct.sub(n, 1)) for k, n in enumerate(self.shape))

    def _symbolic(self, free: Index) -> Index:
        """Return the full index for a proof; an entry not proven in range becomes a symbol."""
        full = zip(self._full(free), self.layout.dims, strict=True)
        return tuple(
            i
            if isinstance(i, int) or (isinstance(i, Expr) and prover.is_within(i, n))
            else Sym(f"index {k}", 0, construct.sub(n, 1))
            for k, (i, n) in enumerate(full)
        )

    def _proven(self, free: Index) -> Int:
        return cast("Int", self.layout.apply(*self._symbolic(free)))

    def _is_uniform(self, run: int) -> bool:
        """Return whether the mask is the same all over each `run` elements."""
        split = _within_runs(cast("tuple[int, ...]", self.shape), run)
        if split is None:
            return False
        firsts, others = (self.layout.limits(self._symbolic(index)) for index in split)
        return all(
            partial.is_uniform(n, first, other)
            for (first, n), (other, _) in zip(firsts, others, strict=True)
        )


@lru_cache(maxsize=16)
def _enumerated(piece: Slice) -> Array:
    """Return the offsets; both the copies and the GEMM of a tile in shared memory ask for them."""
    import numpy as np

    shape = cast("tuple[int, ...]", piece.shape)
    found = np.asarray(piece.offset(*np.indices(shape, dtype=np.int64)), dtype=np.int64)
    return np.broadcast_to(found, shape)


@lru_cache(maxsize=1024)
def _run_anywhere(layout: Layout, whole: tuple[bool, ...]) -> int:
    """Return the run of a slice at an unknown index: at any index it is at least as long."""
    index = (None if w else Sym(f"at {k}") for k, w in enumerate(whole))
    return Slice(layout, tuple(index))._longest_run()


def make_slice(layout: Layout, item: Any) -> Slice:
    """Return `layout[item]`.

    Raises:
        LegoError: a wrong number of indices, or a slice that is not `:`.
    """
    entries = list(item) if isinstance(item, tuple) else [item]
    if (dots := sum(i is ... for i in entries)) > 1:
        raise LegoError(f"'{layout}' is sliced with {dots} times '...', which of them is meant?")
    if dots:
        at = next(k for k, i in enumerate(entries) if i is ...)
        entries[at : at + 1] = [slice(None)] * (layout.rank + 1 - len(entries))
    if len(entries) != layout.rank:
        dims = sizes_text(layout.dims)[1:-1]
        raise LegoError(
            f"'{layout}' takes {layout.rank} indices ({dims}), got {len(entries)}",
            hint="':' is a whole dimension, '...' all that are not named",
        )
    return Slice(layout, tuple(_entry(layout, k, i) for k, i in enumerate(entries)))


def _entry(layout: Layout, k: int, i: Any) -> Any:
    match i:
        case slice(start=None, stop=None, step=None):
            return None
        case slice():
            raise LegoError(
                f"dimension {k} of '{layout}' cannot be sliced by a part: only ':' is known",
                hint="split the dimension by a level of TileBy, and index the tile; kernels on "
                "tiles take x.tile(4, 64)[i, j], tile (i, j) of a grid of tiles",
            )
        case None:
            raise LegoError(f"index {k} of '{layout}' must be an integer or ':', not None")
    return i


def _is_step(offset: Int, s: Sym, run: Int) -> bool:
    """Return whether the offset grows by `run` a step of `s`, whatever the rest is."""
    moved = construct.sub(offset, substitute(offset, {s: 0}))
    difference = construct.sub(moved, construct.mul(run, s))
    return isinstance(difference, int) and difference == 0


def _is_run(offset: Int, s: Sym, part: int, run: Int) -> bool:
    """Return the same within each `part` steps of `s`."""
    whole, inner = Sym("whole", 0), Sym("inner", 0, part - 1)
    split = construct.add(construct.mul(part, whole), inner)
    return _is_step(_with_low_part_apart(substitute(offset, {s: split}), part), inner, run)


def _with_low_part_apart(x: Int, part: int) -> Int:
    """Split the XOR terms of `x`: `(8*p) ^ (8*q + r)`, a swizzle, is `8*(p ^ q) + r`."""
    constant, terms = polynomial.parts(x)
    total: Int = constant
    for mono, coefficient in terms.items():
        summand = polynomial.term(coefficient, mono)
        match mono:
            case ((Xor() as swizzled, 1),):
                high, low = construct.floordiv(swizzled, part), construct.mod(swizzled, part)
                apart = construct.add(construct.mul(part, high), low)
                summand = construct.mul(coefficient, apart)
        total = construct.add(total, summand)
    return total


def _within_runs(shape: tuple[int, ...], run: int) -> tuple[Index, Index] | None:
    """Return the index of a run's first element and of any; `None` if runs cross rows."""
    firsts: list[Int] = []
    others: list[Int] = []
    left = run
    for k, n in reversed(list(enumerate(shape))):
        inner = gcd(n, left)
        left //= inner
        if left > 1 and inner < n:
            return None
        whole, part = Sym(f"run {k}", 0, n // inner - 1), Sym(f"part {k}", 0, inner - 1)
        first = construct.mul(inner, whole)
        firsts.insert(0, first)
        others.insert(0, construct.add(first, part))
    return tuple(firsts), tuple(others)


def _divisors(n: int) -> list[int]:
    """Return those between 1 and n, the greatest first."""
    return [d for d in range(n // 2, 1, -1) if n % d == 0]
