"""Files of arrays from a stranger: read right, or refused in words."""

from __future__ import annotations

import io
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from lego_mlir.diagnostics import LegoError
from lego_mlir.limits import Limits
from lego_mlir.runtime.npy import load_npy, save_npy


def file_with(header: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    text = header.encode("latin1") + b"\n"
    size = struct.pack("<H" if version == b"\x01\x00" else "<I", len(text))
    return b"\x93NUMPY" + version + size + text + data


def plain(descr: str = "<f4", shape: str = "(2,)", order: str = "False") -> str:
    return f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}}}"


def zipped() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.zeros(3))
    return file.getvalue()


NO_ARRAY = {
    "pickle": pickle.dumps([1, 2]),
    "objects": file_with(plain("|O"), pickle.dumps([1, 2])),
    "objects in a structure": file_with(plain("x").replace("'x'", "[('a', '|O')]"), b"\0" * 16),
    "npz": zipped(),
    "npz cut off": zipped()[:40],
    "no header": b"\x93NUMPY\x01\x00",
    "header that ends nowhere": file_with("{'descr': (" + "(" * 3000),
    "header of 4 GiB": b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
    "version of the future": file_with(plain(), b"\0" * 8, b"\x09\x00"),
    "negative shape": file_with(plain(shape="(-2, -1)"), b"\0" * 8),
    "shape beyond 64 bits": file_with(plain(shape=f"({2**63},)")),
    "product beyond 64 bits": file_with(plain(shape=f"({2**62}, {2**62})")),
    "shape of digits": file_with(plain(shape=f"({'9' * 5000},)")),
    "shape of floats": file_with(plain(shape="(2.0,)"), b"\0" * 8),
    "too many dimensions": file_with(plain(shape=f"({'1, ' * 65})"), b"\0" * 4),
    "elements of no bytes": file_with(plain("|V0", f"({2**50},)")),
    "elements that are arrays": file_with(plain("2|b1", "()"), b"\0\0"),
    "program": file_with("__import__('os').system('touch executed')"),
    "keys": file_with("{'descr': '<f4'}"),
    "old Python's integers": file_with(plain(shape="(2L, '")),
}


@pytest.mark.parametrize("data", NO_ARRAY.values(), ids=NO_ARRAY)
def test_what_is_no_array(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(LegoError, match=r"a\.npy: error: this file is no \.npy array"):
        load_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\0" * 9])
def test_a_header_that_says_another_size(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(file_with(plain(), data))
    with pytest.raises(LegoError, match=rf"8 bytes; the file has {len(data)} bytes of data"):
        load_npy(tmp_path / "a.npy")


def test_a_terabyte_that_is_not_there(tmp_path: Path) -> None:
    with (tmp_path / "a.npy").open("wb") as file:
        file.write(head := file_with(plain(shape=f"({2**38},)")))
        file.truncate(len(head) + 2**40)
    with pytest.raises(LegoError, match="this array has 1099511627776 bytes; the limit "):
        load_npy(tmp_path / "a.npy")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    with pytest.raises(LegoError, match=r"no \.npy array"):
        load_npy(tmp_path / "a.npy")


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i8", "|b1", "<f2"])
def test_arrays_come_back(tmp_path: Path, dtype: str, order: str) -> None:
    array = np.asarray(np.arange(24).reshape(2, 3, 4) % 5, dtype=dtype, order=order)
    for one in (array, array[:, :0], np.asarray(array[0, 0, 0])):
        np.save(tmp_path / "a.npy", one)
        back = load_npy(tmp_path / "a.npy")
        assert back.dtype == one.dtype
        np.testing.assert_array_equal(back, one)


@pytest.mark.parametrize(
    "name", ["../b", "/tmp/b", "a/b", "", ".", "..", "-rf", "\x1b", "a\n", "x" * 129]
)
def test_no_output_leaves_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(LegoError, match="an output cannot be saved as"):
        save_npy(tmp_path / "out", {name: np.zeros(2)})
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["out"]


def test_all_outputs_are_saved_or_none(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(3))
    (tmp_path / "b.npy").mkdir()
    with pytest.raises(LegoError, match=r"b\.npy: error: cannot be written"):
        save_npy(tmp_path, {"a": np.zeros(2), "b": np.zeros(2)})
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), np.ones(3))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "b.npy"]


def test_the_limit_can_be_raised(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(3))
    with Limits(tensor_bytes=23).applied(), pytest.raises(LegoError, match="--limit tensor_bytes="):
        load_npy(tmp_path / "a.npy")
    with Limits(tensor_bytes=24).applied():
        load_npy(tmp_path / "a.npy")
