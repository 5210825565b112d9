"""Named permutations of a tile, for GenP: each a pair of functions that invert one another.

They are written with the operators and the functions of `index.functions` alone, so they run on
integers, arrays and symbols alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, isqrt, where

Index: TypeAlias = tuple[Any, ...]
"""One value a dimension: ints, arrays or expressions."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """A bijection between the index space of a tile and its flat space.

    Attributes:
        text: how it is written in a layout.
        forward: dims, index -> flat position.
        inverse: dims, flat position -> index.
        check: raises LegoError for dims that it cannot permute.
        functions: of a user's own permutation, the pair it was made from.
    """

    text: str
    forward: Callable[[tuple[Int, ...], Index], Any] = field(compare=False, repr=False)
    inverse: Callable[[tuple[Int, ...], Any], Index] = field(compare=False, repr=False)
    check: Callable[[tuple[Int, ...]], None] = field(
        default=lambda dims: None, compare=False, repr=False
    )
    functions: tuple[Callable[..., Any], Callable[..., Any]] | None = None


def from_functions(
    f: Callable[..., Any], f_inv: Callable[..., Any], text: str | None = None
) -> Permutation:
    """A user's own permutation.

    Args:
        f: takes one index a dimension, returns the flat position.
        f_inv: takes the flat position, returns the tuple of indices.
        text: how it is written in a layout; by default by the functions' names.
    """

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        index = f_inv(flat)
        index = tuple(index) if isinstance(index, tuple | list) else (index,)
        if len(index) != len(dims):
            raise LegoError(
                f"GenP: the inverse function returns {len(index)} indices, the tile has {len(dims)}"
            )
        return index

    if text is None:
        text = f"@{_name_of(f)}, @{_name_of(f_inv)}"
    return Permutation(text, lambda dims, index: f(*index), inverse, functions=(f, f_inv))


def _name_of(f: Callable[..., Any]) -> str:
    name = getattr(f, "__name__", "")
    if not name.isidentifier():
        raise LegoError(
            f"GenP: a permutation function needs a name to be printed by, {name or f!r} is none",
            hint="define it with def",
        )
    return name


def _antidiagonal(dims: tuple[Int, ...], index: Index) -> Any:
    n, (i, j) = dims[0], index
    s = i + j + 1
    t = 2 * n - s
    upper = i + s * (s - 1) // 2
    lower = n * n - n + i - t * (t - 1) // 2
    return where(s <= n, upper, lower)


def _antidiagonal_inverse(dims: tuple[Int, ...], flat: Any) -> Index:
    n = dims[0]
    in_upper = flat < n * (n + 1) // 2
    x = where(in_upper, flat, n * n - 1 - flat)
    # The diagonal that holds x: the a-th has a elements and starts at a*(a-1)/2.
    root = isqrt(2 * x)
    a = root + where(x >= root * (root + 1) // 2, 1, 0)
    i = x - a * (a - 1) // 2
    j = a - i - 1
    return where(in_upper, i, n - 1 - i), where(in_upper, j, n - 1 - j)


def _check_square(dims: tuple[Int, ...]) -> None:
    if len(dims) != 2 or dims[0] != dims[1]:
        raise LegoError(f"antidiagonal permutes a square tile, not {list(dims)}")


antidiagonal = Permutation(
    "antidiagonal", _antidiagonal, _antidiagonal_inverse, check=_check_square
)
"""Elements in the order of the anti-diagonals of an n×n tile (papers/lego, Figure 8)."""


def _flatten(dims: tuple[Int, ...], index: Index) -> Any:
    flat = index[0]
    for n, i in zip(dims[1:], index[1:], strict=True):
        flat = flat * n + i
    return flat


def _unflatten(dims: tuple[Int, ...], flat: Any) -> Index:
    reverse_index = []
    for n in reversed(dims[1:]):
        reverse_index.append(flat % n)
        flat = flat // n
    return (flat, *reversed(reverse_index))


reverse = Permutation(
    "reverse",
    lambda dims, index: _flatten(dims, tuple(n - 1 - i for n, i in zip(dims, index, strict=True))),
    lambda dims, flat: tuple(n - 1 - i for n, i in zip(dims, _unflatten(dims, flat), strict=True)),
)
"""Every dimension backwards."""


def swizzle(vec: int = 1, per_phase: int = 1, max_phase: int | None = None) -> Permutation:
    """The XOR swizzle of a two-dimensional tile in shared memory.

    Row i keeps its place; within it, chunks of `vec` elements are permuted by XOR with the row's
    phase: chunk c of row i goes to `c ^ ((i // per_phase) % max_phase)` (papers/linear_layouts,
    Definition 4.11). Reading a column then touches `max_phase` different chunk positions, where
    a plain row-major tile touches one.

    Args:
        vec: elements a chunk; chunks stay contiguous.
        per_phase: rows that share a phase.
        max_phase: number of phases; by default as many as a row has chunks, at most one a row.

    Raises:
        LegoError: on use, if the tile is not two-dimensional or anything is no power of two.
    """
    given = (vec, per_phase) if max_phase is None else (vec, per_phase, max_phase)
    for n in given:
        if not _is_power_of_two(n):
            raise LegoError(f"swizzle: vec, per_phase and max_phase are powers of two, not {n}")

    def phases(dims: tuple[Int, ...]) -> int:
        rows, columns = dims
        assert isinstance(rows, int)
        assert isinstance(columns, int)
        return max_phase or max(1, min(rows // per_phase, columns // vec))

    def check(dims: tuple[Int, ...]) -> None:
        if len(dims) != 2 or not all(_is_power_of_two(n) for n in dims):
            raise LegoError(
                f"swizzle permutes a tile of two dimensions that are powers of two, "
                f"not {list(dims)}"
            )
        columns = dims[1]
        assert isinstance(columns, int)
        if phases(dims) * vec > columns:
            raise LegoError(
                f"swizzle: {phases(dims)} phases of {vec} elements do not fit a row of {columns}"
            )

    def chunk(dims: tuple[Int, ...], i: Any, j: Any) -> Any:
        return ((j // vec) ^ ((i // per_phase) % phases(dims))) * vec + j % vec

    def forward(dims: tuple[Int, ...], index: Index) -> Any:
        i, j = index
        return i * dims[1] + chunk(dims, i, j)

    def inverse(dims: tuple[Int, ...], flat: Any) -> Index:
        i, j = _unflatten(dims, flat)
        return i, chunk(dims, i, j)

    plain = max_phase is None and vec == 1 and per_phase == 1
    text = "swizzle" if plain else f"swizzle({', '.join(str(n) for n in given)})"
    return Permutation(text, forward, inverse, check)


def _is_power_of_two(n: Any) -> bool:
    return isinstance(n, int) and n > 0 and n & (n - 1) == 0


def named(name: str, parameters: tuple[int, ...]) -> Permutation | None:
    """The permutation that a layout's text calls `name`, or `None` if there is none.

    Raises:
        LegoError: its parameters are wrong.
    """
    if name == "swizzle":
        if len(parameters) > 3:
            raise LegoError(
                f"swizzle takes vec, per_phase and max_phase, not {len(parameters)} numbers"
            )
        return swizzle(*parameters)
    fixed = {"antidiagonal": antidiagonal, "reverse": reverse}.get(name)
    if fixed is not None and parameters:
        raise LegoError(f"{name} takes no parameters")
    return fixed


NAMES = ("antidiagonal", "reverse", "swizzle")
"""What a layout's text may name."""
