"""Arguments of a wrong type or in a wrong place are errors that say what is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.algebra import OrderBy, Row, parse_layout
from lego_mlir.diagnostics import LegoError

X = np.zeros(4, np.float32)
FOUR = lg.Tensor["f32", "4"]
BYTES = lg.Tensor["u8", (32, 32)]
COUNTS = lg.Tensor["i32", (32, 32)]
NUMBER = lg.Scalar["i32"]
ANY = lg.Tensor["f32", "M"]


@lg.kernel(grid=1, warps=1)
def ones(x: FOUR) -> None:
    x[:] = 1.0


@lg.kernel(grid=lambda x: x.shape[0], warps=1)
def ones_of_any_size(x: ANY) -> None:
    x[lg.block_id()] = 1.0


def endless(x: Any) -> Any:
    return endless(x + 1)


@lg.kernel(grid=1, warps=1)
def without_end(x: FOUR) -> None:
    x[:] = endless(x[:])


@lg.kernel(grid=1, warps=1)
def calling_a_kernel(x: FOUR) -> None:
    ones(x)


@lg.kernel(grid=1, block=32)
def deep_in_indices(x: FOUR) -> None:
    at = lg.thread_id()
    for _ in range(3000):
        at = (at * 3 + 1) % 4
    x[at] = 1.0


@lg.kernel(grid=1, warps=4)
def dot_without_sign(x: BYTES, y: BYTES, z: COUNTS) -> None:
    z[:, :] = lg.dot(x[:, :], y[:, :].bitcast("i8"))


@lg.kernel(grid=1, block=128)
def vector_dot_without_sign(x: BYTES, y: BYTES, z: COUNTS) -> None:
    z[:, :] = lg.dot(x[:, :], y[:, :])


@lg.kernel(grid=1, warps=1)
def with_a_scalar(x: FOUR, alpha: NUMBER) -> None:
    x[0] = alpha.to("f32")


def with_a_scalar_pipelined() -> lg.Kernel:
    """Return a kernel with a parameter that its schedule has not."""
    return lg.kernel(grid=1, warps=1, schedule="pipelined", params={"stage": 3})(ones.__wrapped__)


def with_an_attribute(x: FOUR) -> None:
    x.load(0)  # type: ignore[attr-defined]


def multiplied(x: BYTES) -> None:
    x[:, :] @ x[:, :]


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a tensor type is called": (lambda: lg.Tensor("f32", (4,)), r'hint: .*lg\.Tensor\["f32", '),
    "a scalar type is called": (lambda: lg.Scalar("f32"), r'hint: .*lg\.Scalar\["f32"\]'),
    "the path of an artifact": (lambda: lg.launch("t.lego", X), r"not 't\.lego'\nhint: Artifact"),
    "a kernel for an artifact": (lambda: lg.run(ones), r"needed, not <kernel ones"),
    "a number for a device": (lambda: ones(X, device=0), r"0 is no device\nhint: devices: auto, "),
    "no device": (lambda: ones.run(device=None), r"None is no device\nhint: .*runtime\.select"),
    "a number for a schedule": (
        lambda: lg.kernel(grid=1, warps=1, schedule=3)(lambda x: None),
        r"3 is no schedule\nhint: .*pipelined",
    ),
    "the name of an argument of Triton": (
        lambda: lg.kernel(grid=1, num_warps=4),  # type: ignore[call-arg]
        r"kernel: .*'num_warps'\nhint: did you mean warps\? its arguments: grid, ",
    ),
    "a kernel without a grid": (
        lambda: lg.kernel(warps=4),  # type: ignore[call-arg]
        "kernel: missing a required argument: 'grid'\nhint: its arguments: grid, ",
    ),
    "a misspelt schedule": (
        lambda: lg.kernel(grid=1, warps=1, schedule="pipelinde")(ones.__wrapped__).compile(),
        r"no schedule 'pipelinde'.*\nhint: did you mean pipelined\? give a file, ",
    ),
    "a misspelt parameter of a schedule": (
        lambda: with_a_scalar_pipelined().compile(),
        r"no parameter 'stage'\nhint: did you mean stages\? its parameters, ",
    ),
    "a type of NumPy": (
        lambda: lg.Tensor[np.float32, (4,)],
        r"float32'> is no element type\nhint: write \"f32\"; known: ",
    ),
    "a type by NumPy's name": (lambda: lg.Tensor["uint8", (4,)], 'hint: write "u8"; known: '),
    "an attribute that no tensor has": (
        lambda: lg.kernel(grid=1, warps=1)(with_an_attribute).compile(),
        r"test_wrong_arguments\.py:\d+:\d+: error: a tensor has no attribute 'load'",
    ),
    "tiles multiplied as in NumPy": (
        lambda: lg.kernel(grid=1, warps=1)(multiplied).compile(),
        r"hint: lg\.dot\(a, b\) multiplies tiles",
    ),
    "a number for a layout": (lambda: parse_layout(3), r"needed, not 3\nhint: parse_layout\(\""),
    "shapes that do not broadcast": (
        lambda: OrderBy(Row(4, 8)).apply(np.zeros(3, int), np.zeros((2, 4), int)),
        r"'OrderBy\(Row\(4, 8\)\)' have shapes that do not broadcast: \[3\], \[2, 4\]",
    ),
    "a size that is a text": (
        lambda: ones_of_any_size.run(sizes={"M": "3"}),
        "the size M is a positive integer, not '3'",
    ),
    "a negative size": (
        lambda: ones_of_any_size.compile(sizes={"M": -3}),
        "the size M is a positive integer, not -3",
    ),
    "a size that there is not": (
        lambda: ones_of_any_size.run(sizes={"M": 3, "K": 4}),
        r"there is no size 'K'\nhint: .* M$",
    ),
    "a size of a kernel without": (lambda: ones.run(sizes={"M": 3}), "there is no size 'M'"),
    "functions without end": (
        lambda: without_end(X),
        r"test_wrong_arguments\.py:\d+:20: error: functions .* without end",
    ),
    "a kernel in a kernel": (
        lambda: calling_a_kernel(X),
        r"test_wrong_arguments\.py:\d+:5: error: kernel 'ones' is called in a kernel\n",
    ),
    "unsigned tiles in a dot": (
        lambda: dot_without_sign.compile(),
        r"test_wrong_arguments\.py:\d+:15: error: 'dot' of u8: .* signed integers",
    ),
    "unsigned vectors in a dot": (lambda: vector_dot_without_sign.compile(), "'dot' of u8: "),
    "no number for a scalar": (lambda: with_a_scalar(X, 2.5), "argument 'alpha': 2.5 is no value"),
    "parameters for params": (
        lambda: lg.kernel(grid=1, warps=1, parameters={"depth": 2})(lambda x: None).compile(),
        r"names 'depth', .*\n.*\nhint: its parameters are: x; .* params=",
    ),
    "deep indices": (
        lambda: deep_in_indices.compile(),
        "nested too deeply for the stage 'index'\nhint: .*lg.fold",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    with pytest.raises(LegoError, match=text):
        make()
