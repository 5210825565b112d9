"""How wide the numbers are that computing an expression takes: whether 32 bits will do."""

from __future__ import annotations

from lego_mlir.index.nodes import Int, ISqrt, Poly, Spelled, Sym
from lego_mlir.index.ranges import bounds


def widest(x: Int) -> int | None:
    """The greatest magnitude among the values that printing `x` computes; `None` if unbounded."""
    worst = 0
    stack: list[Int] = [x]
    seen: set[Int] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        lo, hi = bounds(node)
        if lo is None or hi is None:
            return None
        worst = max(worst, abs(lo), abs(hi))
        match node:
            case int() | Sym():
                continue
            case Spelled(_, form):
                stack.append(form)
            case Poly(constant, terms):
                # Every partial sum lies between the sum of all negative and of all positive terms.
                parts = [Poly(0, ((mono, c),)) for mono, c in terms]
                ends = [bounds(p) for p in parts]
                if any(lo is None or hi is None for lo, hi in ends):
                    return None
                spread = sum(max(abs(lo or 0), abs(hi or 0)) for lo, hi in ends)
                worst = max(worst, spread + abs(constant))
                stack.extend(atom for mono, _ in terms for atom, _ in mono)
            case ISqrt(a):
                worst = max(worst, (bounds(a)[1] or 0) * 2 + 4)
                stack.append(a)
            case _:
                stack.extend(getattr(node, f) for f in node.__match_args__)
    return worst
