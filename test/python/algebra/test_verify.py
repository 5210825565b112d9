"""Whether layouts are bijections: planted mistakes are found, what is right is proven.

The truth is plain Python: a set of positions, a loop over elements.
"""

from __future__ import annotations

from itertools import product
from math import gcd, prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import (
    Col,
    GenP,
    GroupBy,
    OrderBy,
    Permutation,
    RegP,
    Row,
    TileOrderBy,
    antidiagonal,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
)
from lego_mlir.algebra.permutations import inverse
from lego_mlir.algebra.verification.bijectivity import MOST_CALLS, MOST_ELEMENTS
from lego_mlir.algebra.verification.enumeration import Function, as_points
from lego_mlir.algebra.verification.verdict import Counterexample, Verdict
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import isqrt, where
from lego_mlir.index.evaluate import evaluate

n, m = size_symbol("n"), size_symbol("m")


def verdict_of(dims, f, f_inv, method=None):
    return OrderBy(GenP(dims, f, f_inv)).verify(method)


def is_bijection(dims, f, f_inv):
    """The definition, element by element."""
    elements = list(product(*(range(k) for k in dims)))
    positions = [f(*e) for e in elements]
    onto = sorted(positions) == list(range(len(elements)))
    return onto and all(tuple(f_inv(p)) == e for p, e in zip(positions, elements, strict=True))


def shows(verdict, dims, f, f_inv):
    """Whether a counter-example is one, by the functions themselves."""
    found = verdict.counterexample
    element, *others = found.elements
    (position,) = found.positions
    assert f(*element) == position
    if not others:
        return not 0 <= position < prod(dims)
    (other,) = others
    if "as element" in verdict.detail:
        return other != element and f(*other) == position
    return f_inv(position) == other != element


# What is right.
def skew(i, j):
    return i * 8 + (i + j) % 8


def unskew(x):
    return x // 8, (x % 8 - x // 8) % 8


def skew_of_n(i, j):
    return i * n + (i + j) % n


def unskew_of_n(x):
    return x // n, (x % n - x // n) % n


def branching(i, j):
    return i * 8 + 7 - j if i < 3 else i * 8 + j


def unbranching(x):
    return (x // 8, 7 - x % 8) if x < 24 else (x // 8, x % 8)


def in_place(i, j):
    i *= 8
    i += j
    return i


def row_of_8(i, j):
    return i * 8 + j


def unrow_of_8(x):
    return x // 8, x % 8


def overflowing(i, j):  # the remainder of a number that no int64 holds
    return i * 8 + (j * 3**50 + 3 * i) % 8


def unoverflowing(x):
    return x // 8, (x - 3 * (x // 8)) * pow(3**50, -1, 8) % 8


def rotates(i):
    return where(i < 1234567, i, where(i > 1234567, i - 1, (1 << 40) - 1))


def unrotates(x):
    return (where(x < 1234567, x, where(x < (1 << 40) - 1, x + 1, 1234567)),)


RIGHT = [
    ((8, 8), skew, unskew, None, "enumeration"),
    ((8, 8), skew, unskew, "proof", "proof"),
    ((5, 8), skew, unskew, "enumeration", "enumeration"),
    ((MOST_ELEMENTS // 8, 8), skew, unskew, None, "enumeration"),
    ((MOST_ELEMENTS // 8 + 1, 8), skew, unskew, None, "proof"),
    ((1 << 80, 8), skew, unskew, None, "proof"),
    ((n, 8), skew, unskew, None, "proof"),
    ((1 << 40,), rotates, unrotates, None, "proof"),
    ((m, n), skew_of_n, unskew_of_n, None, "proof"),
    ((8, 8), branching, unbranching, None, "enumeration"),
    ((5, 8), in_place, unrow_of_8, None, "enumeration"),
    ((5, 8), overflowing, unoverflowing, None, "enumeration"),
]


@pytest.mark.parametrize(("dims", "f", "f_inv", "requested", "method"), RIGHT)
def test_users_permutations_that_are_right(dims, f, f_inv, requested, method) -> None:
    verdict = verdict_of(dims, f, f_inv, requested)
    assert verdict.holds is True
    assert bool(verdict)
    assert verdict.method == method
    assert verdict.counterexample is None
    assert f"@{f.__name__}, @{f_inv.__name__}" in verdict.detail


@pytest.mark.parametrize(
    "layout",
    [
        OrderBy(RegP([n, m, 4], [2, 0, 1]), Col(3, m)),
        OrderBy(Row(n, m)).TileBy([n, 1], [1, m]),
        TileOrderBy(Col(4, 6), Row(2, 3)),
        OrderBy(GenP([n, n], antidiagonal)),
        OrderBy(GenP([n, m], reverse)),
        OrderBy(GenP([8, 8], swizzle(2, 1))),
        GroupBy([3, 5]),
    ],
    ids=str,
)
def test_library_permutations_are_bijections_by_construction(layout) -> None:
    assert layout.verify().holds is True
    assert layout.verify().method == "construction"
    assert layout.verify("construction").holds is True


@pytest.mark.parametrize("method", ["enumeration", "proof"])
def test_other_methods_trust_no_block(method) -> None:
    """They look at RegP, Row and the library's permutations, too, and agree."""
    layout = OrderBy(Col(4, 6), GenP([8, 8], swizzle(2, 2)), GenP([3, 5], reverse))
    verdict = layout.verify(method)
    assert (verdict.holds, verdict.method) == (True, method)
    assert all(name in verdict.detail for name in ("Col(4, 6)", "swizzle", "reverse"))


def test_symbolic_blocks_are_proven() -> None:
    assert OrderBy(RegP([n, m, 4], [2, 0, 1]), GenP([n, m], reverse)).verify("proof")
    assert OrderBy(Row(n)).verify("enumeration").holds is None


# What is wrong: (tile, f, its inverse, the elements and position that the verdict shows).
def off_by_one(i, j):
    return i * 8 + j + 1


def constant(i, j):
    return 0


def only_row(i, j):
    return i


def column_of_5(i, j):
    return i + 5 * j


def transposed_inverse(x):
    return x % 8, x // 8


def leaves_below(i, j):
    return i * 8 + j - 5


def collides_at_the_end(i, j):
    return where(i * 8 + j < MOST_ELEMENTS - 1, i * 8 + j, 0)


def beyond(i, j):
    """Row-major up to 2^22, the same position for pairs of elements above."""
    return i * 8 + where(i < MOST_ELEMENTS // 8, j, j // 2 * 2)


def one_pair_swapped(i, j):
    """Row-major but for one element in many millions."""
    return i * 8 + where(i < 1234567, j, where(i > 1234567, j, where(j < 7, j, 0)))


def leaves_at_one(i, j):
    return i * 8 + j + where(i < 7654321, 0, where(i > 7654321, 0, 1 << 70))


def above_at_one(i):
    return where(i < 1234567, i, where(i > 1234567, i, 1 << 40))


def from_above(x):
    return (where(x < 1 << 40, x, 1234567),)


def below_at_one(i):
    return where(i < 1234567, i, where(i > 1234567, i, -1))


def from_below(x):
    return (where(x < 0, 1234567, x),)


def huge(i, j):
    return i * 8 + j + 10**30


WRONG = [
    ((5, 8), off_by_one, unrow_of_8, Counterexample(((4, 7),), (40,))),
    ((5, 8), constant, unrow_of_8, None),
    ((5, 8), only_row, unrow_of_8, None),
    ((4, 8), column_of_5, unrow_of_8, None),
    ((5, 8), row_of_8, transposed_inverse, Counterexample(((0, 1), (1, 0)), (1,))),
    ((5, 8), skew, unrow_of_8, Counterexample(((1, 7), (1, 0)), (8,))),
    ((5, 8), leaves_below, unrow_of_8, Counterexample(((0, 0),), (-5,))),
    ((5, 8), huge, unrow_of_8, Counterexample(((0, 0),), (10**30,))),
    (
        (MOST_ELEMENTS // 8, 8),
        collides_at_the_end,
        unrow_of_8,
        Counterexample(((MOST_ELEMENTS // 8 - 1, 7), (0, 0)), (0,)),
    ),
    ((MOST_ELEMENTS // 4, 8), beyond, unrow_of_8, None),
    (
        (1 << 40, 8),
        one_pair_swapped,
        unrow_of_8,
        Counterexample(((1234567, 7), (1234567, 0)), (1234567 * 8,)),
    ),
    ((1 << 40, 8), leaves_at_one, unrow_of_8, None),
    ((1 << 40,), above_at_one, from_above, Counterexample(((1234567,),), (1 << 40,))),
    ((1 << 40,), below_at_one, from_below, Counterexample(((1234567,),), (-1,))),
]


@pytest.mark.parametrize(("dims", "f", "f_inv", "found"), WRONG)
def test_planted_mistakes_are_found(dims, f, f_inv, found) -> None:
    verdict = verdict_of(dims, f, f_inv)
    assert verdict.holds is False
    assert not verdict
    assert shows(verdict, dims, f, f_inv), verdict
    if found is not None:
        assert verdict.counterexample == found


def test_a_counterexample_names_elements_positions_and_sizes() -> None:
    def verdict_text(*pair):
        return verdict_of((2, 8), *pair).detail

    assert verdict_text(off_by_one, unrow_of_8) == (
        "GenP([2, 8], @off_by_one, @unrow_of_8) is no permutation: "
        "element [1, 7] goes to position 16, outside of the tile's 16"
    )
    assert verdict_text(constant, unrow_of_8) == (
        "GenP([2, 8], @constant, @unrow_of_8) is no permutation: "
        "element [0, 0] goes to position 0, as element [1, 7] does"
    )
    large = verdict_of((MOST_ELEMENTS // 8, 8), collides_at_the_end, unrow_of_8)
    assert large.detail.endswith(
        "is no permutation: element [524287, 7] goes to position 0, as element [0, 0] does"
    )
    assert verdict_text(row_of_8, transposed_inverse) == (
        "GenP([2, 8], @row_of_8, @transposed_inverse): the functions do not undo one another: "
        "element [0, 1] goes to position 1, which comes back as [1, 0]"
    )


def of_width_n(i, j):
    return i * n + j


def unwidth_n(x):
    return x // n, x % n


def unwidth_n_swapped(x):
    return x % n, x // n


def right_up_to_100(i):
    return where(i < 100, i, 100)


def identity(x):
    return (x,)


@pytest.mark.parametrize(
    ("dims", "f", "f_inv"),
    [
        ((n, 7), skew, unskew),
        ((n, 8), row_of_8, transposed_inverse),
        ((m, n), of_width_n, unwidth_n_swapped),
        ((n, m), of_width_n, unwidth_n),
        ((n,), right_up_to_100, identity),
    ],
    ids=["another width", "swapped inverse", "swapped", "the other size", "large sizes only"],
)
def test_mistakes_at_symbolic_sizes(dims, f, f_inv) -> None:
    """The counter-example says at which sizes; there, the functions themselves show it."""
    verdict = verdict_of(dims, f, f_inv)
    assert verdict.holds is False
    sizes = verdict.counterexample.sizes
    assert all(f"{name} = {value}" in verdict.detail for name, value in sizes.items())
    assert {"n"} <= set(sizes) <= {"n", "m"}

    def forward(*element):
        return evaluate(f(*element), sizes)

    def inverse(position):
        return tuple(evaluate(i, sizes) for i in f_inv(position))

    assert shows(verdict, [evaluate(d, sizes) for d in dims], forward, inverse)


@given(st.data())
def test_tables_with_a_mistake_or_none(data) -> None:
    """Any table, most of them a permutation with up to two entries changed."""
    dims = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3), "dims"))
    size = prod(dims)
    table = list(data.draw(st.permutations(range(size)), "table"))
    inverse = [table.index(p) for p in range(size)]
    for entries in (table, inverse):
        if data.draw(st.booleans()):
            k = data.draw(st.integers(0, size - 1))
            entries[k] = data.draw(st.integers(-1, size))
    arrays = data.draw(st.booleans(), "arrays")

    def f(*index):
        flat = np.ravel_multi_index(index, dims)
        return np.array(table)[flat] if arrays else table[int(flat)]

    def f_inv(position):
        element = np.array(inverse)[position] if arrays else inverse[position]
        return tuple(element // prod(dims[k + 1 :]) % n for k, n in enumerate(dims))

    verdict = verdict_of(dims, f, f_inv)
    assert verdict.holds is is_bijection(dims, f, f_inv)
    assert verdict.method == "enumeration"
    assert verdict.holds or shows(verdict, dims, f, f_inv)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_proofs_agree_with_enumeration(data) -> None:
    """Rows turned and scaled, by numbers that do or do not make a permutation."""
    width = data.draw(st.sampled_from([4, 6, 8]), "width")
    scale, turn, shift, unscale = (data.draw(st.integers(0, width - 1)) for _ in range(4))
    if data.draw(st.booleans(), "right") and gcd(scale, width) == 1:
        unscale = pow(scale, -1, width)

    def f(i, j):
        return i * width + (scale * j + turn * i + shift) % width

    def f_inv(x):
        i = x // width
        return i, (unscale * (x % width - turn * i - shift)) % width

    right = is_bijection((5, width), f, f_inv)
    assert verdict_of((5, width), f, f_inv, "enumeration").holds is right
    assert verdict_of((5, width), f, f_inv, "proof").holds in (right, None)
    assert verdict_of((n, width), f, f_inv).holds in (is_bijection((width, width), f, f_inv), None)


# What stays unknown.
def branching_everywhere(i, j):
    return i * 8 + 7 - j if i % 2 else i * 8 + j


def unbranching_everywhere(x):
    return (x // 8, 7 - x % 8) if x // 8 % 2 else (x // 8, x % 8)


@pytest.mark.parametrize("dims", [(MOST_CALLS // 8 + 1, 8), (n, 8)], ids=["large", "symbolic"])
def test_functions_of_integers_on_large_tiles_stay_unknown(dims) -> None:
    verdict = verdict_of(dims, branching_everywhere, unbranching_everywhere)
    assert verdict.holds is None
    assert not verdict
    assert verdict.method == "proof"
    assert "do not take symbols (the truth of '" in verdict.detail
    assert verdict.counterexample is None


def test_mistakes_in_functions_of_integers_on_large_tiles() -> None:
    """They are sampled, at small sizes where the sizes are symbols."""
    for dims in ((MOST_CALLS // 8 + 1, 8), (n, 8)):
        verdict = verdict_of(dims, branching_everywhere, unrow_of_8)
        assert verdict.holds is False
        assert verdict.counterexample.elements[0][0] % 2 == 1


def test_an_undecided_proof_stays_unknown() -> None:
    """Square roots of symbols; enumeration settles the same at any size."""
    verdict = OrderBy(GenP([n, n], antidiagonal)).verify("proof")
    assert verdict.holds is None
    assert "not proven within Z3's limit" in verdict.detail
    assert OrderBy(GenP([31, 31], antidiagonal)).verify("enumeration").holds is True


def test_methods_that_do_not_reach() -> None:
    def verdict_text(dims, *pair, method):
        verdict = verdict_of(dims, *pair, method=method)
        assert verdict.holds is None
        assert verdict.method == method
        return verdict.detail

    assert "symbolic sizes" in verdict_text((n, 8), skew, unskew, method="enumeration")
    assert "4194312 elements" in verdict_text((524289, 8), skew, unskew, method="enumeration")
    large = verdict_text((MOST_CALLS // 8 + 1, 8), branching, unbranching, method="enumeration")
    assert "takes no arrays" in large
    assert "@skew" in verdict_text((8, 8), skew, unskew, method="construction")


def test_permutations_made_by_hand_are_not_trusted() -> None:
    """A name of the library's does not make one the library's."""
    own = Permutation("reverse", lambda dims, index: index[0], lambda dims, flat: (flat // 2,))
    for permutation in (own, inverse(own)):
        assert OrderBy(GenP([4], permutation)).verify().holds is False
        assert OrderBy(GenP([4], permutation)).verify("construction").holds is None


def test_inverses_of_permutations() -> None:
    assert OrderBy(GenP([n, n], inverse(antidiagonal))).verify().method == "construction"
    assert OrderBy(GenP([5, 8], inverse(skew, unskew))).verify().method == "enumeration"
    assert OrderBy(GenP([n, 8], inverse(skew, unskew))).verify().method == "proof"
    assert OrderBy(GenP([5, 8], inverse(skew, unrow_of_8))).verify().holds is False
    with pytest.raises(LegoError, match="@no_index fails at 0: KeyError"):
        OrderBy(GenP([4], inverse(shift_of_4, no_index))).verify()


def test_the_wrong_block_is_named() -> None:
    layout = OrderBy(Row(2), GenP([8, 8], skew, unskew), GenP([3, 8], off_by_one, unrow_of_8))
    verdict = layout.verify()
    assert verdict.holds is False
    assert verdict.detail.startswith("GenP([3, 8], @off_by_one, @unrow_of_8) ")
    unknown = OrderBy(GenP([n, 8], branching_everywhere, unbranching_everywhere), Row(2))
    assert unknown.verify().holds is None
    assert (unknown.OrderBy(Row(n, 2), GenP([8], off_by_two, identity))).verify().holds is False


def off_by_two(i):
    return (i + 2) % 8


def test_verdicts_read_well() -> None:
    assert str(Verdict(True, "proof", "so it is")) == "holds (by proof): so it is"
    assert str(Verdict(False, "enumeration", "x")) == "does not hold (by enumeration): x"
    assert str(Verdict(None, "proof", "x")) == "unknown (by proof): x"
    assert str(OrderBy(Row(2)).verify()) == (
        "holds (by construction): 'OrderBy(Row(2))' is a bijection by its construction"
    )


# Functions that are none.
def shift_of_4(i):
    return (i + 1) % 4


def three_entries(i):
    return [2, 0, 1][i]


def no_index(x):
    raise KeyError(x)


def halves(i):
    return i / 2


def nothing(i):
    return None


def pair_of(i):
    return i, i


def one_argument_too_many(i, j):
    return i


def two_indices(x):
    return x, x


def of_a_symbol_that_is_not_there(i):
    return (i + m) % 4


def divides_by_zero(i):
    return i // i


def divides_by_zero_at_one(i):
    far = where(i < 1234567, 1234567 - i, i - 1234567)
    return i + far // (2 * far)


def compares(i, j):
    return where(i == 3, i * 8 + 7 - j, i * 8 + j)


def uncompares(x):
    return x // 8, where(x // 8 == 3, 7 - x % 8, x % 8)


def rotates_if_equal(i):
    return where(i < 1234567, i, where(i == 1234567, (1 << 40) - 1, i - 1))


def unrotates_if_equal(x):
    return (where(x < 1234567, x, where(x == (1 << 40) - 1, 1234567, x + 1)),)


def for_arrays_only(i):
    return i.astype(int)


BAD = [
    ((4,), three_entries, identity, "@three_entries fails at 3: IndexError: list index out of"),
    ((4,), shift_of_4, no_index, "@no_index fails at 0: KeyError: 0"),
    ((4,), halves, identity, "@halves returns 0.0 at 0, which is no integer"),
    ((4,), nothing, identity, "@nothing returns None at 0, which is no integer"),
    ((4,), pair_of, identity, "@pair_of returns 2 values, not one flat position"),
    (
        (4,),
        one_argument_too_many,
        identity,
        "@one_argument_too_many takes 2 indices, the tile has 1",
    ),
    ((4,), of_a_symbol_that_is_not_there, identity, r"use the symbol 'm', .* sizes \[4\]"),
    ((n,), of_a_symbol_that_is_not_there, identity, r"use the symbol 'm', .* sizes \[n\]"),
    ((4,), divides_by_zero, identity, "@divides_by_zero fails at 0: ZeroDivisionError"),
    ((4,), for_arrays_only, identity, "@for_arrays_only fails at 0: AttributeError"),
    ((1 << 40,), divides_by_zero, identity, "@divides_by_zero fails at 0: ZeroDivisionError"),
    ((1 << 40,), divides_by_zero_at_one, identity, "at_one fails at 1234567: ZeroDivisionError"),
    ((8, 8), compares, uncompares, r"@compares gives 31 at \[3, 0\], .* kernels gives 24"),
    ((n, 8), compares, uncompares, r"@compares gives 31 at \[3, 0\], .* kernels gives 24"),
    ((1 << 40, 8), compares, uncompares, r"@compares gives .* at \[3, 7\], .* kernels gives"),
]


BAD_AT_ONE = [
    ((1 << 40,), rotates_if_equal, unrotates, "gives 1099511627775 at 1234567, .* gives 1234566"),
    ((1 << 40,), rotates, unrotates_if_equal, "gives 1234567 at 1099511627775, .* 1099511627776"),
]


@pytest.mark.parametrize(("dims", "f", "f_inv", "message"), BAD + BAD_AT_ONE)
def test_functions_that_are_none(dims, f, f_inv, message) -> None:
    with pytest.raises(LegoError, match=message) as e:
        verdict_of(dims, f, f_inv)
    assert f"@{f.__name__}, @{f_inv.__name__}" in str(e.value)


def test_too_many_indices_come_back() -> None:
    with pytest.raises(LegoError, match="returns 2 indices, the tile has 1"):
        verdict_of((8,), off_by_two, two_indices)


def test_large_integers_stay_exact() -> None:
    """Where int64 would overflow or round: the square root of a number of 200 bits."""
    root = (1 << 100) + 12345
    squares = [(1,), (root**2,), (4,), (root**2 - 1,), (9,), (16,)]
    function = Function("root", lambda i: (isqrt(i),), 1)
    assert function.on(as_points(squares))[0].tolist() == [1, root, 2, root - 1, 3, 4]


def test_there_is_no_such_method() -> None:
    with pytest.raises(LegoError, match="construction, enumeration, proof, not 'magic'"):
        OrderBy(Row(2)).verify("magic")


def test_layouts_in_text() -> None:
    functions = {"f": skew, "g": unskew, "wrong": unrow_of_8}
    text = "OrderBy(Row(2), GenP([8, 8], @f, @g)).OrderBy(Col(16, 8))"
    assert parse_layout(text, functions=functions).verify()
    assert not parse_layout(text.replace("@g", "@wrong"), functions=functions).verify()
