"""Binding tensors to arguments, and reading them back."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dlpack_only import DlpackOnly

from lego_mlir.artifact import Argument, Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import launch
from lego_mlir.runtime.arrays import bind
from lego_mlir.runtime.npy import load_npy, save_npy

A = np.arange(24, dtype=np.float32).reshape(4, 6)


def with_arguments(artifact: Artifact, *arguments: Argument) -> Artifact:
    return replace(artifact, arguments=arguments)


def test_the_callers_arrays_are_copied(copy: Artifact) -> None:
    mine = A.copy()
    a, _ = bind(copy, [mine])
    np.testing.assert_array_equal(a.value, A)
    assert not np.shares_memory(np.asarray(a.value), mine)


def test_arrays_are_bound_by_name(copy: Artifact) -> None:
    a, b = bind(copy, {"b": A})
    np.testing.assert_array_equal(b.value, A)
    assert not np.isnan(a.value).any()


def test_arguments_without_values_are_filled(copy: Artifact) -> None:
    a, b = bind(copy, seed=3)
    np.testing.assert_array_equal(a.value, bind(copy, seed=3)[0].value)
    assert (a.value != bind(copy, seed=4)[0].value).all()
    assert np.isnan(b.value).all()


def test_random_data_does_not_depend_on_other_arguments(copy: Artifact) -> None:
    read = [replace(a, access="read") for a in copy.arguments]
    two = with_arguments(copy, *read)
    np.testing.assert_array_equal(bind(two, [A])[1].value, bind(two)[1].value)
    assert (bind(two)[0].value != bind(two)[1].value).any()


def test_readwrite_is_random_and_none_is_poison(copy: Artifact) -> None:
    both = with_arguments(
        copy,
        Argument("a", "f32", (4,), access="readwrite"),
        Argument("b", "f32", (4,), access="none"),
    )
    a, b = bind(both)
    assert not np.isnan(a.value).any()
    assert np.isnan(b.value).all()


def test_layout_both_ways(transpose: Artifact) -> None:
    tensor = A.T
    _, b = bind(transpose, {"b": tensor})
    assert b.value.shape == (24,)
    np.testing.assert_array_equal(b.value, tensor.reshape(-1, order="F"))
    np.testing.assert_array_equal(b.tensor(), tensor)


def test_layout_is_applied_to_random_data_and_poison(transpose: Artifact) -> None:
    a, b = bind(transpose)
    assert a.tensor().shape == (4, 6)
    assert b.tensor().shape == (6, 4)
    assert np.isnan(b.tensor()).all()


def test_the_tensor_is_a_copy(copy: Artifact) -> None:
    a, _ = bind(copy, [A])
    a.tensor()[:] = 0
    np.testing.assert_array_equal(a.value, A)


def test_padding_of_a_buffer_is_poison(copy: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_layout(monkeypatch, np.array([[0, 2], [4, 6]]))
    padded = with_arguments(copy, Argument("a", "f32", (8,), "padded", "read"))
    (a,) = bind(padded, [np.ones((2, 2), np.float32)])
    np.testing.assert_array_equal(np.isnan(a.value), [False, True] * 4)


def test_layout_beyond_the_buffer(copy: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_layout(monkeypatch, np.array([0, 24]))
    with pytest.raises(LegoError, match="'a' reaches offsets 0 to 24, its buffer has 24 elements"):
        bind(with_arguments(copy, Argument("a", "f32", (24,), "too long", "read")))


def fake_layout(monkeypatch: pytest.MonkeyPatch, found: Any) -> None:
    import lego_mlir.algebra

    class Layout:
        symbols = ()
        tensor_shape = found.shape

        def offsets(self) -> Any:
            return found

    monkeypatch.setattr(lego_mlir.algebra, "parse_layout", lambda text, sizes, functions: Layout())


def test_wrong_layout_text(copy: Artifact) -> None:
    with pytest.raises(LegoError):
        bind(with_arguments(copy, Argument("a", "f32", (24,), "OrderBy(Row(4, 6)", "read")))


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (A.astype(np.float64), r"'a' holds f32 \(NumPy float32\), the array holds float64"),
        (A.T, r"'a' has shape \[4, 6\], the array has \[6, 4\]"),
        (A[0], r"'a' has shape \[4, 6\], the array has \[6\]"),
        ([1, 2], "'a' needs an array, not list"),
    ],
)
def test_what_does_not_fit(copy: Artifact, array: Any, told: str) -> None:
    with pytest.raises(LegoError, match=told):
        bind(copy, [array])


def test_strided_and_foreign_order_arrays_fit(copy: Artifact) -> None:
    wide = np.zeros((4, 12), np.float32)
    wide[:, ::2] = A
    np.testing.assert_array_equal(bind(copy, [wide[:, ::2]])[0].value, A)
    np.testing.assert_array_equal(bind(copy, [np.asfortranarray(A)])[0].value, A)
    swapped = bind(copy, [A.astype(">f4")])[0].value
    assert swapped.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(swapped, A)


def test_signless_integers_take_unsigned_bits(copy: Artifact) -> None:
    one = with_arguments(copy, Argument("a", "i32", (2,), access="read"))
    (a,) = bind(one, [np.array([1, 0xFFFFFFFF], np.uint32)])
    np.testing.assert_array_equal(a.value, np.array([1, -1], np.int32))


def test_other_libraries_arrays_come_by_dlpack(copy: Artifact) -> None:
    np.testing.assert_array_equal(bind(copy, [DlpackOnly(A.copy())])[0].value, A)
    with pytest.raises(LegoError, match=r"'a' holds f32 .* the array holds float64"):
        bind(copy, [DlpackOnly(A.astype(np.float64))])
    with pytest.raises(LegoError, match=r"'a' has shape \[4, 6\]"):
        bind(copy, [DlpackOnly(A.T.copy())])


def test_too_many_arrays_are_an_error(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="'copy' takes 2 arguments, 3 are given") as caught:
        bind(copy, [A, A, A])
    assert caught.value.hint == "the arguments of 'copy' are a, b"


def test_an_unknown_name_is_an_error(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="there is no argument 'c'"):
        bind(copy, {"c": A})


def test_scalars(copy: Artifact) -> None:
    scaled = with_arguments(copy, Argument("s", "f32", None), Argument("n", "index", None))
    s, n = bind(scaled, [2, np.array([7])])
    assert (s.value, n.value) == (np.float32(2), np.int64(7))
    with pytest.raises(LegoError, match="'n' is a scalar of type index and needs a value"):
        bind(scaled, [2])
    with pytest.raises(LegoError, match=r"argument 'n': 1\.5 is no value of type index"):
        bind(scaled, [2, 1.5])


def test_files(copy: Artifact, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", A)
    np.testing.assert_array_equal(bind(copy, [tmp_path / "a.npy"])[0].value, A)
    np.testing.assert_array_equal(bind(copy, [str(tmp_path / "a.npy")])[0].value, A)


def test_a_file_that_does_not_fit_is_named(copy: Artifact, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", A.T)
    with pytest.raises(LegoError, match=r"a\.npy: error: argument 'a' has shape \[4, 6\]"):
        bind(copy, [tmp_path / "a.npy"])


def test_a_missing_npy_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(LegoError, match=r"a\.npy: error: the array cannot be read: No such file"):
        load_npy(tmp_path / "a.npy")


def test_files_that_are_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    for content in (b"", b"hello", b"\x93NUMPY\x01\x00"):
        path.write_bytes(content)
        with pytest.raises(LegoError, match=r"no \.npy array"):
            load_npy(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(LegoError, match=r"no \.npy array"):
        load_npy(path)
    with path.open("wb") as file:
        np.savez(file, a=A)
    with pytest.raises(LegoError, match=r"no \.npy array"):
        load_npy(path)


def test_saved_arrays_are_loaded_again(tmp_path: Path) -> None:
    (path,) = save_npy(tmp_path / "new" / "folder", {"b": A})
    assert path.name == "b.npy"
    np.testing.assert_array_equal(load_npy(path), A)
    with pytest.raises(LegoError, match="the outputs cannot be saved"):
        save_npy(path, {"b": A})


def damaged_headers() -> list[bytes]:
    """A .npy file with each byte of its header replaced, by a few that mean something there."""
    file = io.BytesIO()
    np.save(file, A)
    whole = file.getvalue()
    return [
        whole[:at] + bytes([byte]) + whole[at + 1 :]
        for at in range(128)
        for byte in (0, ord("("), ord("9"))
    ]


def test_damaged_headers_are_no_arrays(tmp_path: Path) -> None:
    """NumPy's own reader raises SyntaxError, TokenError and others for some of these."""
    path, refused = tmp_path / "a.npy", []
    for data in damaged_headers():
        path.write_bytes(data)
        try:
            load_npy(path)
        except LegoError as e:
            refused.append(e.message)
    assert len(refused) > 200
    assert {re.sub(r"says .*", "", message) for message in refused} == {
        "this file is no .npy array",
        "the array's header ",
    }


def test_a_field_of_a_record_is_not_dense(copy: Artifact) -> None:
    """Between two of its elements lies a byte of another field: their stride is no whole number."""
    vectors = replace(copy, arguments=tuple(replace(a, shape=(24,)) for a in copy.arguments))
    field = np.zeros(24, [("flag", "u1"), ("value", np.float32)])["value"]
    plain = np.zeros(24, np.float32)
    with pytest.raises(LegoError, match="'a' is not dense and row-major"):
        launch(vectors, field, plain, device="sim")
    with pytest.raises(LegoError, match="'b' is not dense and row-major"):
        launch(vectors, plain, field, device="sim")
