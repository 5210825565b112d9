"""Mistakes in kernels on tiles: one paragraph with the place, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

MATRIX = lg.Tensor["f32", (8, 1000)]
HALVES = lg.Tensor["f16", (64, 64)]
ROWS = "OrderBy(Row(4, 32, 8)).GroupBy([1024])"

Use = Callable[[Any, Any], Any]


def traced(use: Use, **options: Any) -> Any:
    def kernel(x: Any, h: Any) -> None:
        use(x, h)

    parameters = {"x": MATRIX, "h": HALVES}
    made = lg.kernel(**{"grid": 8, "warps": 4, "parameters": parameters} | options)(kernel)
    return made.module


def stored(tensor: Any, index: Any, value: Any) -> None:
    tensor[index] = value


MISTAKES: list[tuple[Use, str, str]] = [
    # Reductions and shapes.
    (lambda x, h: lg.sum(x[0, :], axis=1), "'sum' along dimension 1 of a tile of sizes", "are 0"),
    (lambda x, h: lg.argmax(h[:, :], axis=2), "'argmax' along dimension 2", "0, 1"),
    (lambda x, h: lg.cumsum(h[:, :]), "'cumsum' of tile<64x64xf16> needs a dimension", "axis=0"),
    (
        lambda x, h: x[0, :] + lg.arange(7).to("f32"),
        "tile<1000xf32> and tile<7xf32> do not",
        "size",
    ),
    (lambda x, h: lg.full((8, 2), 0, "f32") + x[0, :], "do not broadcast", "v\\[:, None\\]"),
    (lambda x, h: h[:, :] + x[0, 0], "type f16 is needed, not f32", '.to\\("f16"\\)'),
    (lambda x, h: x[0, :].reshape(10, 100), "held as one of", "powers of two"),
    (lambda x, h: h[:, :].reshape(64, 63), "4096 elements, the shape", "product"),
    (lambda x, h: h[:, :].transpose(0, 0), "no order of the dimensions", ""),
    (lambda x, h: h[:, :][0], "has ':' for every dimension", "lg.take"),
    (lambda x, h: list(x[0, :]), "no elements one by one", "lg.take"),
    (
        lambda x, h: lg.split(h[:, :][:, :, None]) and lg.split(x[0, :]),
        "'split' of",
        "power of two",
    ),
    (lambda x, h: lg.join(x[0, :], x[0, :], x[0, :]), "'join' takes 1, 2, 4", ""),
    (lambda x, h: lg.item(x[0, :]), "more than one element", "lg.sum"),
    (lambda x, h: lg.take(h[:, :], lg.arange(64)), "'take' of tile<64x64xf16>", "same sizes"),
    (
        lambda x, h: lg.take(x[0, :], x[0, :]),
        "indices of 'take' are tile<1000xf32>",
        '.to\\("i32"\\)',
    ),
    (lambda x, h: x[0, :].sum(), "tile<1000xf32> has no attribute 'sum'", "lg.sum is a function"),
    (lambda x, h: x[0, :].shap, "tile<1000xf32> has no attribute 'shap'", "did you mean shape"),
    (lambda x, h: lg.expp(x[0, :]), "there is no lg.expp", "did you mean lg.exp"),  # type: ignore[attr-defined]
    (lambda x, h: lg.reduce(lambda a, b: a, (x[0, :],) * 5), "one to 4 tiles, not 5", ""),
    (lambda x, h: lg.reduce(lambda a, b: a > b, x[0, :]), "combines elements of f32", ""),
    (lambda x, h: lg.reduce(lambda a, b: a, x[0, :], identity="0"), "an identity of", ""),
    (lambda x, h: lg.sum(x), "'sum' is for tiles, not <kernel tensor x", "x\\[i, :\\]"),
    (lambda x, h: lg.sum(x[0, 0]), "'sum' is for tiles, not f32", "x\\[i, :\\]"),
    (lambda x, h: lg.fill(x[0, :], x[0, 0]), "is filled with a number of f32, not", ""),
    # Memory.
    (lambda x, h: x[9, :], "index 0 of tensor 'x' is 9, its size is 8", ""),
    (lambda x, h: x.tile(4, 100)[2, 0], "index 0 of the tiles of tensor 'x' is 2, its size", ""),
    (lambda x, h: x.tile(4, 100)[0], "are a grid of sizes \\(2, 10\\), the index has 1", ""),
    (lambda x, h: x.tile(4, 0), "positive integers, not \\(4, 0\\)", ""),
    (lambda x, h: x.tile(4, 8, step=8), "every \\(8,\\) elements", "step=8"),
    (lambda x, h: x.tile(8, step=0), "every \\(0,\\) elements", "step=8"),
    (lambda x, h: x.tile(1, 2, 3), "tensor 'x' has the dimensions \\(8, 1000\\)", ""),
    (lambda x, h: stored(x, (0, slice(None)), lg.arange(9).to("f32")), "does not broadcast", ""),
    (
        lambda x, h: stored(x, (0, slice(None)), lg.arange(1000)),
        "needed, not tile<1000xi32>",
        "f32",
    ),
    (lambda x, h: x[lg.arange(8)], "tensor 'x' has 2 dimensions", ""),
    (lambda x, h: x[x[0, :], 0], "an index of tensor 'x' is tile<1000xf32>", "i32"),
    # Layouts and dots.
    (lambda x, h: lg.convert(h[:, :], ROWS), "the layout of tile<64x64xf16>", ""),
    (lambda x, h: lg.convert(h[:, :], "OrderBy("), "the layout of tile<64x64xf16>", ""),
    (lambda x, h: lg.convert(x[0, :], 5), "5 is no layout", ""),
    (lambda x, h: h.tile(64, 64).placed(5)[0, 0], "5 is no layout", ""),
    (
        lambda x, h: lg.convert(
            lg.zeros((16, 8), "f32"),
            "OrderBy(Row(1, 32, 4)).OrderBy(RegP([2, 8, 4, 2], [1, 2, 0, 3])).GroupBy([16, 8])",
        ),
        "in 1 warps, but tile<16x8xf32>",
        "",
    ),
    (lambda x, h: lg.dot(h[:, :], x.tile(8, 64)[0, 0]), "no matrix multiplication", "columns"),
    (lambda x, h: lg.dot(h[:, :], h[:, :], lg.zeros((64, 64), "i32")), "is added to", "floating"),
    # What is for kernels of threads.
    (lambda x, h: lg.thread_id(), "'thread_id' is for kernels of threads", "compiler distributes"),
    (lambda x, h: lg.barrier(), "'barrier' is for kernels of threads", "compiler distributes"),
    (lambda x, h: lg.shared("f32", None), "'shared' is for kernels of threads", ""),  # type: ignore[arg-type]
    (lambda x, h: lg.choose(lg.block_id(), [lambda: 1]), "lg.choose is for kernels of", "lg.cond"),
    # Truth values, control flow, numbers.
    (lambda x, h: 1 if lg.sum(x[0, :]) > 0 else 2, "truth of a kernel value", "lg.where"),
    (
        lambda x, h: lg.where(x[0, :], 1.0, 0.0),
        "the condition of 'where' is a truth value",
        "x > 0",
    ),
    (lambda x, h: lg.where(x[0, :] > 0, 1.0, 0.0), "whose type is not known", "lg.full"),
    (lambda x, h: lg.cond(x[0, :] > 0, lambda: 1, lambda: 2), "one truth value, not tile", "any"),
    (lambda x, h: lg.cond(x[0, 0] > 0, lambda: 1.0, lambda: x[0, :]), "returns f32, its func", ""),
    (lambda x, h: lg.if_(x[0, 0] > 0)(lambda: 1), "the function of lg.if_ returns", "lg.cond"),
    (lambda x, h: lg.while_(lambda n: n, 0)(lambda n: n), "condition of a loop is one truth", ""),
    (lambda x, h: lg.fold(4, 0.0)(lambda k, t: x[0, :]), "the loop carries f32, its func", "next"),
    (lambda x, h: x[0, :] // 2, "'//' and '%' are for integers, not tile<1000xf32>", ""),
    (lambda x, h: x[0, :] & 1, "'&' is for integers and truth values", "bitcast"),
    (lambda x, h: lg.arange(4) << 32, "'<<' of i32 by 32", "0 to 31"),
    (lambda x, h: lg.full((8,), 0), "'full' of 0 needs a type", "lg.full"),
    (lambda x, h: lg.full((8,), -1, "u8"), "type i8 is needed, not -1", ""),
    (lambda x, h: lg.full((8, 0), 0, "f32"), "sizes are positive integers", ""),
    (lambda x, h: lg.printf("{}", x[0, :]), "'printf' shows scalars", "lg.sum"),
    (lambda x, h: lg.printf("{}"), "has 1 values, given are 0", ""),
    (lambda x, h: lg.check(x[0, :] > 0), "the condition of lg.check is one truth", "lg.all"),
    (lambda x, h: lg.op("math.sqr", x[0, :], result="f32"), "'math.sqr' is no operation", ""),
    (lambda x, h: lg.op("llvm.fneg", x[0, :], result="f32"), "'llvm.fneg' takes no tiles", "arith"),
    (lambda x, h: lg.inline_ptx("", x[0, :], result="f32"), "takes scalars and vectors", "lg.op"),
]


@pytest.mark.parametrize(("use", "says", "hint"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_a_mistake_is_an_error_at_its_line(use: Use, says: str, hint: str) -> None:
    with pytest.raises(LegoError, match=says) as info:
        traced(use)
    assert re.search(hint, info.value.hint or "")
    assert "test_mistakes.py" in str(info.value.location)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"block": 128}, "has block and warps"),
        ({"warps": None}, "has neither block nor warps"),
        ({"warps": 0}, "a number from 1 to 32, not 0"),
        ({"tile_multiple": 4}, "tile_multiple is 4\n.*16 or 8"),
        ({"warps": None, "block": 128, "tile_multiple": 8}, "tile_multiple is 8\n.*on tiles"),
        ({"warps": 33}, "a number from 1 to 32, not 33"),
        ({"warps": True}, "a number from 1 to 32, not True"),
        ({"schedule": "unroll"}, "has warps and the schedule 'unroll'"),
        ({"grid": lambda y: 1}, "takes 'y', which is no parameter"),
        ({"grid": lambda x: x.shape[7]}, "the function of its grid fails"),
        ({"grid": lambda x: x.rows}, "the function of its grid fails"),
        ({"grid": lambda: 0}, "grid is one to three positive integers, not 0"),
    ],
)
def test_wrong_sizes_of_a_kernel(options: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        traced(lambda x, h: None, **options)


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (("f32", "M, N :"), "expected a size, found the end"),
        (("f32", "M, N : 1"), "there are 2 sizes and 1 strides"),
        (("f32", "M, N : 1, M"), "the stride M depends on a size"),
        (("f32", "M, N : 0, 1"), "a stride is a positive integer, not 0"),
        (("f32", "M, N<=8|8"), "bounds are ascending positive integers"),
        (("f32", "M, N<=0"), "bounds are ascending positive integers"),
        (("f32", "M, 64<=128"), "only a name has a bound"),
        (("f32", "M<=8, M<=16"), "the size M has two different bounds"),
        (("f32", "M N"), "unexpected 'N' after the sizes"),
        (("f32", "8, -1"), "a size is a positive integer, not -1"),
        (("f32", (8, 0)), "sizes of a tensor are positive integers"),
        (("f32", ()), r"\(\) is no layout"),
        (("f32", 8), "8 is no layout"),
        (("u4", (8,)), "'u4' is no element type"),
    ],
)
def test_wrong_types_of_tensors(item: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        lg.Tensor[item]


def test_functions_of_tiles_are_for_kernels_on_tiles() -> None:
    def body(x: Any, h: Any) -> None:
        lg.arange(4)

    kernel = lg.kernel(grid=1, block=32, parameters={"x": MATRIX, "h": HALVES})(body)
    with pytest.raises(LegoError, match=r"lg\.arange is for kernels on tiles") as info:
        kernel.module  # noqa: B018
    assert "warps=4" in (info.value.hint or "")


@pytest.mark.parametrize(
    ("wrong", "says", "takes"),
    [
        (lambda x, row: lg.fold(4, row)(lambda a: a), "lg.fold has the parameters (a)", "index"),
        (lambda x, row: lg.while_(lambda: True, row), "condition of lg.while_", "one parameter"),
        (lambda x, row: lg.while_(lambda r: x[0, 0] > 0, row)(lambda r, s: r), "(r, s)", "one"),
        (lambda x, row: lg.if_(x[0, 0] > 0)(lambda a: None), "lg.if_ has the parameters (a)", "no"),
        (lambda x, row: lg.cond(x[0, 0] > 0, lambda: 0.0, 1.0), "is a function, not 1.0", "lambda"),
        (lambda x, row: lg.reduce(lambda a: a, row, 0, identity=0), "(a), and is", "two scalars"),
        (lambda x, row: lg.scan(lambda a, b, c: a, (row, row), 0), "(a, b, c)", "tuples of 2"),
    ],
)
def test_functions_with_other_parameters(wrong: Any, says: str, takes: str) -> None:
    def body(x: Any, h: Any) -> None:
        found = wrong(x, x[0, :])
        if callable(found):
            found(lambda row: row)

    kernel = lg.kernel(grid=1, warps=1, parameters={"x": MATRIX, "h": HALVES})(body)
    with pytest.raises(LegoError, match=re.escape(says)) as info:
        kernel.module  # noqa: B018
    assert takes in (info.value.hint or "")


def test_names_of_ready_made_kernels_are_told_apart() -> None:
    kernel = lg.kernel(grid=1, warps=1, parameters={"x": MATRIX, "h": HALVES})(
        lambda x, h: lg.softmax(x[0, :])  # type: ignore[attr-defined]
    )
    with pytest.raises(LegoError, match=r"there is no lg\.softmax") as info:
        kernel.module  # noqa: B018
    assert "lego_mlir.kernels.softmax" in (info.value.hint or "")
    with pytest.raises(AttributeError) as outside:
        lg.softmax  # type: ignore[attr-defined] # noqa: B018
    assert "lego_mlir.kernels.softmax" in outside.value.__notes__[0]


def test_a_tile_too_large_is_an_error() -> None:
    def body(x: Any, h: Any) -> None:
        row = x.tile(8, 1000)[0, 0]
        big = row[:, :, None] + lg.zeros((8, 1000, 64), "f32")
        x.tile(8, 1000)[0, 0] = lg.sum(big * lg.exp(big), 2)

    kernel = lg.kernel(grid=1, warps=1, parameters={"x": MATRIX, "h": HALVES})(body)
    with pytest.raises(LegoError):
        kernel.compilation().text("ptx")
