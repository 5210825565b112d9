"""The interpreter of tile IR, against NumPy on what each operation's specification says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tile_modules import load, memref, run, store, tile_module, tile_type

from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits

RNG = np.random.default_rng(7)
X = RNG.standard_normal((4, 8)).astype(np.float32)


def computed(
    body: str,
    shape: tuple[int, ...] = (4, 8),
    element: str = "f32",
    x: Any = X,
    kind: str = "f32",
    tile: tuple[int, ...] | None = None,
    **module: Any,
) -> Any:
    """Run `body`, from the tile %x of X to the tile %y of the given shape, and return it."""
    tensors = {"X": (kind, x.shape), "Y": (element, shape)}
    at = ", ".join(["%c0"] * x.ndim)
    out = ", ".join(["%c0"] * len(shape))
    text = tile_module(
        tensors,
        load("x", "X", memref(kind, x.shape), tile_type(tile or x.shape, kind), at)
        + body
        + store("y", "Y", memref(element, shape), tile_type(shape, element), out),
        **module,
    )
    dtype = {"bf16": ml_dtypes.bfloat16, "i1": bool}.get(element) or {
        "f": f"float{element[1:]}",
        "i": f"int{element[1:]}",
    }[element[0]]
    return run(text, x, np.zeros(shape, dtype))["Y"]


T, ROW = "tensor<4x8xf32>", "tensor<4x1xf32>"


def test_a_reduction_keeps_its_dimension() -> None:
    y = computed(
        f'%y = "lego.reduce"(%x) {{kind = "add", dim = 1 : i64}} : ({T}) -> {ROW}\n', (4, 1)
    )
    assert np.array_equal(y, X.astype(np.float64).sum(1, keepdims=True).astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("add", lambda x: x.sum(0, keepdims=True, dtype=x.dtype)),
        ("mul", lambda x: x.prod(0, keepdims=True, dtype=x.dtype)),
        ("max", lambda x: x.max(0, keepdims=True)),
        ("min", lambda x: x.min(0, keepdims=True)),
        ("umax", lambda x: x.view(np.uint8).max(0, keepdims=True).view(np.int8)),
        ("umin", lambda x: x.view(np.uint8).min(0, keepdims=True).view(np.int8)),
        ("and", lambda x: np.bitwise_and.reduce(x, 0, keepdims=True)),
        ("or", lambda x: np.bitwise_or.reduce(x, 0, keepdims=True)),
        ("xor", lambda x: np.bitwise_xor.reduce(x, 0, keepdims=True)),
    ],
)
def test_kinds_of_integers_wrap(kind: str, expected: Any) -> None:
    x = RNG.integers(-128, 128, (6, 8)).astype(np.int8)
    y = computed(
        f'%y = "lego.reduce"(%x) {{kind = "{kind}", dim = 0 : i64}} '
        ": (tensor<6x8xi8>) -> tensor<1x8xi8>\n",
        (1, 8),
        "i8",
        x,
        "i8",
    )
    assert np.array_equal(y, expected(x))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes_of_floats_are_nan_where_an_element_is(kind: str) -> None:
    x = X.copy()
    x[1, 3] = np.nan
    y = computed(
        f'%y = "lego.reduce"(%x) {{kind = "{kind}", dim = 1 : i64}} : ({T}) -> {ROW}\n', (4, 1), x=x
    )
    assert np.isnan(y[1, 0])
    assert np.isfinite(y[[0, 2, 3]]).all()


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_begin_at_either_end(reverse: bool) -> None:
    word = ", reverse" if reverse else ""
    y = computed(f'%y = "lego.scan"(%x) {{kind = "max", dim = 1 : i64{word}}} : ({T}) -> {T}\n')
    flipped = X[:, ::-1] if reverse else X
    found = np.maximum.accumulate(flipped, 1)
    assert np.array_equal(y, found[:, ::-1] if reverse else found)


MATRICES = """
    ^bb0(%p: f32, %q: f32, %r: f32, %s: f32):
      %u = arith.mulf %p, %r : f32
      %v = arith.mulf %q, %r : f32
      %w = arith.addf %v, %s : f32
      gpu.yield %u, %w : f32, f32
    }) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>,
        resultSegmentSizes = array<i32: 1, 1, 0, 0>MORE}
"""


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_by_a_function_keeps_the_order(reverse: bool) -> None:
    """The linear recurrence h = a h + b, whose steps do not commute."""
    b = RNG.standard_normal((4, 8)).astype(np.float32)
    word = ", reverse" if reverse else ""
    body = (
        load("b0", "B", memref("f32", (4, 8)), T, "%c0, %c0")
        + '%z, %y = "lego.scan_with"(%x, %b0) ({'
        + MATRICES.replace("MORE", word)
        + f": ({T}, {T}) -> ({T}, {T})\n"
    )
    tensors = {"X": ("f32", (4, 8)), "B": ("f32", (4, 8)), "Y": ("f32", (4, 8))}
    text = tile_module(
        tensors,
        load("x", "X", memref("f32", (4, 8)), T, "%c0, %c0")
        + body
        + store("y", "Y", memref("f32", (4, 8)), T, "%c0, %c0"),
    )
    y = run(text, X, b, np.zeros_like(X))["Y"]
    expected = np.empty((4, 8))
    if reverse:  # elements k to the last; what comes first is the first argument
        p, r = np.ones(4), np.zeros(4)
        for k in range(7, -1, -1):
            p, r = X[:, k] * p, b[:, k] * p + r
            expected[:, k] = r
    else:
        h = np.zeros(4)
        for k in range(8):
            h = h * X[:, k] + b[:, k]
            expected[:, k] = h
    assert np.allclose(y, expected, rtol=1e-5)


ARGMAX = """
      %k = "lego.iota"() {dim = 1 : i64} : () -> tensor<4x8xi32>
      %m, %y = "lego.reduce_with"(%x, %k) ({
        ^bb0(%p: f32, %q: i32, %r: f32, %s: i32):
          %g = arith.cmpf ogt, %p, %r : f32
          %u = arith.select %g, %p, %r : f32
          %w = arith.select %g, %q, %s : i32
          gpu.yield %u, %w : f32, i32
      }) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0>,
          resultSegmentSizes = array<i32: 1, 1, 0, 0>}
        : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x1xf32>, tensor<4x1xi32>)
"""


@pytest.mark.parametrize("columns", [8, 5])
def test_a_reduction_by_a_function_ignores_invalid_elements(columns: int) -> None:
    x = X[:, :columns] - 10  # zeros in place of what is not there would be the greatest
    y = computed(ARGMAX, (4, 1), "i32", x, tile=(4, 8))
    assert np.array_equal(y, x.argmax(1, keepdims=True))


@pytest.mark.parametrize(
    ("operation", "shape", "expected"),
    [
        ('"lego.transpose"(%x) {order = array<i64: 1, 0>}', (8, 4), X.T),
        ('"lego.reshape"(%x)', (2, 16), X.reshape(2, 16)),
        ('"lego.reshape"(%x)', (4, 1, 8), X[:, None]),
        ('"lego.convert"(%x)', (4, 8), X),
    ],
)
def test_views(operation: str, shape: tuple[int, ...], expected: Any) -> None:
    y = computed(f"%y = {operation} : ({T}) -> {tile_type(shape, 'f32')}\n", shape)
    assert np.array_equal(y, expected)


def test_join_and_split_are_inverse() -> None:
    pair = "tensor<4x8x2xf32>"
    y = computed(
        f"""%n = arith.negf %x : {T}
        %j = "lego.join"(%x, %n) : ({T}, {T}) -> {pair}
        %p, %q = "lego.split"(%j) : ({pair}) -> ({T}, {T})
        %y = "lego.join"(%q, %p) : ({T}, {T}) -> {pair}
        """,
        (4, 8, 2),
    )
    assert np.array_equal(y, np.stack([-X, X], -1))


def test_take_along_a_dimension() -> None:
    y = computed(
        f"""%k = "lego.iota"() {{dim = 1 : i64}} : () -> tensor<4x8xi32>
        %seven = arith.constant dense<7> : tensor<4x8xi32>
        %i = arith.subi %seven, %k : tensor<4x8xi32>
        %y = "lego.take"(%x, %i) {{dim = 1 : i64}} : ({T}, tensor<4x8xi32>) -> {T}
        """
    )
    assert np.array_equal(y, X[:, ::-1])


def test_a_dot_ignores_what_is_past_the_end() -> None:
    x = RNG.standard_normal((5, 6)).astype(np.float16)
    y = computed(
        """%u = "lego.transpose"(%x) {order = array<i64: 1, 0>}
            : (tensor<8x16xf16>) -> tensor<16x8xf16>
        %z = arith.constant dense<1.0> : tensor<8x8xf32>
        %y = "lego.dot"(%x, %u, %z)
            : (tensor<8x16xf16>, tensor<16x8xf16>, tensor<8x8xf32>) -> tensor<8x8xf32>
        """,
        (8, 8),
        x=x,
        kind="f16",
        tile=(8, 16),
    )
    wide = x.astype(np.float64)
    assert np.allclose(y[:5, :5], wide @ wide.T + 1, rtol=1e-6)
    assert not y[5:].any()  # rows of no element are invalid: they are not stored
    assert not y[:, 5:].any()


def test_bf16_is_rounded_at_each_operation() -> None:
    x = X.astype(ml_dtypes.bfloat16)
    kind = "tensor<4x8xbf16>"
    y = computed(
        f"%a = arith.mulf %x, %x : {kind}\n%y = math.exp %a : {kind}\n",
        element="bf16",
        x=x,
        kind="bf16",
    )
    square = (x.astype(np.float32) * x.astype(np.float32)).astype(ml_dtypes.bfloat16)
    expected = np.exp(square.astype(np.float64)).astype(ml_dtypes.bfloat16)
    assert np.array_equal(y, expected)


def test_what_is_restricted_is_not_stored() -> None:
    y = computed(
        f"""%z = arith.constant dense<0.0> : {T}
        %m = arith.cmpf ogt, %x, %z : {T}
        %r = "lego.restrict"(%x, %m) : ({T}, tensor<4x8xi1>) -> {T}
        %y = arith.addf %r, %r : {T}
        """
    )
    assert np.array_equal(y, np.where(X > 0, X + X, 0))


def test_partial_tiles_and_other_layouts() -> None:
    """A tile of the padded space of partial tiles, and one of a column-major tensor."""
    x = RNG.standard_normal((10, 6)).astype(np.float32)
    tiled = "OrderBy(Col(10, 6)).TileBy([3, 2], [4, 4])"
    body = (
        '%x = "lego.load"(%X, %b, %c1, %c0, %c0) {layout = #TILES, slice = array<i64: 2, 3>} '
        ": (memref<60xf32>, index, index, index, index) -> tensor<4x4xf32>\n"
        '%y = "lego.reduce"(%x) {kind = "add", dim = 1 : i64} '
        ": (tensor<4x4xf32>) -> tensor<4x1xf32>\n"
        "%four = arith.constant 4 : index\n%r = arith.muli %b, %four : index\n"
    ) + store("y", "Y", memref("f32", (10, 1)), "tensor<4x1xf32>", "%r, %c0")
    text = tile_module(
        {"X": ("f32", (10, 6)), "Y": ("f32", (10, 1))},
        body,
        grid=3,
        layouts={"TILES": tiled, "X": "OrderBy(Col(10, 6))"},
    ).replace(
        "layout = #TILES", 'layout = #lego.layout<"OrderBy(Col(10, 6)).TileBy([3, 2], [4, 4])">'
    )
    y = run(text, x, np.zeros((10, 1), np.float32))["Y"]
    assert np.allclose(y, x[:, 4:].sum(1, keepdims=True), rtol=1e-6)


def test_gather_and_atomic_scatter() -> None:
    """A histogram of what a gather brings."""
    data = RNG.integers(0, 4, 16).astype(np.int32)
    body = """
      %k = "lego.iota"() {dim = 0 : i64} : () -> tensor<32xi32>
      %n = arith.constant dense<16> : tensor<32xi32>
      %m = arith.cmpi slt, %k, %n : tensor<32xi32>
      %i = "lego.restrict"(%k, %m) : (tensor<32xi32>, tensor<32xi1>) -> tensor<32xi32>
      %x = "lego.gather"(%X, %i) {operandSegmentSizes = array<i32: 1, 1, 0>, layout = #X}
          : (memref<16xi32>, tensor<32xi32>) -> tensor<32xi32>
      %ones = arith.constant dense<1> : tensor<32xi32>
      "lego.scatter"(%ones, %Y, %x)
          {operandSegmentSizes = array<i32: 1, 1, 1, 0>, layout = #Y, kind = "add"}
          : (tensor<32xi32>, memref<4xi32>, tensor<32xi32>) -> ()
"""
    text = tile_module({"X": ("i32", (16,)), "Y": ("i32", (4,))}, body, grid=2)
    y = run(text, data, np.zeros(4, np.int32))["Y"]
    assert np.array_equal(y, 2 * np.bincount(data, minlength=4))


def test_control_flow_on_uniform_scalars() -> None:
    """The powers of two below 100, and the number of a CTA."""
    y = computed(
        """%unit = arith.constant 1 : i32
        %limit = arith.constant 100 : i32
        %n = scf.while (%k = %unit) : (i32) -> i32 {
          %less = arith.cmpi slt, %k, %limit : i32
          scf.condition(%less) %k : i32
        } do {
        ^bb0(%k: i32):
          %twice = arith.addi %k, %k : i32
          scf.yield %twice : i32
        }
        %is_first = arith.cmpi eq, %b, %c0 : index
        %z = scf.if %is_first -> (i32) {
          scf.yield %n : i32
        } else {
          scf.yield %unit : i32
        }
        %y = "lego.full"(%z) : (i32) -> tensor<4x8xi32>
        """,
        element="i32",
    )
    assert (y == 128).all()


def test_an_index_out_of_its_dimension_is_an_error() -> None:
    body = """%k = "lego.iota"() {dim = 0 : i64} : () -> tensor<32xi32>
      %x = "lego.gather"(%X, %k) {operandSegmentSizes = array<i32: 1, 1, 0>, layout = #X}
          : (memref<16xi32>, tensor<32xi32>) -> tensor<32xi32>
"""
    text = tile_module({"X": ("i32", (16,))}, body)
    with pytest.raises(LegoError, match=r"tiles.mlir:\d+:\d+: error: .* index 0 is 16, not in"):
        run(text, np.zeros(16, np.int32))


def test_a_loop_has_a_limit() -> None:
    text = tile_module(
        {"X": ("i32", (16,))},
        "%n = arith.constant 1000000000000 : index\n"
        "scf.for %i = %c0 to %n step %c1 {\n scf.yield\n }\n",
    )
    with Limits(interpreter_steps=50).applied(), pytest.raises(LegoError, match="steps is 50"):
        run(text, np.zeros(16, np.int32))


@pytest.mark.parametrize(
    ("operation", "x", "y", "expected"),
    [
        ("divsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("floordivsi", -7, 2, -4),
        ("ceildivsi", 7, 2, 4),
        ("divui", -1, 2, 127),
        ("shrsi", -8, 1, -4),
        ("shrui", -8, 1, 124),
        ("shli", 64, 1, -128),
        ("maxui", -1, 1, -1),
        ("minsi", -1, 1, -1),
        ("addi", 127, 1, -128),
        ("divsi", 5, 0, 0),
    ],
)
def test_integers(operation: str, x: int, y: int, expected: int) -> None:
    data = np.full((4, 8), x, np.int8)
    kind = "tensor<4x8xi8>"
    found = computed(
        f"%k = arith.constant dense<{y}> : {kind}\n%y = arith.{operation} %x, %k : {kind}\n",
        element="i8",
        x=data,
        kind="i8",
    )
    assert (found == expected).all()


@pytest.mark.parametrize(
    ("to", "x", "expected"),
    [
        ("i8", [300.0, -300.0, np.nan, 2.9, -2.9, np.inf], [127, -128, 0, 2, -2, 127]),
        ("i32", [1e20, -1e20, np.nan, 0.5], [2147483647, -2147483648, 0, 0]),
    ],
)
def test_floats_to_integers_saturate(to: str, x: list[float], expected: list[int]) -> None:
    data = np.resize(np.array(x, np.float32), (4, 8))
    y = computed(f"%y = arith.fptosi %x : {T} to {tile_type((4, 8), to)}\n", element=to, x=data)
    assert np.array_equal(y, np.resize(expected, (4, 8)))


@pytest.mark.parametrize(
    ("operation", "function"),
    [
        ("math.sqrt", np.sqrt),
        ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
        ("math.exp2", np.exp2),
        ("math.log2", np.log2),
        ("math.tanh", np.tanh),
        ("math.erf", np.vectorize(__import__("math").erf)),
        ("math.floor", np.floor),
        ("math.ceil", np.ceil),
        ("math.roundeven", np.rint),
    ],
)
def test_functions_are_rounded_once(operation: str, function: Any) -> None:
    x = np.abs(X) + np.float32(0.25)
    y = computed(f"%y = {operation} %x : {T}\n", x=x)
    assert np.array_equal(y, function(x.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("predicate", ["oeq", "one", "ole", "ord", "ueq", "ult", "une", "uno"])
def test_comparisons_with_nan(predicate: str) -> None:
    x = X.copy()
    x[0] = np.nan
    y = computed(
        f"%n = arith.negf %x : {T}\n%m = arith.cmpf {predicate}, %x, %n : {T}\n"
        "%y = arith.extui %m : tensor<4x8xi1> to tensor<4x8xi8>\n",
        element="i8",
        x=x,
    )
    expected = {
        "eq": x == -x,
        "ne": x != -x,
        "le": x <= -x,
        "lt": x < -x,
    }.get(predicate[1:])
    if expected is None:
        expected = np.isnan(x) == (predicate == "uno")
    else:
        expected = np.where(np.isnan(x), predicate[0] == "u", expected)
    assert np.array_equal(y.astype(bool), expected)
