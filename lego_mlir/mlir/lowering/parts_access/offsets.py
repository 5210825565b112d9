"""Where the elements of a thread's registers lie.

A tile's registers are the product of factors, each with a dimension of the layout, a size and a
stride. The offset is derived once, with a symbol for the digit of each factor. In most layouts it
is linear in them, so the offset of a register is a base, the same for all, and a constant. Where it
is not, as in swizzles, what is not linear is derived again for each value of the digits in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import cast

from lego_mlir.algebra import Layout
from lego_mlir.algebra.strided import derived_inside
from lego_mlir.index import Int, Sym, construct, polynomial, substitute, symbols
from lego_mlir.index.nodes import Xor, plain
from lego_mlir.mlir.lowering.derivations import derive_offset

Factor = tuple[int, int, int]
"""A register factor: the dimension of the layout, the size, and the stride along it."""

_MOST_LOW_BITS = 4
"""Bits of the position in 16 bytes, the widest access."""

Place = tuple[Int, int]
"""A base and what is added to it."""


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers of a thread, and the index that each of them has.

    Attributes:
        index: the index in the layout, an expression in `digits`.
        digits: a symbol for the digit of each factor, slowest first.
    """

    index: tuple[Int, ...]
    digits: tuple[Sym, ...]

    @classmethod
    def of(cls, first: Sequence[Int], factors: Sequence[Factor]) -> Registers:
        """Return the registers of a thread whose first element has the index `first`."""
        index = list(first)
        digits = []
        for k, (dim, size, stride) in enumerate(factors):
            digit = Sym(f"register {k}", 0, size - 1)
            digits.append(digit)
            index[dim] = construct.add(index[dim], construct.mul(stride, digit))
        return cls(tuple(index), tuple(digits))

    @property
    def count(self) -> int:
        """The number of registers."""
        return prod(map(_size, self.digits))

    def places(self, x: Int) -> list[Place]:
        """Return the value of an expression in the digits for each register."""
        constant, terms = polynomial.parts(plain(x))
        strides: dict[Sym, int] = {}
        same: polynomial.Terms = {}
        others: polynomial.Terms = {}
        for mono, coefficient in terms.items():
            match mono:
                case ((Sym() as digit, 1),) if digit in self.digits:
                    strides[digit] = coefficient
                case _ if any(d in symbols(atom) for atom, _ in mono for d in self.digits):
                    others[mono] = coefficient
                case _:
                    same[mono] = coefficient
        first, more = _split(polynomial.build(0, same))
        constants = [constant + more]
        for digit in self.digits:
            stride = strides.get(digit, 0)
            steps = [stride * value for value in range(_size(digit))]
            constants = [c + step for c in constants for step in steps]
        rest = polynomial.build(0, others)
        varying = tuple(d for d in self.digits if d in symbols(rest))
        if not varying:
            return [(first, c) for c in constants]
        bases: dict[Int, Int] = {}
        places = []
        for values, c in zip(
            product(*(range(_size(d)) for d in self.digits)), constants, strict=True
        ):
            key = tuple(x for x, d in zip(values, self.digits, strict=True) if d in varying)
            base, more = _at(rest, varying, key)
            if base not in bases:
                bases[base] = construct.add(first, base)
            places.append((bases[base], c + more))
        return places


def _size(digit: Sym) -> int:
    """Return the number of values of a digit."""
    return cast("int", digit.hi) + 1


@lru_cache(maxsize=1 << 12)
def _at(x: Int, digits: tuple[Sym, ...], values: tuple[int, ...]) -> Place:
    """Return the value of an expression for values of digits; kernels use few swizzles."""
    return _split(substitute(x, dict(zip(digits, values, strict=True))))


def _split(x: Int) -> Place:
    """Return an expression as a base and a constant.

    The low bits of an XOR, where they are a constant, are added to the rest: (8 p) ^ (8 q + 3), of
    a swizzle, is 8 (p ^ q) + 3.
    """
    constant, terms = polynomial.parts(x)
    for mono, coefficient in list(terms.items()):
        match mono:
            case ((Xor() as swizzled, 1),):
                del terms[mono]
                apart = polynomial.times(_with_low_bits_apart(swizzled), (coefficient, {}))
                constant, terms = polynomial.plus((constant, terms), apart)
    return polynomial.build(0, terms), constant


def _with_low_bits_apart(x: Xor) -> polynomial.Parts:
    """Return an XOR as the sum of its low bits, as far as they are a constant, and the others."""
    for bits in range(_MOST_LOW_BITS, 0, -1):
        low = construct.mod(x, 1 << bits)
        if isinstance(low, int):
            high = polynomial.parts(construct.floordiv(x, 1 << bits))
            return polynomial.plus((low, {}), polynomial.times(high, (1 << bits, {})))
    return 0, {((x, 1),): 1}


def last_index(first: Sequence[Int], factors: Sequence[Factor]) -> tuple[Int, ...]:
    """Return the index of a thread's element that lies furthest from its first one."""
    index = list(first)
    for dim, size, stride in factors:
        index[dim] = construct.add(index[dim], (size - 1) * stride)
    return tuple(index)


def offset_of(layout: Layout, index: Sequence[Int]) -> Int:
    """Return the offset at an index, right where the index is inside of the dimensions."""
    return derived_inside(lambda *at: derive_offset(layout, at), layout.dims, index)  # type: ignore[no-any-return]
