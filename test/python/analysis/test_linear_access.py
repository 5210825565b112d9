"""Named linear layouts against the PTX ISA's formulas, and accesses against what they would do.

Eligibility is compared with a search: over all orders of the registers, does every instruction
touch what it must? What `matrix_access` answers is executed by an `ldmatrix` of a few lines.
"""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import GenP, OrderBy, swizzle
from lego_mlir.analysis.linear import (
    Dim,
    LinearLayout,
    blocked,
    broadcast,
    contiguous_elements,
    conversion,
    copies,
    from_layout,
    identity,
    is_distributed,
    is_memory,
    linear,
    matrix_access,
    matrix_tile,
    mma_accumulator,
    mma_lhs,
    mma_rhs,
    swizzled,
    unswizzled,
    vectorization,
    wgmma_accumulator,
    wgmma_lhs,
)
from lego_mlir.diagnostics import LegoError

powers = st.sampled_from([1, 2, 4, 8])


def refused(make: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(LegoError) as caught:
        make(*args, **kwargs)  # type: ignore[operator]
    return str(caught.value)


# ---------------------------------------------------------------------------------- fragments
def held(layout: LinearLayout) -> dict[tuple[int, int, int], tuple[int, int]]:
    """(register, lane, warp) to (row, column)."""
    sizes = {d.name: d.size for d in layout.inputs}
    found = {}
    for r, t, w in product(*(range(sizes.get(n, 1)) for n in ("register", "lane", "warp"))):
        at = {n: x for n, x in (("register", r), ("lane", t), ("warp", w)) if n in sizes}
        y = layout.apply(**at)
        found[r, t, w] = y["dim0"], y["dim1"]
    return found


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
def test_mma_operands_are_those_of_the_ptx_isa(bits: int) -> None:
    """PTX ISA, fragments of mma.m16n8kK: n elements a 32-bit register, K = 8n."""
    n = 32 // bits
    lhs = {
        (a, t, 0): (t // 4 + (a // n % 2) * 8, t % 4 * n + a % n + (a // (2 * n)) * 4 * n)
        for a in range(4 * n)
        for t in range(32)
    }
    rhs = {
        (b, t, 0): (t % 4 * n + b % n + (b // n) * 4 * n, t // 4)
        for b in range(2 * n)
        for t in range(32)
    }
    assert held(mma_lhs(bits)) == lhs
    assert held(mma_rhs(bits)) == rhs
    assert [str(d) for d in mma_lhs(bits).outputs] == [f"dim1: {8 * n}", "dim0: 16"]
    assert [str(d) for d in mma_rhs(bits).outputs] == ["dim1: 8", f"dim0: {8 * n}"]


def test_mma_accumulator_is_that_of_the_ptx_isa() -> None:
    """c0 and c1 in row lane/4 at columns 2*(lane%4) and one more, c2 and c3 eight rows below."""
    expected = {
        (c, t, 0): (t // 4 + (0 if c < 2 else 8), t % 4 * 2 + (c & 1))
        for c in range(4)
        for t in range(32)
    }
    assert held(mma_accumulator()) == expected


@pytest.mark.parametrize("columns", [8, 64, 256])
def test_wgmma_fragments_are_those_of_the_ptx_isa(columns: int) -> None:
    """64×N over four warps: d[4k..4k+3] in columns 8k to 8k+7 as in mma's accumulator."""
    expected = {
        (d, t, w): (16 * w + t // 4 + 8 * (d // 2 % 2), 8 * (d // 4) + t % 4 * 2 + d % 2)
        for d in range(columns // 2)
        for t in range(32)
        for w in range(4)
    }
    assert held(wgmma_accumulator(columns)) == expected
    lhs = {
        (r, t, w): (i + 16 * w, j)
        for (r, t, _), (i, j) in held(mma_lhs(16)).items()
        for w in range(4)
    }
    assert held(wgmma_lhs(16)) == lhs


@pytest.mark.parametrize(
    "layout",
    [
        mma_accumulator(),
        wgmma_accumulator(128),
        wgmma_lhs(8),
        *map(mma_lhs, (4, 8, 16, 32)),
        mma_rhs(16),
    ],
    ids=lambda layout: str(layout).splitlines()[0],
)
def test_fragments_are_distributed_layouts(layout: LinearLayout) -> None:
    """Proposition 4.7, and what makes its transpose one too (section 4.4)."""
    assert is_distributed(layout)
    assert layout.is_invertible
    assert is_distributed(layout.rename(dim0="dim1", dim1="dim0"))


# -------------------------------------------------------------------------------------- blocked
@settings(max_examples=50)
@given(st.data())
def test_blocked_layouts_tile_the_tensor(data: st.DataObject) -> None:
    """Proposition 4.6, against tiles in tiles by division and remainder."""
    rank = data.draw(st.integers(1, 3))
    vectors = st.lists(st.sampled_from([1, 1, 2]), min_size=rank, max_size=rank)
    registers, lanes, warps = (data.draw(vectors) for _ in range(3))
    shape = data.draw(st.lists(st.sampled_from([1, 2, 8]), min_size=rank, max_size=rank))
    order = data.draw(st.permutations(range(rank)))
    layout = blocked(shape, registers, lanes, warps, order)
    repeats = [
        max(1, n // (r * t * w)) for n, r, t, w in zip(shape, registers, lanes, warps, strict=True)
    ]

    def peel(x: int, sizes: list[int]) -> list[int]:
        index = [0] * rank
        for k in order:
            index[k], x = x % sizes[k], x // sizes[k]
        return index

    sizes = {d.name: d.size for d in layout.inputs}
    tile = 1
    for r in registers:
        tile *= r
    for r, t, w in product(*(range(sizes[n]) for n in ("register", "lane", "warp"))):
        parts = zip(
            peel(r % tile, registers),
            peel(t, lanes),
            peel(w, warps),
            peel(r // tile, repeats),
            registers,
            lanes,
            warps,
            shape,
            strict=True,
        )
        expected = {
            f"dim{k}": (((d * nw + c) * nt + b) * nr + a) % n
            for k, (a, b, c, d, nr, nt, nw, n) in enumerate(parts)
        }
        assert layout.apply(register=r, lane=t, warp=w) == expected
    assert is_distributed(layout)
    assert [d.size for d in layout.outputs] == shape[::-1]


def test_copies_are_zero_columns() -> None:
    """Section 5.1: a zero column in A_reg makes registers 4-7 those of 0-3."""
    a = blocked((16, 16), (2, 2), (4, 8), (2, 1))
    assert copies(a) == {}
    wider = a.with_inputs("lane", "warp", "register") * broadcast("register", 2)
    assert copies(wider) == {"register": (2,)}
    for r in range(4):
        x = {"lane": 9, "warp": 1}
        assert wider.apply(register=r + 4, **x) == wider.apply(register=r, **x)
    assert is_distributed(wider)
    small = blocked((4, 4), (1, 2), (8, 4), (2, 2))
    assert copies(small) == {"lane": (1, 4), "warp": (0, 1)}
    assert [small.apply(register=0, lane=t, warp=0)["dim0"] for t in (0, 4, 8, 16)] == [0, 1, 2, 0]


def test_slices_of_distributed_layouts_are_distributed() -> None:
    """Proposition 4.8 and its remark: surjective, not injective."""
    rows = mma_lhs(16).select(outputs=["dim0"])
    assert is_distributed(rows)
    assert copies(rows) == {"register": (0, 2), "lane": (0, 1)}


def test_layouts_that_are_not_distributed() -> None:
    def reason(bases: dict[str, list[tuple[int]]], size: int = 4) -> str:
        verdict = is_distributed(linear(bases, {"x": size}))
        assert not verdict
        return verdict.detail

    assert reason({"register": [(1,), (3,)]}) == "a column maps to x=3: more than one bit"
    assert reason({"register": [(1,)], "lane": [(1,), (2,)]}) == "two columns map to x=1"
    assert reason({"lane": [(1,)]}) == "it does not reach all of (x: 4)"
    assert reason({"offset": [(1,), (2,)]}) == "offset is none of register, lane and warp"


# --------------------------------------------------------------------------------- memory layouts
def definition_4_11(i: int, j: int, vec: int, per_phase: int, max_phase: int) -> int:
    return ((i // per_phase % max_phase) ^ (j // vec)) * vec ^ (j % vec)


@given(st.integers(0, 4), st.integers(0, 5), powers, powers, powers)
def test_swizzled_is_definition_4_11(
    m: int, n: int, vec: int, per_phase: int, max_phase: int
) -> None:
    """The matrix is [I C; 0 I]; where the phases fit a row, its inverse is the formula."""
    layout = swizzled((2**m, 2**n), vec, per_phase, max_phase)
    for k in range(n):
        assert layout.columns[k] == 1 << k
    for k in range(m):
        c = (vec * (2**k // per_phase % max_phase)) % 2**n
        assert layout.columns[n + k] == 2 ** (n + k) + c
    assert is_memory(layout)
    assert layout.inverse().columns == layout.columns
    if vec * max_phase <= 2**n:
        for i, j in product(range(2**m), range(2**n)):
            offset = i * 2**n + definition_4_11(i, j, vec, per_phase, max_phase)
            assert layout.apply(offset=offset) == {"dim0": i, "dim1": j}
        ours = from_layout(OrderBy(GenP([2**m, 2**n], swizzle(vec, per_phase, max_phase))))
        assert ours.inverse() == layout


def test_unswizzled() -> None:
    rows = unswizzled((4, 8))
    assert [rows.apply(offset=o) for o in (1, 9)] == [
        {"dim1": 1, "dim0": 0},
        {"dim1": 1, "dim0": 1},
    ]
    assert unswizzled((4, 8), order=(0, 1)).apply(offset=9) == {"dim1": 2, "dim0": 1}
    assert is_memory(rows)


def test_layouts_that_are_no_memory_layout() -> None:
    three = linear({"offset": [(1,), (2,), (7,)]}, {"x": 8})
    assert is_memory(three).detail == "a column maps to x=7: more than two bits"
    assert not is_memory(three)
    assert is_memory(linear({"offset": [(1,)]}, {"x": 4})).detail == "it is no bijection to (x: 4)"


# ----------------------------------------------------------------------------- vectorised access
@pytest.mark.parametrize(
    ("shape", "registers", "elements"),
    [
        ((512, 1), (4, 1), 4),  # one element a row: the legacy rule sees no vector
        ((512, 2), (8, 2), 16),  # Table 3: 128 bits of f8, not 16
        ((512, 4), (4, 4), 16),
        ((512, 8), (2, 8), 16),
        ((128, 64), (4, 1), 1),  # registers down a column
    ],
)
def test_contiguous_elements(
    shape: tuple[int, int], registers: tuple[int, int], elements: int
) -> None:
    layout = blocked(shape, registers, (32 // min(4, shape[1]), min(4, shape[1])), (1, 1))
    if shape[1] <= registers[1]:
        layout = blocked(shape, registers, (32, 1), (1, 1))
    assert contiguous_elements(layout) == elements


def test_contiguous_elements_of_a_layout_with_xor() -> None:
    """Elements 2 and 3 are in registers 3 and 2."""
    assert contiguous_elements(linear({"register": [(1,), (3,)]}, {"x": 4})) == 2


@given(st.data())
def test_contiguous_elements_by_the_definition(data: st.DataObject) -> None:
    """Section 5.1: the largest u whose elements before it are in the registers of their number."""
    n, zeros = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 2))
    columns = data.draw(st.permutations([1 << k for k in range(n)] + [0] * zeros))
    cut = data.draw(st.integers(0, n + zeros))
    layout = LinearLayout(
        (Dim("register", cut), Dim("lane", n + zeros - cut)), (Dim("x", n),), tuple(columns)
    )
    u = 0
    while u < 2**n and u < 2**cut and layout.apply(register=u, lane=0)["x"] == u:
        u += 1
    assert contiguous_elements(layout) == 1 << (u.bit_length() - 1)
    memory = identity("offset", "x", 2**n)
    assert vectorization(layout, memory, 1, permute=False).elements == contiguous_elements(layout)


@st.composite
def problems(draw: st.DrawFn, registers: int, lanes: int, likely: LinearLayout) -> LinearLayout:
    """A bijection from registers and lanes to offsets, often a multiple of `likely` in disguise."""
    inputs = Dim("register", draw(st.integers(0, registers))), Dim("lane", lanes)
    n = sum(d.bits for d in inputs)
    used = {d.name: d.bits for d in likely.inputs}
    fits = used.get("register", 0) <= inputs[0].bits and used.get("lane", 0) <= lanes
    if fits and draw(st.integers(0, 3)):
        low = sum(d.bits for d in likely.outputs)
        top = [1 << k for k in draw(st.permutations(range(n - low)))]
        rest = LinearLayout(
            tuple(Dim(d.name, d.bits - used.get(d.name, 0)) for d in inputs),
            (Dim("offset", n - low),),
            tuple(top),
        )
        layout = likely * rest
        layout = layout.with_inputs("register", "lane")
        layout = layout.permute_bits("register", draw(st.permutations(range(inputs[0].bits))))
    else:
        columns = draw(st.permutations([1 << k for k in range(n)]))
        layout = LinearLayout(inputs, (Dim("offset", n),), tuple(columns))
    # XOR one column into another: a swizzle of the higher or of the lower bits.
    columns = list(layout.columns)
    for _ in range(draw(st.integers(0, 2)) if n > 1 else 0):
        a, b = draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=2, unique=True))
        columns[a] ^= columns[b]
    return LinearLayout(layout.inputs, layout.outputs, tuple(columns))


def orders(layout: LinearLayout) -> list[tuple[int, ...]]:
    bits = next(d.bits for d in layout.inputs if d.name == "register")
    return list(permutations(range(bits)))


def renumber(register: int, order: tuple[int, ...]) -> int:
    """The register that stands where the order puts number `register`."""
    return sum(1 << order[k] for k in range(len(order)) if register >> k & 1)


def is_vector(layout: LinearLayout, order: tuple[int, ...], size: int) -> bool:
    """Whether each lane's registers, in this order, make aligned runs of `size` offsets."""
    at = {d.name: d.size for d in layout.inputs}
    for lane, start in product(range(at["lane"]), range(0, at["register"], size)):
        run = [
            layout.apply(register=renumber(start + k, order), lane=lane)["offset"]
            for k in range(size)
        ]
        if run[0] % size or run != list(range(run[0], run[0] + size)):
            return False
    return size <= at["register"]


@settings(max_examples=150)
@given(problems(3, 2, identity("register", "offset", 4)), st.sampled_from([16, 32, 64]))
def test_vectors_against_a_search(layout: LinearLayout, bits: int) -> None:
    """The widest over all orders of the registers, and without reordering."""
    memory = identity("offset", "x", layout.output_size)
    tensor = layout.rename(offset="x")
    widest = max(
        size
        for order in orders(layout)
        for size in (1, 2, 4, 8)
        if size * bits <= 128 and (size == 1 or is_vector(layout, order, size))
    )
    found = vectorization(tensor, memory, bits)
    assert found.elements == widest
    assert widest == 1 or is_vector(layout, found.registers, widest)
    assert found.limit
    plain = tuple(range(len(found.registers)))
    fixed = vectorization(tensor, memory, bits, permute=False)
    assert fixed.registers == plain
    assert fixed.elements == max(
        size
        for size in (1, 2, 4, 8)
        if size * bits <= 128 and (size == 1 or is_vector(layout, plain, size))
    )


def test_generalized_vectorization() -> None:
    """A column-major memory needs the registers in another order (section 5.3)."""
    layout = blocked((16, 16), (2, 4), (8, 4), (1, 1))
    memory = unswizzled((16, 16), order=(0, 1))
    assert vectorization(layout, memory, 32, permute=False).elements == 1
    found = vectorization(layout, memory, 32)
    assert (found.elements, found.registers) == (2, (2, 0, 1))
    assert found.limit == "no bit of register maps to offset=2"
    rows = vectorization(layout, unswizzled((16, 16)), 32)
    assert (rows.elements, rows.limit) == (4, "a lane moves at most 128 bits at once")


def test_a_swizzle_of_single_elements_allows_no_vector() -> None:
    layout = blocked((16, 16), (1, 8), (16, 2), (1, 1))
    assert vectorization(layout, swizzled((16, 16), 4, 1, 4), 16).elements == 4
    found = vectorization(layout, swizzled((16, 16), 1, 1, 16), 16)
    assert found.elements == 1
    assert found.limit == "lane bit 1 maps to offset=17, which falls inside the tile (offset: 2)"


# --------------------------------------------------------------------------------------- ldmatrix
def test_matrix_tile() -> None:
    """id_k from registers times id_2 from lanes, k = log2(4 / w) for w bytes (section 5.3)."""
    for bytes_, k in ((1, 2), (2, 1), (4, 0)):
        tile = matrix_tile(8 * bytes_)
        assert tile.bases == {
            "register": tuple((1 << b,) for b in range(k)),
            "lane": ((1 << k,), (2 << k,)),
        }


def load(layout: LinearLayout, bits: int, transposed: bool) -> bool:
    """Execute the answer as `ldmatrix` would; whether every register gets its element.

    Memory holds each element's own offset. Lane 8m + r supplies the address of row r of matrix m,
    16 bytes; lane t gets the 32 bits number t%4 of row t/4, or, transposed, column t/4 of the rows
    2*(t%4) and 2*(t%4) + 1 (PTX ISA, ldmatrix).
    """
    memory = identity("offset", "x", layout.output_size)
    found = matrix_access(layout.rename(offset="x"), memory, bits, transposed=transposed)
    if not found:
        assert found.reason
        return False
    assert found.rows is not None
    packed = 32 // bits
    instructions = next(d.size for d in found.rows.inputs if d.name == "register")
    for q, m in product(range(instructions), range(found.matrices)):
        rows = []
        for r in range(8):
            start = found.rows.apply(row=r, matrix=m, register=q)["offset"]
            assert start % (4 * packed) == 0  # 16 bytes
            rows.append(range(start, start + 4 * packed))
        for t, k in product(range(32), range(packed)):
            got = rows[t % 4 * 2 + k][t // 4] if transposed else rows[t // 4][t % 4 * packed + k]
            number = k + packed * (m + found.matrices * q)
            register = renumber(number, found.registers)
            assert layout.apply(register=register, lane=t)["offset"] == got
    assert instructions * found.matrices * packed == next(
        d.size for d in layout.inputs if d.name == "register"
    )
    return True


def is_rows(layout: LinearLayout, order: tuple[int, ...], bits: int) -> bool:
    """Whether every four lanes' registers, taken in this order, are aligned rows of 16 bytes."""
    packed = 32 // bits
    registers = next(d.size for d in layout.inputs if d.name == "register")
    for group, start in product(range(8), range(0, registers, packed)):
        row = [
            layout.apply(register=renumber(start + k, order), lane=4 * group + t)["offset"]
            for t in range(4)
            for k in range(packed)
            if start + k < registers
        ]
        if row[0] % (4 * packed) or row != list(range(row[0], row[0] + 4 * packed)):
            return False
    return True


def is_columns(layout: LinearLayout) -> bool:
    """Whether of each register the lanes of one number modulo 4 hold aligned rows of 16 bytes."""
    registers = next(d.size for d in layout.inputs if d.name == "register")
    for t, register in product(range(4), range(registers)):
        row = [layout.apply(register=register, lane=4 * g + t)["offset"] for g in range(8)]
        if row[0] % 8 or row != list(range(row[0], row[0] + 8)):
            return False
    return registers >= 2


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_matrix_access_against_a_search(bits: int) -> None:
    seen = set()

    @settings(max_examples=40)
    @given(problems(3, 5, matrix_tile(bits)))
    def check(layout: LinearLayout) -> None:
        truth = any(is_rows(layout, order, bits) for order in orders(layout))
        assert load(layout, bits, transposed=False) == truth
        seen.add(truth)

    check()
    assert seen == {True, False}


def test_transposed_matrix_access_against_a_search() -> None:
    turned = linear({"register": [], "lane": [(8,), (16,), (1,), (2,), (4,)]}, {"offset": 32})
    seen = set()

    @settings(max_examples=60)
    @given(problems(3, 5, turned))
    def check(layout: LinearLayout) -> None:
        truth = is_columns(layout)
        assert load(layout, 16, transposed=True) == truth
        seen.add(truth)

    check()
    assert seen == {True, False}


def test_operands_of_mma_load_by_matrices_from_a_swizzled_tile() -> None:
    """The case of section 5.3: f16 operands from rows of 128 bytes, chunks of 16 bytes XORed."""
    tile = swizzled((64, 64), 8, 1, 8)
    lhs = mma_lhs(16) * identity("register", "dim1", 4) * identity("warp", "dim0", 4)
    found = matrix_access(lhs, tile, 16)
    assert (found.matrices, found.registers) == (4, (0, 1, 2, 3, 4))
    assert found.rows is not None
    assert [str(d) for d in found.rows.inputs] == ["row: 8", "matrix: 4", "register: 4", "warp: 4"]
    # Matrix 2 is the right upper one of 16×16: its row 3 starts at (3, 8), chunk 1 ^ 3 of its row.
    assert found.rows.apply(row=3, matrix=2, register=0, warp=0) == {"offset": 3 * 64 + (1 ^ 3) * 8}
    assert found.rows.apply(row=0, matrix=0, register=1, warp=1) == {"offset": 16 * 64 + 2 * 8}
    # The right operand lies with its rows, K, downwards: only .trans gives columns of it.
    rhs = mma_rhs(16) * identity("register", "dim1", 8) * identity("register", "dim0", 4)
    assert not matrix_access(rhs, tile, 16)
    assert "no bit of register maps to" in matrix_access(rhs, tile, 16).reason
    assert matrix_access(rhs, tile, 16, transposed=True).matrices == 4
    assert vectorization(lhs, tile, 16).elements == 2


def test_why_not_by_matrices() -> None:
    tile = unswizzled((16, 16))
    assert matrix_access(mma_accumulator(), unswizzled((16, 8)), 32).reason == (
        "lane bit 0 maps to offset=2, the tile needs offset=1"
    )
    half = blocked((16, 16), (4, 4), (4, 4), (1, 1))
    assert matrix_access(half, tile, 16).reason == "a warp has 32 lanes, the layout 16"
    lhs = mma_lhs(16)
    assert matrix_access(lhs, swizzled((16, 16), 4, 1, 4), 16).reason == (
        "lane bit 2 maps to offset=20, which falls inside the tile (offset: 8)"
    )
    assert matrix_access(lhs, tile, 8, transposed=True).reason == (
        "with .trans elements have 16 bits, not 8"
    )
    single = blocked((8, 4), (1, 1), (8, 4), (1, 1))
    assert matrix_access(single, unswizzled((8, 4)), 16).reason == (
        "a matrix gives a lane 2 elements of 16 bits, the layout 1"
    )
    assert matrix_access(single, unswizzled((8, 4)), 32).matrices == 1


# ----------------------------------------------------------------------------------------- errors
def test_errors_name_the_argument() -> None:
    assert "mma takes elements of 4, 8, 16 or 32 bits, not 64" in refused(mma_lhs, 64)
    assert "wgmma has 8 to 256 columns, not 512" in refused(wgmma_accumulator, 512)
    assert "dim1 is 24" in refused(wgmma_accumulator, 24)
    assert "vec is 3" in refused(swizzled, (8, 8), 3, 1, 1)
    assert "max_phase is 0" in refused(swizzled, (8, 8), 1, 1, 0)
    assert "a matrix has two dimensions, not 1: [8]" in refused(swizzled, (8,), 1, 1, 1)
    assert "blocked: lane has sizes [32], the tensor [8, 8]" in refused(
        blocked, (8, 8), (1, 1), (32,), (1, 1)
    )
    assert "dim1 is 6" in refused(blocked, (8, 6), (1, 1), (8, 4), (1, 1))
    assert "unswizzled: [0, 0] is no order of 2 dimensions" in refused(
        unswizzled, (8, 8), order=(0, 0)
    )
    assert "unswizzled: [] is no order of 0 dimensions" in refused(unswizzled, ())
    layout, memory = mma_accumulator(), unswizzled((16, 16))
    assert "of (dim1: 8, dim0: 16) is not converted to" in refused(conversion, layout, memory)
    assert "at most 128, not 12" in refused(vectorization, layout, unswizzled((16, 8)), 12)
    assert "at most 32, not 64" in refused(matrix_tile, 64)
