"""Linear layouts: the algebra of matrices over F2, and the way to and from the layout algebra.

Truth is enumeration: an image is the XOR of the images of the bits, summed up by loops here.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import (
    Col,
    GenP,
    Layout,
    OrderBy,
    RegP,
    Row,
    antidiagonal,
    parse_layout,
    reverse,
    size_symbol,
    swizzle,
)
from lego_mlir.algebra.parts import make_order, make_view
from lego_mlir.analysis.linear import (
    Dim,
    LinearLayout,
    blocked,
    broadcast,
    from_layout,
    identity,
    is_bit_permutation,
    linear,
    to_genp,
    to_layout,
    to_regp,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym, evaluate


# ------------------------------------------------------------------------------------ oracles
def every(dims: tuple[Dim, ...]) -> list[dict[str, int]]:
    """All vectors of a space, the first dimension fastest."""
    names = [d.name for d in reversed(dims)]
    spaces = [range(2**d.bits) for d in reversed(dims)]
    return [dict(zip(names, xs, strict=True)) for xs in product(*spaces)]


def image(layout: LinearLayout, x: dict[str, int]) -> dict[str, int]:
    """By the definition: XOR over the bits that are set, coordinate by coordinate."""
    total = [0] * len(layout.outputs)
    for name, images in layout.bases.items():
        for k, coordinates in enumerate(images):
            if x[name] >> k & 1:
                total = [a ^ b for a, b in zip(total, coordinates, strict=True)]
    return {d.name: t for d, t in zip(layout.outputs, total, strict=True)}


def table(layout: LinearLayout) -> list[tuple[tuple[str, int], ...]]:
    return [tuple(image(layout, x).items()) for x in every(layout.inputs)]


# --------------------------------------------------------------------------------- strategies
@st.composite
def spaces(draw: st.DrawFn, names: str, most: int = 5) -> tuple[Dim, ...]:
    bits, left = [], most
    for _ in names:
        bits.append(draw(st.integers(0, min(3, left))))
        left -= bits[-1]
    return tuple(Dim(name, n) for name, n in zip(names, bits, strict=True))


@st.composite
def maps(draw: st.DrawFn, inputs: tuple[Dim, ...], outputs: tuple[Dim, ...]) -> LinearLayout:
    size = 2 ** sum(d.bits for d in outputs)
    n = sum(d.bits for d in inputs)
    columns = draw(st.lists(st.integers(0, size - 1), min_size=n, max_size=n))
    return LinearLayout(inputs, outputs, tuple(columns))


@st.composite
def layouts(draw: st.DrawFn, inputs: str = "abc", outputs: str = "xyz") -> LinearLayout:
    return draw(maps(draw(spaces(inputs)), draw(spaces(outputs))))


@st.composite
def bijections(draw: st.DrawFn, most: int = 6) -> LinearLayout:
    """A bit permutation, then each column XORed with later ones: triangular, so invertible."""
    inputs = draw(spaces("abc", most))
    n = sum(d.bits for d in inputs)
    cut = draw(st.integers(0, n))
    order = draw(st.permutations(range(n)))
    mixed = draw(st.booleans())
    columns: list[int] = []
    for k in range(n):
        extra = [c for c in columns if mixed and draw(st.booleans())]
        columns.append(1 << order[k])
        for c in extra:
            columns[-1] ^= c
    return LinearLayout(inputs, (Dim("x", cut), Dim("y", n - cut)), tuple(columns))


# ------------------------------------------------------------------------ the paper's examples
A_OF_THE_PAPER = (
    (1, 0, 0, 0, 0, 0, 0, 0),
    (0, 0, 1, 0, 0, 0, 0, 0),
    (0, 0, 0, 1, 0, 0, 0, 0),
    (0, 0, 0, 0, 1, 0, 0, 0),
    (0, 1, 0, 0, 0, 0, 0, 0),
    (0, 0, 0, 0, 0, 1, 0, 0),
    (0, 0, 0, 0, 0, 0, 1, 0),
    (0, 0, 0, 0, 0, 0, 0, 1),
)
TABLE_1 = {
    (0, 0): (0, 0, 0),
    (0, 1): (1, 0, 0),
    (0, 2): (0, 1, 0),
    (0, 3): (1, 1, 0),
    (1, 0): (2, 0, 0),
    (1, 1): (3, 0, 0),
    (2, 2): (0, 9, 0),
    (2, 3): (1, 9, 0),
    (3, 2): (2, 9, 0),
    (3, 3): (3, 9, 0),
}


def layout_a() -> LinearLayout:
    return blocked((16, 16), (2, 2), (4, 8), (2, 1), names=("i", "j"))


def test_layout_a_of_section_4_1() -> None:
    a = layout_a()
    assert a.matrix == A_OF_THE_PAPER
    assert [str(d) for d in (*a.inputs, *a.outputs)] == [
        "register: 4",
        "lane: 32",
        "warp: 2",
        "j: 16",
        "i: 16",
    ]
    assert a.apply(register=1, lane=9, warp=0) == {"j": 3, "i": 2}
    inverse = a.inverse()
    for (i, j), (register, lane, warp) in TABLE_1.items():
        assert a.apply(register=register, lane=lane, warp=warp) == {"i": i, "j": j}
        assert inverse.apply(i=i, j=j) == {"register": register, "lane": lane, "warp": warp}


def test_the_essay_s_table() -> None:
    layout = from_layout(OrderBy(GenP([4, 4], swizzle())), names=("i", "j"))
    assert layout == linear({"j": [(1,), (2,)], "i": [(5,), (10,)]}, {"offset": 16})
    assert layout.apply(i=3, j=2) == {"offset": 13}
    rows = [[layout.apply(i=i, j=j)["offset"] for j in range(4)] for i in range(4)]
    assert rows == [[0, 1, 2, 3], [5, 4, 7, 6], [10, 11, 8, 9], [15, 14, 13, 12]]


def test_the_warp_shuffle_of_figure_4() -> None:
    """Of section 5.4: e ^ f of threads' bits spans {000, 101, 010, 111} with R(1) = 010."""
    g = linear({"g": [(0b101,)], "r": [(0b010,)]}, {"x": 8})
    assert sorted(image(g, x)["x"] for x in every(g.inputs)) == [0b000, 0b010, 0b101, 0b111]
    assert g.rank == 2
    assert g.is_injective
    assert not g.is_surjective


# -------------------------------------------------------------------------------- evaluation
@given(layouts())
def test_apply_is_the_xor_of_the_bits(layout: LinearLayout) -> None:
    """On ints and arrays, and as an index expression at every point."""
    points = every(layout.inputs)
    truth = [image(layout, x) for x in points]
    assert [layout.apply(**x) for x in points] == truth
    axes = {d.name: np.array([x[d.name] for x in points], np.uint8) for d in layout.inputs}
    symbols = {d.name: Sym(d.name, 0, d.size - 1) for d in layout.inputs}
    arrays, exprs = layout.apply(**axes), layout.apply(**symbols)
    for d in layout.outputs:
        expected = [y[d.name] for y in truth]
        assert np.broadcast_to(arrays[d.name], len(points)).tolist() == expected
        values = np.broadcast_to(evaluate(exprs[d.name], axes), len(points))
        assert values.tolist() == expected


def test_expressions_are_short() -> None:
    """Bits that move together move in one piece; only what overlaps is XORed."""
    i, j = Sym("i", 0, 63), Sym("j", 0, 63)
    layout = from_layout(OrderBy(GenP([64, 64], swizzle(8, 2, 4))), names=("i", "j"))
    assert layout.apply(i=i, j=j)["offset"] is (i // 2 % 4 * 8) ^ (i * 64 + j)
    turned = from_layout(OrderBy(Col(64, 64)), names=("i", "j"))
    assert turned.apply(i=i, j=j)["offset"] is i + j * 64


# ------------------------------------------------------------------------------- the algebra
@given(st.data())
def test_composition_is_one_map_after_the_other_and_associative(data: st.DataObject) -> None:
    a, b, c, d = (data.draw(spaces(names)) for names in ("abc", "def", "gh", "xyz"))
    f, g, h = data.draw(maps(a, b)), data.draw(maps(b, c)), data.draw(maps(c, d))
    assert table(g @ f) == [tuple(image(g, image(f, x)).items()) for x in every(a)]
    assert (h @ g) @ f == h @ (g @ f)
    assert g.with_inputs("f", "d", "e") @ f == g @ f


@given(layouts("abc", "xy"), layouts("cbd", "yz"))
def test_product_acts_on_low_and_high_bits(low: LinearLayout, high: LinearLayout) -> None:
    both = low * high
    low_bits = {d.name: d.bits for d in low.inputs + low.outputs}
    for x in every(both.inputs):
        below = {d.name: x[d.name] % d.size for d in low.inputs}
        above = {d.name: x[d.name] >> low_bits.get(d.name, 0) for d in high.inputs}
        expected = {d.name: 0 for d in both.outputs} | image(low, below)
        for name, value in image(high, above).items():
            expected[name] += value << low_bits.get(name, 0)
        assert image(both, x) == expected


@given(layouts("abc", "xyz"), layouts("abc", "xyz"))
def test_a_product_divided_by_its_left_factor_is_the_right_one(
    a: LinearLayout, b: LinearLayout
) -> None:
    assert (a * b).divide_left(a) == b
    turned = a.with_inputs("c", "a", "b").with_outputs("z", "x", "y")
    assert (a * b).divide_left(turned) == b


@given(layouts("abc", "xy"), layouts("ba", "yx"))
def test_division_finds_every_product_and_nothing_else(m: LinearLayout, tile: LinearLayout) -> None:
    """By the definition: the matrix is [tile 0; 0 rest] in the bits of each label."""
    rest = m.divide_left(tile)
    bits = {d.name: d.bits for d in tile.inputs + tile.outputs}
    fits = all(bits.get(d.name, 0) <= d.bits for d in m.inputs + m.outputs)
    if not fits:
        assert rest is None
        assert "the tile needs" in (m.obstacle(tile) or "")
        return
    is_product = True
    for x in every(m.inputs):
        low = {d.name: x[d.name] % d.size for d in tile.inputs}
        high = dict(x)
        for d in tile.inputs:
            high[d.name] -= low[d.name]
        y, y_high = image(m, x), image(m, high)
        is_product &= all(y[d.name] % d.size == image(tile, low)[d.name] for d in tile.outputs)
        is_product &= all(
            y[d.name] >> bits.get(d.name, 0) == y_high[d.name] >> bits.get(d.name, 0)
            for d in m.outputs
        )
    assert (rest is not None) == is_product
    assert (m.obstacle(tile) is None) == is_product
    if rest is not None:
        assert (tile * rest).with_inputs("a", "b", "c").with_outputs("x", "y") == m


def test_division_by_label() -> None:
    m = layout_a()
    tile = identity("register", "j", 2) * identity("lane", "j", 8)
    rest = m.divide_left(tile)
    assert rest == linear(
        {"register": [(0, 1)], "lane": [(0, 2), (0, 4)], "warp": [(0, 8)]}, {"j": 1, "i": 16}
    )
    assert m.divide_left(identity("register", "i", 2)) is None
    assert m.obstacle(identity("register", "i", 2)) == (
        "register bit 0 maps to j=1, the tile needs i=1"
    )
    assert m.obstacle(identity("lane", "j", 4)) == ("lane bit 0 maps to j=2, the tile needs j=1")
    assert m.obstacle(identity("warp", "i", 4)) == "the tile needs warp of size 4, the layout has 2"
    assert (
        m.obstacle(identity("cta", "i", 2)) == "the tile needs cta of size 2, the layout has none"
    )
    skew = linear({"a": [(1,), (3,)]}, {"x": 4})
    assert skew.obstacle(identity("a", "x", 2)) == (
        "a bit 1 maps to x=3, which falls inside the tile (x: 2)"
    )


@given(layouts())
def test_rank_kernel_and_what_follows_from_them(layout: LinearLayout) -> None:
    images = [tuple(y) for y in table(layout)]
    assert 2**layout.rank == len(set(images))
    assert layout.is_injective == (len(set(images)) == len(images))
    assert layout.is_surjective == (len(set(images)) == layout.output_size)
    assert layout.is_invertible == (layout.is_injective and layout.is_surjective)
    zeros = [
        x for x, y in zip(every(layout.inputs), images, strict=True) if not any(dict(y).values())
    ]
    basis = layout.kernel
    assert all(x in zeros for x in basis)
    assert 2 ** len(basis) == len(zeros)
    assert linear(
        {"k": [tuple(x.values()) for x in basis]}, {d.name: d.size for d in layout.inputs}
    ).is_injective


@given(layouts())
def test_right_inverse(layout: LinearLayout) -> None:
    if not layout.is_surjective:
        with pytest.raises(LegoError, match=r"reaches \d+ of the \d+ elements"):
            layout.right_inverse()
        return
    right = layout.right_inverse()
    for y in every(layout.outputs):
        assert image(layout, image(right, y)) == y


@given(st.data())
def test_right_inverse_of_a_distributed_layout_has_the_fewest_bits(data: st.DataObject) -> None:
    """Copies are read from the lowest register, lane and warp: the lightest input of each image."""
    n = data.draw(st.integers(0, 4))
    zeros = data.draw(st.integers(0, 3))
    columns = data.draw(st.permutations([1 << k for k in range(n)] + [0] * zeros))
    layout = LinearLayout((Dim("r", n + zeros),), (Dim("x", n),), tuple(columns))
    right = layout.right_inverse()
    for y in range(2**n):
        preimages = [x for x in range(2 ** (n + zeros)) if image(layout, {"r": x})["x"] == y]
        best = min(preimages, key=lambda x: (x.bit_count(), x))
        assert image(right, {"x": y})["r"] == best


@given(bijections())
def test_inverse(layout: LinearLayout) -> None:
    assert layout.is_invertible
    inverse = layout.inverse()
    for x in every(layout.inputs):
        assert image(inverse, image(layout, x)) == x
    assert inverse.inverse() == layout


# --------------------------------------------------------------------- other names and shapes
@given(layouts(), st.permutations("abc"), st.permutations("xyz"))
def test_order_of_dimensions_and_names(
    layout: LinearLayout, ins: list[str], outs: list[str]
) -> None:
    turned = layout.with_inputs(*ins).with_outputs(*outs)
    assert [d.name for d in turned.inputs + turned.outputs] == [*ins, *outs]
    renamed = layout.rename(a="b", b="a", x="u")
    for x in every(layout.inputs):
        assert image(turned, x) == image(layout, x)
        swapped = {"a": x["b"], "b": x["a"], "c": x["c"]}
        y = image(layout, swapped)
        assert image(renamed, x) == {"u": y["x"], "y": y["y"], "z": y["z"]}


@given(layouts())
def test_flattening_and_cutting(layout: LinearLayout) -> None:
    """The first dimension is the fastest."""
    flat = layout.flatten_inputs("n").flatten_outputs("m")
    for n, x in enumerate(every(layout.inputs)):
        m = 0
        for d in reversed(layout.outputs):
            m = m * d.size + image(layout, x)[d.name]
        assert image(flat, {"n": n}) == {"m": m}
    back = flat.reshape_inputs(**{d.name: d.size for d in layout.inputs})
    assert back.reshape_outputs(**{d.name: d.size for d in layout.outputs}) == layout


@given(layouts())
def test_slices(layout: LinearLayout) -> None:
    """Proposition 4.8: a slice drops outputs; the other inputs of a submatrix are zero."""
    part = layout.select(["b"], ["z", "x"])
    for x in every(part.inputs):
        y = image(layout, {"a": 0, "c": 0} | x)
        assert list(image(part, x).items()) == [("z", y["z"]), ("x", y["x"])]


@given(layouts(), st.data())
def test_permuted_bits(layout: LinearLayout, data: st.DataObject) -> None:
    bits = next(d.bits for d in layout.inputs if d.name == "b")
    order = data.draw(st.permutations(range(bits)))
    moved = layout.permute_bits("b", order)
    for x in every(layout.inputs):
        old = sum(1 << order[k] for k in range(bits) if x["b"] >> k & 1)
        assert image(moved, x) == image(layout, x | {"b": old})


# ----------------------------------------------------------------------- from and to the algebra
@st.composite
def block_of(draw: st.DrawFn, bits: int, rank: int) -> GenP | RegP:
    cuts = sorted(draw(st.lists(st.integers(0, bits), min_size=rank - 1, max_size=rank - 1)))
    dims = [2 ** (b - a) for a, b in zip([0, *cuts], [*cuts, bits], strict=True)]
    kind = draw(st.sampled_from(["Row", "Col", "RegP", "RegP", "swizzle", "reverse"]))
    match kind:
        case "Row":
            return Row(*dims)
        case "Col":
            return Col(*dims)
        case "reverse":
            return GenP(dims, reverse)
        case "swizzle" if rank == 2:
            vec = 2 ** draw(st.integers(0, dims[1].bit_length() - 1))
            phases = 2 ** draw(st.integers(0, (dims[1] // vec).bit_length() - 1))
            return GenP(dims, swizzle(vec, 2 ** draw(st.integers(0, 2)), phases))
    return RegP(dims, draw(st.permutations(range(rank))))


@st.composite
def algebraic(draw: st.DrawFn) -> Layout:
    """Any chain of OrderBy and TileOrderBy with blocks of powers of two, under any view."""
    bits = draw(st.integers(0, 7))
    view = draw(st.sampled_from(["none", "GroupBy", "TileBy"]))
    rank = draw(st.integers(1, 3))
    orders = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["OrderBy", "TileOrderBy"]))
        left, blocks = bits, []
        for last in [False] * draw(st.integers(0, 2)) + [True]:
            take = left if last else draw(st.integers(0, left))
            blocks.append(draw(block_of(take, rank)))
            left -= take
        orders.append(make_order(kind, tuple(blocks)))
    if view == "none":
        return Layout(tuple(orders))
    left, tiles = bits, []
    for last in [False] * draw(st.integers(0, 1)) + [True]:
        level = []
        for k in range(rank):
            take = left if last and k == rank - 1 else draw(st.integers(0, left))
            level.append(2**take)
            left -= take
        tiles.append(level)
    return Layout(tuple(orders), make_view(view, tuple(tiles)))


@settings(max_examples=300)
@given(algebraic())
def test_from_layout_is_the_layout(layout: Layout) -> None:
    """Every element; refused exactly where plain enumeration finds it not linear."""
    offsets = [layout.apply(*x) for x in product(*(range(n) for n in layout.dims))]
    assert sorted(offsets) == list(range(layout.size))
    if offsets[0]:
        with pytest.raises(LegoError, match=rf"element 0 goes to {offsets[0]}"):
            from_layout(layout)
        return
    found = from_layout(layout)
    assert [d.size for d in found.inputs] == list(layout.dims)[::-1]
    assert [image(found, x)["offset"] for x in every(found.inputs)] == offsets
    if layout.view is None or layout.view.kind == "GroupBy":
        assert layout.offsets().reshape(-1).tolist() == offsets
    back = to_layout(found)
    assert back.dims == layout.dims
    assert [back.apply(*x) for x in product(*(range(n) for n in layout.dims))] == offsets
    assert from_layout(back) == found


@settings(max_examples=200)
@given(bijections())
def test_to_layout_is_the_bijection(layout: LinearLayout) -> None:
    """Forth, back, as text, and as a GenP whatever the matrix."""
    names = [d.name for d in reversed(layout.inputs)]
    sizes = [d.size for d in reversed(layout.inputs)]
    flat = layout.flatten_outputs("offset")
    for made in (to_layout(layout), OrderBy(to_genp(layout))):
        assert list(made.dims) == sizes
        for x in product(*map(range, sizes)):
            offset = image(flat, dict(zip(names, x, strict=True)))["offset"]
            assert made.apply(*x) == offset
            assert made.inv(offset) == x
        assert from_layout(made, names=names) == flat
        functions = {f.__name__: f for f in made.functions}
        assert parse_layout(made.text, functions=functions) == made


@given(bijections())
def test_regp_exactly_where_bits_only_move(layout: LinearLayout) -> None:
    moves = all(c.bit_count() == 1 for c in layout.columns)
    assert is_bit_permutation(layout) == moves
    if not moves:
        with pytest.raises(LegoError, match="only a layout that moves bits is a RegP"):
            to_regp(layout)
        return
    regular = to_layout(layout)
    assert not regular.functions
    assert isinstance(regular.orders[0].blocks[0], RegP)


@pytest.mark.parametrize(
    "text",
    [
        "OrderBy(Row(8, 4))",
        "OrderBy(Col(8, 4))",
        "OrderBy(RegP([2, 4, 8], [1, 2, 0]))",
        "OrderBy(RegP([2, 4, 2, 8], [2, 1, 3, 0])).GroupBy([8, 16])",
    ],
)
def test_bit_permutations_come_back_as_they_were(text: str) -> None:
    assert to_layout(from_layout(parse_layout(text))).text == text


def test_size_one() -> None:
    assert to_layout(from_layout(OrderBy(Row(1, 1)))).text == "OrderBy(Row(1, 1))"
    column = from_layout(OrderBy(Col(1, 4)), names=("i", "j"))
    assert column == linear({"j": [(1,), (2,)], "i": []}, {"offset": 4})
    assert to_layout(column).text == "OrderBy(Row(4)).GroupBy([1, 4])"


def test_large_layouts_are_derived_block_by_block() -> None:
    """No element is looked at: 2^62 of them, and the answer is known."""
    n = 2**31
    text = f"OrderBy(GenP([{n}, {n}], swizzle(8, 1, 8))).OrderBy(Col({n}, {n}))"
    layout = parse_layout(text)
    found = from_layout(layout, names=("i", "j"))
    for i, j in [(1, 0), (0, 1), (n - 1, n - 1), (12345, 987654321)]:
        assert found.apply(i=i, j=j)["offset"] == layout.apply(i, j)
    twice = OrderBy(GenP([n, n], reverse)).OrderBy(GenP([n, n], reverse))
    assert from_layout(twice) == from_layout(OrderBy(Row(n, n)))


def gray(i: int) -> int:
    return i ^ (i // 2)


def gray_inverse(flat: int) -> int:
    shifts = (1, 2, 4, 8, 16)
    for s in shifts:
        flat = flat ^ (flat // 2**s)
    return flat


def cyclic(i: int) -> int:
    return (i + 1) % 16


def cyclic_inverse(flat: int) -> int:
    return (flat + 15) % 16


def test_users_own_permutations_are_looked_at() -> None:
    layout = OrderBy(GenP([4096], gray, gray_inverse))
    found = from_layout(layout, names=["i"])
    assert [image(found, {"i": i})["offset"] for i in range(4096)] == [gray(i) for i in range(4096)]


def test_nonlinear_blocks_may_undo_one_another() -> None:
    """Neither half is affine, the whole is: enumeration of the whole decides."""
    turn, back = GenP([16], cyclic, cyclic_inverse), GenP([16], cyclic_inverse, cyclic)
    assert from_layout(OrderBy(turn).OrderBy(back)) == from_layout(OrderBy(Row(16)))


# ------------------------------------------------------------------------------------- errors
def refused(make: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(LegoError) as caught:
        make(*args, **kwargs)  # type: ignore[operator]
    return str(caught.value)


def test_the_antidiagonal_is_refused_with_elements_that_show_it() -> None:
    message = refused(from_layout, OrderBy(GenP([8, 8], antidiagonal)))
    assert (
        "elements (0, 2) and (0, 1) go to 3 and 1, so their XOR (0, 3) should go to 3 ^ 1 = 2, "
        "but goes to 6" in message
    )
    layout = OrderBy(GenP([8, 8], antidiagonal))
    assert [layout.apply(0, j) for j in (2, 1, 3)] == [3, 1, 6]
    large = refused(from_layout, OrderBy(GenP([8192, 8192], antidiagonal)))
    assert "is not linear over F2" in large


def test_reverse_is_affine_not_linear() -> None:
    message = refused(from_layout, OrderBy(GenP([8, 8], reverse)))
    assert "not linear over F2 but affine: its element 0 goes to 63" in message
    assert "hint: it is a linear layout followed by ^ 63" in message


def test_cyclic_shift_that_moves_zero_and_is_not_affine() -> None:
    message = refused(from_layout, OrderBy(GenP([16], cyclic, cyclic_inverse)))
    assert "elements (2,) and (1,) go to 3 and 2, so their XOR (3,) should go to 3 ^ 2 ^ 1 = 0" in (
        message
    )


def test_an_undecided_question_is_reported() -> None:
    n = 2**12
    twice = OrderBy(GenP([n, n], antidiagonal)).OrderBy(GenP([n, n], antidiagonal))
    assert "too many to look at whether other blocks make up for it" in refused(from_layout, twice)

    def own(i: int) -> int:
        return i

    assert "of its 16777216 elements only 4194304 are looked at" in refused(
        from_layout, OrderBy(GenP([n * n], own, own))
    )


def test_sizes() -> None:
    assert "powers of two; dim0 is 6" in refused(from_layout, OrderBy(Row(6, 8)))
    symbolic = OrderBy(Row(size_symbol("M"), 8))
    assert "symbolic sizes (M)" in refused(from_layout, symbolic)
    assert from_layout(symbolic.bind(M=4)) == from_layout(OrderBy(Row(4, 8)))
    assert "powers of two; a is 0" in refused(identity, "a", "x", 0)
    assert "powers of two; a is 3" in refused(broadcast, "a", 3)


def outside(i: int) -> int:
    return i * 2


def test_a_function_that_leaves_the_tile() -> None:
    assert "element (4,) goes to position 8, outside of 0 to 7" in refused(
        from_layout, OrderBy(GenP([8], outside, outside))
    )


def test_names() -> None:
    plain = OrderBy(Row(2, 4))
    for names in [("i",), ("i", "i"), "ij"]:
        assert "2 dimensions need 2 names" in refused(from_layout, plain, names=names)
    assert "need names, not ['a b']" in refused(LinearLayout, (Dim("a b", 0),), (), ())
    assert "need names, not ['x', 'x']" in refused(LinearLayout, (), (Dim("x", 0),) * 2, ())


def test_values_that_do_not_belong() -> None:
    a = layout_a()
    x = {"register": 0, "lane": 0, "warp": 0}
    assert "the inputs are (register, lane, warp), not (lane)" in refused(a.apply, lane=1)
    assert "lane is 32, not in [0, 32)" in refused(a.apply, **x | {"lane": 32})
    assert "lane is -1, not in [0, 32)" in refused(a.apply, **x | {"lane": np.array([0, -1])})
    assert "coordinates are integers, not True" in refused(a.apply, **x | {"lane": True})
    assert "coordinates are integers, not float64" in refused(a.apply, **x | {"lane": np.zeros(2)})
    assert "has one image for each of 1 bits, not 2" in refused(
        LinearLayout, (Dim("a", 1),), (Dim("x", 2),), (1, 2)
    )
    assert "image 4 lies outside of (x: 4)" in refused(
        LinearLayout, (Dim("a", 1),), (Dim("x", 2),), (4,)
    )
    assert "a: (1,) has 1 coordinates, the outputs are (x: 2, y: 2)" in refused(
        linear, {"a": [(1,)]}, {"x": 2, "y": 2}
    )
    assert "a: x is 2, not in [0, 2)" in refused(linear, {"a": [(2,)]}, {"x": 2})


def test_operations_that_do_not_fit() -> None:
    a = layout_a()
    assert "a layout from (register: 4, lane: 32, warp: 2) cannot follow one to (j: 16, i: 16)" in (
        refused(a.__matmul__, a)
    )
    assert "maps a=2 to 0, as it does 0 itself" in refused(
        linear({"a": [(1,), (0,)]}, {"x": 2}).inverse
    )
    assert "reaches 2 of the 4 elements of (x: 4)" in refused(
        linear({"a": [(1,)]}, {"x": 4}).inverse
    )
    assert "no dimension 'k'" in refused(a.select, ["k"])
    assert "no dimension 'k'" in refused(a.rename, k="l")
    assert "(lane, warp) is no order of" in refused(a.with_inputs, "lane", "warp")
    assert "has 256 elements, (n: 128) has 128" in refused(a.reshape_inputs, n=128)
    assert "[0, 0] is no permutation of the 2 bits" in refused(a.permute_bits, "register", [0, 0])
    assert "maps a=3 to 0" in refused(to_layout, linear({"a": [(1,), (1,)]}, {"x": 4}))


def test_how_it_prints() -> None:
    layout = linear({"j": [(1,), (2,)], "i": [(5,)], "k": []}, {"offset": 8})
    assert str(layout) == (
        "(j: 4, i: 2, k: 1) -> (offset: 8)\n"
        "  j: 1 -> offset=1, 2 -> offset=2\n"
        "  i: 1 -> offset=5\n"
        "  k: -"
    )
    assert prod(d.size for d in layout.inputs) == layout.input_size == 8
