"""Whatever the arguments of the kernels in the library are: an error says what is wrong."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from lego_mlir import kernels
from lego_mlir.diagnostics import LegoError

_ROWS: dict[str, Any] = {"rows": 4, "columns": 128}

_GOOD: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        (
            "softmax", "log_softmax", "softmax_backward", "log_softmax_backward", "rmsnorm",
            "layernorm", "rmsnorm_backward", "layernorm_backward", "cross_entropy",
            "cross_entropy_backward", "swiglu", "geglu", "argmax", "cumsum", "rmsnorm_quantized",
        ),
        _ROWS,
    ),
    "soft_cap": {**_ROWS, "cap": 3.0},
    "dropout": {**_ROWS, "p": 0.1},
    "topk": {**_ROWS, "k": 3},
    "rope": {"tokens": 4, "heads": 2, "size": 64, "positions": 16},
    "transpose": {"m": 33, "n": 65},
    "permute": {"shape": (3, 5, 7), "axes": (2, 0, 1)},
    "pad": {"shape": (3, 4), "before": (1, 1), "after": (1, 1)},
    "crop": {"shape": (5, 6), "begin": (1, 1), "sizes": (2, 3)},
    "flip": {"shape": (3, 5), "axes": (1,)},
    "roll": {"shape": (5, 6), "shifts": (1, 1)},
    "gather_rows": {"table": 9, "rows": 3, "columns": 8},
    "concatenate": {"shapes": ((3, 4), (3, 5)), "axis": 1},
    "split": {"shape": (3, 9), "sizes": (4, 5), "axis": 1},
    "cast": {"shape": (4, 5), "source": "f32", "target": "f16"},
    "matmul": {"m": 64, "n": 64, "k": 64},
    "attention": {"batch": 1, "seq_q": 64, "seq_kv": 64, "heads": 2, "head_dim": 64},
    "ragged_matmul": {"m": 64, "n": 64, "k": 64, "groups": 2},
    "ragged_k_matmul": {"m": 64, "n": 64, "k": 64, "groups": 2},
    "grouped_matmul": {"shapes": ((64, 64, 64),)},
}  # fmt: skip
"""Arguments by the name of the kernel."""

_ODD = (
    0, -1, 1.5, "x", None, True, (), [], {}, (0,), (-1,), 1 << 40, 10**30, "f64", "u8", object(),
    float("nan"), (None,), (1.5,), ("a",), tuple(range(1, 10)), b"x", np.int64(3), np.float32,
)  # fmt: skip
"""What arguments are replaced by; some of them are right where it is."""


@pytest.mark.filterwarnings("ignore:.*schedule is:UserWarning")
@pytest.mark.parametrize("name", _GOOD)
def test_odd_arguments_are_errors_or_right(name: str) -> None:
    function, good = getattr(kernels, name), _GOOD[name]
    assert function(**good).explain()
    for argument in inspect.signature(function).parameters:
        for value in _ODD:
            with suppress(LegoError):
                function(**{**good, argument: value}).explain()


@pytest.mark.parametrize("name", _GOOD)
def test_code_with_checks_is_assembled(name: str) -> None:
    """Tests in the simulator run such code, and see no assembler."""
    assert getattr(kernels, name)(**_GOOD[name]).compile("sm_90a", check=True).cubin


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("softmax", {"dtype": "f64"}, "softmax: dtype is f32, f16, .* not 'f64'"),
        ("softmax", {"out": "float32"}, "softmax: out: 'float32' is no element type\nhint: write"),
        ("rmsnorm", {"weight": "i8"}, "rmsnorm: weight is f32, .* not 'i8'"),
        ("layernorm_backward", {"residual": "f64"}, "residual is f32, .* not 'f64'"),
        ("cumsum", {"dtype": "i16"}, "cumsum: out is f32, .* not 'i16'"),
        ("argmax", {"dtype": "i32"}, "argmax: dtype is .* or u16, not 'i32'"),
        ("swiglu", {"config": 3}, "swiglu: config is a RowsConfig or None, not 3"),
        ("softmax", {"strided": "yes"}, "softmax: strided is True or False, not 'yes'"),
        ("permute", {"shape": (1 << 40, 1 << 20), "axes": (1, 0)}, "bytes, too many"),
        ("matmul", {"promote": "x"}, "promote = 'x'"),
    ],
)
def test_what_an_error_says(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LegoError, match=message):
        getattr(kernels, name)(**{**_GOOD[name], **arguments})
