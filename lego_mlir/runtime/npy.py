"""Arrays in .npy files. A file may come from a stranger: it is checked before it is believed."""

from __future__ import annotations

import io
import os
import stat
import tokenize
import warnings
from collections.abc import Mapping
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from lego_mlir.artifact.names import NAME_RULE, is_name
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_together
from lego_mlir.limits import check_limit
from lego_mlir.runtime.dtypes import Array

_MOST_HEADER = 1 << 14
"""Bytes of a header that are read; NumPy refuses more than 10,000 itself."""

_MALFORMED = (ValueError, TypeError, SyntaxError, tokenize.TokenError, EOFError, RecursionError)
"""What NumPy raises for a header that is none."""


def load_npy(path: str | os.PathLike[str]) -> Array:
    """Read the array of a .npy file; never run code from it.

    Raises:
        LegoError: the file is missing, holds no plain array, is longer or shorter than its header
            says, or exceeds the limit `tensor_bytes`.
    """
    location = Location(os.fspath(path))
    try:
        kind = os.stat(path).st_mode  # noqa: PTH116 - what cannot be waited for is not opened
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise _no_array(location)
        with Path(path).open("rb") as file:
            head = io.BytesIO(file.read(_MOST_HEADER))
            try:
                shape, is_fortran, dtype = _header(head)
            except _MALFORMED:
                raise _no_array(location) from None
            size, start = prod(shape) * dtype.itemsize, head.tell()
            held = os.fstat(file.fileno()).st_size - start
            if size != held:
                raise LegoError(
                    f"the array's header says shape {list(shape)} of {dtype}, {size} bytes; "
                    f"the file has {held} bytes of data",
                    location=location,
                    hint="the file is damaged or cut off: write it with numpy.save(path, array)",
                )
            try:
                check_limit("tensor_bytes", size, "this array has {} bytes")
            except LegoError as e:
                raise e.at(location) from None
            file.seek(start)
            data = np.fromfile(file, dtype, prod(shape))
    except OSError as e:
        raise LegoError(f"the array cannot be read: {e.strerror or e}", location=location) from None
    return data.reshape(shape, order="F" if is_fortran else "C")


def save_npy(directory: str | os.PathLike[str], tensors: Mapping[str, Array]) -> tuple[Path, ...]:
    """Write each tensor to `directory/NAME.npy`, making the directory where it is missing.

    All files are written before the first of them replaces an old one.

    Raises:
        LegoError: a file cannot be written, or a name is none for a file in the directory.
    """
    folder = Path(directory)
    for name in tensors:
        if not is_name(name):
            raise LegoError(f"an output cannot be saved as '{name}.npy'", hint=f"name: {NAME_RULE}")
    paths = {folder / f"{name}.npy": tensor for name, tensor in tensors.items()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        location = Location(str(e.filename or folder))
        raise LegoError(f"the outputs cannot be saved: {e.strerror}", location=location) from None
    write_together({path: partial(_save, tensor) for path, tensor in paths.items()})
    return tuple(paths)


def _save(tensor: Array, file: Any) -> None:
    np.save(file, tensor, allow_pickle=False)


def _header(head: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether the order is Fortran's, and dtype; the stream then is at the data.

    Raises:
        ValueError: it is no header of an array of plain numbers; or another of `_MALFORMED`.
    """
    versions = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    with warnings.catch_warnings(action="ignore"):
        read = versions.get(np.lib.format.read_magic(head))
        if read is None:
            raise ValueError("no version that plain arrays have")
        shape, is_fortran, dtype = read(head)
    if dtype.hasobject or dtype.subdtype or not dtype.itemsize:
        raise ValueError("no plain elements")
    if len(shape) > _MOST_RANK or not all(0 <= n < _MOST_ELEMENTS for n in (*shape, prod(shape))):
        raise ValueError("no shape of an array")
    return shape, is_fortran, dtype


_MOST_RANK = 64
"""Dimensions of a NumPy array."""

_MOST_ELEMENTS = 1 << 63


def _no_array(location: Location) -> LegoError:
    return LegoError(
        "this file is no .npy array",
        location=location,
        hint="write one with numpy.save(path, array)",
    )
