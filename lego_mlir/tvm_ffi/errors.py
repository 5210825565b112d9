"""Errors as TVM FFI passes them on: Python sees a `LegoError`."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import tvm_ffi

from lego_mlir.diagnostics import LegoError

_KIND = LegoError.__name__

tvm_ffi.register_error(_KIND, LegoError)

_set = tvm_ffi.LIB.TVMFFIErrorSetRaisedFromCStr
_set.argtypes, _set.restype = (ctypes.c_char_p, ctypes.c_char_p), None


def set_error(error: LegoError) -> None:
    """Set the error that the function which is running returns with."""
    text = error.message if error.hint is None else f"{error.message}; {error.hint}"
    _set(_KIND.encode(), text.encode())


def failure(messages: Sequence[str]) -> Any:
    """Return a C function `void(int64 number, int64 value)` that sets an error.

    Args:
        messages: by number; `{}` is the value.
    """

    def fail(number: int, value: int) -> None:
        set_error(LegoError(messages[number].replace("{}", str(value))))

    return ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(fail)
