"""Is a layout a bijection onto 0 .. size-1, and `inv` its inverse?

Composition keeps bijections, and a layout's parts all have equally many elements (of partial
tiles: those that the mask has), so the question is one for each block alone. RegP, Row, Col and
the permutations of this library are bijections by construction, at every size. A user's own pair
of functions is looked at:

- on every element, where the tile has known sizes and is not too large;
- else by Z3, on the index expressions that are derived from the functions. It is enough that
  `0 <= f(i) < size` and `f_inv(f(i)) = i`: a tile has as many elements as positions, so what is
  one to one is onto, and an inverse from the left is one from the right. Before, elements are
  sampled, as most mistakes show at once.

What neither settles stays unknown, and the verdict says so. `injectivity` looks at windows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, get_args

from lego_mlir.algebra.blocks import Block, GenP, RegP
from lego_mlir.algebra.sizes import sizes_text
from lego_mlir.algebra.verification.enumeration import (
    Function,
    Pair,
    Violation,
    all_elements,
    as_points,
    called,
    check_agreement,
    find_violation,
    sample_elements,
    violation_at,
)
from lego_mlir.algebra.verification.injectivity import verify_bijective
from lego_mlir.algebra.verification.verdict import Method, Verdict
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, construct, nodes, structure, symbols
from lego_mlir.index.evaluate import evaluate
from lego_mlir.index.proofs import prover, samples
from lego_mlir.index.work import measured

if TYPE_CHECKING:
    from lego_mlir.algebra.layout import Layout

MOST_ELEMENTS = 1 << 22
"""Larger tiles are not looked at element by element."""

MOST_CALLS = 1 << 18
"""The limit for functions that do not take arrays."""

_SMALL = 1 << 9
"""The largest tile that stands for one with symbolic sizes, in elements."""

_METHODS = get_args(Method)


def verify(layout: Layout, method: Method | None = None) -> Verdict:
    """Return whether `layout` is a bijection onto 0 .. size-1 and `inv` its inverse.

    Args:
        layout: with known or symbolic sizes.
        method: `None` for whichever settles it. "construction" trusts the blocks and nothing
            else; "enumeration" and "proof" trust no block, not even those of the library.

    Raises:
        LegoError: a user's function raises something, returns what is no integer, uses a symbol
            that is no size of its tile, or means one thing for integers and another for symbols.
    """
    if method is not None and method not in _METHODS:
        raise LegoError(f"verify: the method is one of {', '.join(_METHODS)}, not {method!r}")
    if method is None and not layout.functions:
        return _of_known(layout)
    return _verified(layout, method)


@lru_cache(maxsize=1 << 12)
def _of_known(layout: Layout) -> Verdict:
    """Return the verdict on permutations that are not a user's functions: it never changes."""
    return _verified(layout, None)


def _verified(layout: Layout, method: Method | None) -> Verdict:
    if layout.window is not None:
        return verify_bijective(layout)
    with measured():
        found = [_of_block(b, method) for order in layout.orders for b in order.blocks]
    for holds in (False, None):
        for verdict in found:
            if verdict.holds is holds:
                return verdict
    how: Method = max((v.method for v in found), key=_METHODS.index, default="construction")
    looked_at = dict.fromkeys(v.detail for v in found if v.method != "construction")
    detail = "; ".join(looked_at) or f"'{layout}' is a bijection by its construction"
    return Verdict(True, how, detail)


def _of_block(block: Block, method: Method | None) -> Verdict:
    if method in (None, "construction"):
        if _is_known(block):
            return Verdict(True, "construction", f"{block.text} is a bijection by construction")
        if method is not None:
            return Verdict(None, method, f"{block.text} is what its functions make it")
    reason = _why_not_enumerated(block)
    if method == "enumeration" and reason is not None:
        return Verdict(None, method, f"{block.text} {reason}")
    if method == "proof" or reason is not None:
        return _by_proof(block)
    return _by_enumeration(block)


def _is_known(block: Block) -> bool:
    """Return whether the block is one of the library's own, all of whose sizes its tests prove."""
    match block:
        case RegP():
            return True
        case GenP():
            made = block.permutation.inverse_of or block.permutation
            home = getattr(made.forward, "__module__", "")
            return made.functions is None and home.startswith("lego_mlir.")
    return False


# By enumeration.
def _why_not_enumerated(block: Block) -> str | None:
    dims = _known_dims(block)
    if dims is None:
        return "has symbolic sizes"
    size = prod(dims)
    if size > MOST_ELEMENTS:
        return f"has {size} elements, more than the {MOST_ELEMENTS} that are looked at"
    if size > MOST_CALLS and not _takes_arrays(block, dims):
        return (
            f"has {size} elements, and a function that takes no arrays is called on "
            f"{MOST_CALLS} at most"
        )
    return None


def _known_dims(block: Block) -> tuple[int, ...] | None:
    dims = tuple(n for n in block.dims if isinstance(n, int))
    return dims if len(dims) == block.rank else None


def _takes_arrays(block: Block, dims: tuple[int, ...]) -> bool:
    pair, index = called(block), next(all_elements(dims))
    positions = pair.forward.vectorised(index)
    return positions is not None and pair.inverse.vectorised(positions) is not None


def _by_enumeration(block: Block) -> Verdict:
    derived, pair = _derive(block), called(block)
    violation = find_violation(pair)
    if violation is not None:
        return _refuted("enumeration", violation)
    if isinstance(derived, _Derived):
        _check_all(pair, derived.pair(pair.dims))
    detail = f"each of the {pair.size} elements of {block.text} has a position of its own"
    return Verdict(True, "enumeration", f"{detail} and comes back from it")


def _check_all(pair: Pair, derived: Pair) -> None:
    for index in all_elements(pair.dims):
        check_agreement(pair, derived, index)


def _refuted(method: Method, violation: Violation) -> Verdict:
    return Verdict(False, method, violation.detail, violation.counterexample)


# By proof.
@dataclass(frozen=True, slots=True)
class _Derived:
    """What the functions of a block come to on symbols, as a kernel computes it.

    Attributes:
        block: the block.
        index: a symbol for each dimension.
        flat: a symbol for a position.
        position: `f(index)`.
        back: `f_inv(flat)`.
        round_trip: `f_inv(f(index))`.
    """

    block: Block
    index: tuple[Sym, ...]
    flat: Sym
    position: Int
    back: tuple[Int, ...]
    round_trip: tuple[Int, ...]

    def pair(self, dims: tuple[int, ...], sizes: dict[str, int] | None = None) -> Pair:
        """Return the expressions as functions, on the tile of these sizes."""
        values = sizes or {}
        names = [s.name for s in self.index]

        def forward(*index: Any) -> tuple[Any, ...]:
            return (evaluate(self.position, values | dict(zip(names, index, strict=True))),)

        def inverse(flat: Any) -> tuple[Any, ...]:
            return tuple(evaluate(x, values | {self.flat.name: flat}) for x in self.back)

        text = self.block.text
        return Pair(
            text,
            dims,
            Function(f"{text}: the expression of its function", forward, 1),
            Function(f"{text}: the expression of its inverse", inverse, len(dims)),
            values,
        )


def _derive(block: Block) -> _Derived | str:
    """Return the expressions of a block; a reason where its functions do not take symbols.

    Raises:
        LegoError: they use a symbol that is none of the tile's sizes.
    """
    sizes = _symbols_of(block)
    taken = {s.name for s in sizes}
    index = tuple(
        Sym(_fresh(f"i{k}", taken), 0, construct.sub(n, 1)) for k, n in enumerate(block.dims)
    )
    flat = Sym(_fresh("x", taken), 0, construct.sub(block.size, 1))
    try:
        position, back = block.apply(index), tuple(block.inv(flat))
        round_trip = tuple(block.inv(position))
    except LegoError as e:
        return e.message
    except Exception as e:
        return f"{type(e).__name__}: {e}".rstrip(": ")
    made = (position, *back, *round_trip)
    if len(back) != block.rank or not all(isinstance(x, int | nodes.Expr) for x in made):
        return "they return something else than integers"
    unbound = {s for x in made for s in symbols(x)} - sizes - {*index, flat}
    if unbound:
        raise LegoError(
            f"{block.text}: its functions use the symbol '{min(s.name for s in unbound)}', "
            f"which is in none of the tile's sizes {sizes_text(block.dims)}",
            hint="a function of a permutation depends on its arguments and the tile alone",
        )
    return _Derived(block, index, flat, position, back, round_trip)


def _symbols_of(block: Block) -> frozenset[Sym]:
    return frozenset(s for n in block.dims for s in symbols(n))


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _by_proof(block: Block) -> Verdict:
    derived = _derive(block)
    violation = _violation_of_sample(block, derived if isinstance(derived, _Derived) else None)
    if violation is not None:
        return _refuted("enumeration", violation)
    if not isinstance(derived, _Derived):
        why = f"its functions do not take symbols ({derived})"
    elif unproven := _unproven(derived):
        if isinstance(unproven, Violation):
            return _refuted("proof", unproven)
        why = f"that {unproven} is not proven within Z3's limit"
    else:
        every = "every element" if _known_dims(block) else "every size and element"
        return Verdict(True, "proof", f"{block.text} permutes its tile: proven for {every}")
    return Verdict(None, "proof", f"whether {block.text} permutes its tile stays unknown: {why}")


def _violation_of_sample(block: Block, derived: _Derived | None) -> Violation | None:
    """Return a violation among some elements of a large tile, or among all of some small ones."""
    dims = _known_dims(block)
    if dims is not None:
        pair, elements = called(block), sample_elements(dims)
        violation = next((f for e in elements if (f := violation_at(pair, e)) is not None), None)
        if violation is None and derived is not None:
            check_agreement(pair, derived.pair(dims), as_points(elements))
        return violation
    for sizes in samples.points(_symbols_of(block)):
        small = [evaluate(n, sizes) for n in block.dims]
        if min(small) >= 1 and prod(small) <= _SMALL:
            pair = called(block, sizes)
            if (violation := find_violation(pair)) is not None:
                return violation
            if derived is not None:
                _check_all(pair, derived.pair(pair.dims, sizes))
    return None


def _unproven(derived: _Derived) -> str | Violation | None:
    """Return the first claim that is not proven, or its refutation; `None` if all are."""
    from lego_mlir.index.proofs import solver

    block, position = derived.block, derived.position
    made = (position, *derived.round_trip)
    claims = [("what it divides by is positive", "nonnegative", x) for x in _conditions(made)]
    last = construct.sub(block.size, 1)
    claims.append(("f(i) >= 0", "nonnegative", position))
    claims.append(("f(i) < size", "nonnegative", construct.sub(last, position)))
    for back, i in zip(derived.round_trip, derived.index, strict=True):
        claims.append(("f_inv(f(i)) = i", "zero", construct.sub(back, i)))
    unproven: str | None = None
    for claim, kind, x in claims:
        if kind == "zero" and isinstance(x, int) and x == 0:
            continue
        if kind == "nonnegative" and prover.is_nonnegative(x):
            continue
        # That an index is not negative goes along, so that a counter-example has all symbols.
        if kind == "zero":
            answer = solver.prove(zero=[x], nonnegative=derived.index)
        else:
            answer = solver.prove(nonnegative=[x, *derived.index])
        if answer.holds is False:
            violation = _violation_at(derived, answer.counterexample or {})
            if violation is not None:
                return violation
        if answer.holds is not True:
            unproven = unproven or claim
    return unproven


def _conditions(xs: tuple[Int, ...]) -> list[Int]:
    """Return what must not be negative for `xs` to have values, inner before outer.

    Z3 knows the definitions of quotients and roots, but not where they are undefined.
    """
    found: dict[Int, None] = {}
    seen: set[Int] = set()

    def visit(x: Int) -> None:
        if isinstance(x, int) or x in seen:
            return
        seen.add(x)
        for child in structure.children(x):
            visit(child)
        match x:
            case nodes.FloorDiv(_, den) | nodes.Mod(_, den):
                found[construct.sub(den, 1)] = None
            case nodes.ISqrt(root):
                found[root] = None

    for x in xs:
        visit(x)
    return [x for x in found if not isinstance(x, int)]


def _violation_at(derived: _Derived, point: dict[str, int]) -> Violation | None:
    """Return the violation at Z3's counter-example, if the functions themselves show it."""
    sizes = {s.name: point[s.name] for s in _symbols_of(derived.block)}
    pair = called(derived.block, sizes)
    element = tuple(point[s.name] for s in derived.index)
    violation = violation_at(pair, element)
    if violation is None:
        check_agreement(pair, derived.pair(pair.dims, sizes), as_points([element]))
    return violation
