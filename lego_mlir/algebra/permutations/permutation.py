"""What a permutation of a tile is, and the canonical bijection that the families below share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from lego_mlir.index import Int

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
        is_involution: whether it undoes itself, as a map from flat position to flat position.
        inverse_of: of an inverse, the permutation that it undoes.
        divisors: for each dimension a number that has to divide it; `()` where none has to. In a
            layout's text, the permutation says so of a size that is a symbol, as `M/8` does.
    """

    text: str
    forward: Callable[[tuple[Int, ...], Index], Any] = field(compare=False, repr=False)
    inverse: Callable[[tuple[Int, ...], Any], Index] = field(compare=False, repr=False)
    check: Callable[[tuple[Int, ...]], None] = field(
        default=lambda dims: None, compare=False, repr=False
    )
    functions: tuple[Callable[..., Any], Callable[..., Any]] | None = None
    is_involution: bool = field(default=False, compare=False, repr=False)
    inverse_of: Permutation | None = field(default=None, compare=False, repr=False)
    divisors: tuple[int, ...] = field(default=(), compare=False, repr=False)


def flatten(dims: Sequence[Int], index: Sequence[Any]) -> Any:
    """Return the row-major flat position of `index`."""
    flat = index[0]
    for n, i in zip(dims[1:], index[1:], strict=True):
        flat = flat * n + i
    return flat


def unflatten(dims: Sequence[Int], flat: Any) -> Index:
    """Return the inverse of `flatten`."""
    reverse_index = []
    for n in reversed(dims[1:]):
        reverse_index.append(flat % n)
        flat = flat // n
    return (flat, *reversed(reverse_index))


def is_power_of_two(n: Any) -> bool:
    """Return whether `n` is a number, and 1, 2, 4, 8, ..."""
    return isinstance(n, int) and n > 0 and n & (n - 1) == 0


def log2(n: Int) -> int:
    """Return the k of a size that was checked to be `2**k`."""
    assert isinstance(n, int)
    return n.bit_length() - 1
