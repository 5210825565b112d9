"""Sums of bit fields, in which each field takes a shift and a mask.

A quotient and a remainder by powers of two are bits of a number, and a factor that is a power of
two moves them. Fields that move by the same distance are taken out together:

    2*(x // 1024 % 4) + x // 8 % 2          ->   (x // 512 & 6) + (x // 8 & 1)
    4*(x // 32 % 2) + x // 8 % 2            ->   x // 8 & 5
    8*(x // 8)                              ->   x & -8

The bits of a negative number are those of its two's complement, as `//` and `%` round. A mask has
no normal form of its own, so this is done to finished expressions alone (`extraction.forms`).
"""

from __future__ import annotations

from collections.abc import Iterator

from lego_mlir.index import construct
from lego_mlir.index.nodes import (
    Bits,
    Expr,
    FloorDiv,
    Int,
    ISqrt,
    Less,
    Max,
    Min,
    Mod,
    Mono,
    Mul,
    Poly,
    Where,
    WithForm,
    Xor,
)
from lego_mlir.index.structure import children, mono_order

_Field = tuple[Expr, int, int]
"""A number, the mask of its bits that are taken, and how far they move: up, or down if negative."""

_Member = tuple[Mono, int, int]
"""A term, its coefficient, and the mask of the bits that it is."""

_OF_OPERANDS = (FloorDiv, Mod, Xor, Min, Max, ISqrt, Less, Where, Mul)
"""The nodes whose fields are operands."""


def with_bit_fields(x: Int) -> Int:
    """Return an expression with its bit fields as masks, wherever that saves an operation."""
    if isinstance(x, WithForm):
        return with_bit_fields(x.form)
    if isinstance(x, Poly):
        return _sum(x)
    if not isinstance(x, _OF_OPERANDS):
        return x
    operands = list(children(x))
    found = [with_bit_fields(operand) for operand in operands]
    # The constructors are not used, because they take operands for their normal form.
    return x if found == operands else type(x)(*found)


def _sum(x: Poly) -> Int:
    fields: dict[tuple[Expr, int, int], list[_Member]] = {}
    rest: dict[Mono, int] = {}
    for mono, coefficient in x.terms:
        field = _field(mono, abs(coefficient))
        if field is None:
            rest[mono] = coefficient
        else:
            number, mask, distance = field
            key = (number, distance, 1 if coefficient > 0 else -1)
            fields.setdefault(key, []).append((mono, coefficient, mask))
    for (number, distance, sign), members in fields.items():
        for mask, group in _disjoint(members):
            if len(group) == 1 and not _is_shorter(*group[0][:2]):
                rest[group[0][0]] = group[0][1]
                continue
            moved = mask >> -distance if distance < 0 else mask
            source = construct.floordiv(number, 1 << -distance) if distance < 0 else number
            assert isinstance(source, Expr)
            mono = ((Bits(with_bit_fields(source), moved), 1),)
            rest[mono] = rest.get(mono, 0) + (sign << max(distance, 0))
    found = {
        tuple((_atom(atom), power) for atom, power in mono): coefficient
        for mono, coefficient in rest.items()
    }
    if found.keys() == dict(x.terms).keys() or len(found) < len(rest):
        return x
    terms = tuple(sorted(found.items(), key=lambda term: mono_order(term[0])))
    if not x.constant and len(terms) == 1 and terms[0][1] == 1:
        ((alone, power), *others) = terms[0][0]
        if power == 1 and not others:
            return alone
    return Poly(x.constant, terms)


def _atom(x: Expr) -> Expr:
    found = with_bit_fields(x)
    assert isinstance(found, Expr)
    return found


def _disjoint(members: list[_Member]) -> Iterator[tuple[int, list[_Member]]]:
    """Yield groups of fields that have no bit in common, each with its bits."""
    while members:
        mask, group, others = 0, [], []
        for member in members:
            if mask & member[2]:
                others.append(member)
            else:
                mask |= member[2]
                group.append(member)
        yield mask, group
        members = others


def _field(mono: Mono, coefficient: int) -> _Field | None:
    """Return the bit field that a term is; None if it is none."""
    match mono:
        case ((Mod(num, int(den)), 1),) if _is_power(den) and _is_power(coefficient):
            mask = den - 1
        case ((FloorDiv() as num, 1),) if _is_power(coefficient):
            mask = -1
        case _:
            return None
    shift = 0
    if isinstance(num, FloorDiv) and isinstance(num.den, int) and _is_power(num.den):
        shift, num = num.den.bit_length() - 1, num.num
    elif mask == -1:
        return None
    moved = coefficient.bit_length() - 1
    if mask == -1 and moved > shift:
        return None
    return num, mask << shift, moved - shift


def _is_shorter(mono: Mono, coefficient: int) -> bool:
    """Return whether a field alone takes fewer operations as a mask."""
    ((atom, _),) = mono
    if isinstance(atom, FloorDiv):
        return abs(coefficient) == atom.den != 1
    return abs(coefficient) > 1 and isinstance(atom, Mod) and isinstance(atom.num, FloorDiv)


def _is_power(x: Int) -> bool:
    return isinstance(x, int) and x > 0 and x & (x - 1) == 0
