"""Index expressions as text, in Python's notation: `32*(b // 32) + t % 32`."""

from __future__ import annotations

from lego_mlir.index.nodes import (
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
    Spelled,
    Sym,
    Where,
    Xor,
)

_SUM, _PRODUCT, _ATOM = 1, 2, 3


def to_text(x: Int) -> str:
    """`x` as Python would write it."""
    return _text(x, _SUM)


def _text(x: Int, level: int) -> str:
    text, own = _with_level(x)
    return f"({text})" if own < level else text


def _with_level(x: Int) -> tuple[str, int]:
    match x:
        case int():
            return str(x), _ATOM if x >= 0 else _SUM
        case Sym(name):
            return name, _ATOM
        case Poly(constant, terms):
            pieces = [_term(c, mono) for mono, c in terms]
            if constant:
                pieces.append(str(constant))
            level = _PRODUCT if len(pieces) == 1 and not pieces[0].startswith("-") else _SUM
            return " + ".join(pieces).replace("+ -", "- "), level
        case FloorDiv(num, den):
            return f"{_text(num, _ATOM)}//{_text(den, _ATOM)}", _PRODUCT
        case Mod(num, den):
            return f"{_text(num, _ATOM)}%{_text(den, _ATOM)}", _PRODUCT
        case Mul(a, b):
            return f"{_text(a, _ATOM)}*{_text(b, _ATOM)}", _PRODUCT
        case Spelled(_, form):
            return _with_level(form)
        case Xor(a, b):
            return f"({_text(a, _ATOM)} ^ {_text(b, _ATOM)})", _ATOM
        case Less(a, b):
            return f"({to_text(a)} < {to_text(b)})", _ATOM
        case Min(a, b):
            return f"min({to_text(a)}, {to_text(b)})", _ATOM
        case Max(a, b):
            return f"max({to_text(a)}, {to_text(b)})", _ATOM
        case ISqrt(a):
            return f"isqrt({to_text(a)})", _ATOM
        case Where(condition, a, b):
            return f"where({to_text(condition)}, {to_text(a)}, {to_text(b)})", _ATOM
    raise AssertionError(f"no text for {type(x).__name__}")


def _term(coefficient: int, mono: Mono) -> str:
    factors = [_text(atom, _ATOM) for atom, power in mono for _ in range(power)]
    if coefficient == 1:
        return "*".join(factors) if len(factors) > 1 else _text(mono[0][0], _PRODUCT)
    if coefficient == -1:
        return "-" + "*".join(factors)
    return "*".join([str(coefficient), *factors])
