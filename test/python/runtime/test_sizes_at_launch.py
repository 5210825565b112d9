"""Launches whose sizes the arrays decide: one artifact, arrays of any shape and strides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Constant,
    Fact,
    KernelLaunch,
    TensorMapParameter,
    Workspace,
    WorkspaceIndex,
)
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import launch, run
from lego_mlir.runtime.launch_sizes.extents import Extents, Known, row_major
from lego_mlir.runtime.launch_sizes.fitting import fitted_extents
from lego_mlir.runtime.launch_sizes.sized import sized


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def known(*shapes: tuple[int, ...]) -> Known:
    return Known.of([0] * len(shapes), [Extents(shape, row_major(shape)) for shape in shapes])


# --- launches ---


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(m=st.integers(0, 5), n=st.integers(0, 5), gap=st.integers(0, 3), seed=st.integers(0, 9))
def test_arrays_of_all_sizes_and_row_strides(
    rows: Artifact, m: int, n: int, gap: int, seed: int
) -> None:
    """Sizes of 0 launch nothing; what lies between the rows stays as it was."""
    memory = np.random.default_rng(seed).standard_normal((2, m, 4 * n + gap)).astype(np.float32)
    expected = memory.copy()
    expected[1, :, : 4 * n] = 2 * memory[0, :, : 4 * n]
    launch(rows, memory[0, :, : 4 * n], memory[1, :, : 4 * n], device="sim")
    np.testing.assert_array_equal(memory, expected)


def test_two_halves_of_the_columns_of_one_array(rows: Artifact) -> None:
    memory = np.random.default_rng(0).standard_normal((6, 16)).astype(np.float32)
    left = memory[:, :8].copy()
    launch(rows, memory[:, :8], memory[:, 8:], device="sim")
    np.testing.assert_array_equal(memory[:, 8:], 2 * left)
    with pytest.raises(LegoError, match="'x' and 'y' of 'rows' overlap"):
        launch(rows, memory[:, :8], memory[:, 4:12], device="sim")


def test_pytorch_tensors_of_other_strides(rows: Artifact) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.randn(5, 12)[:, :8], torch.zeros(5, 8)
    launch(rows, x, y, device="sim")
    assert torch.equal(y, 2 * x)


def test_a_run_follows_sizes_from_one_tensor_to_another(rows: Artifact) -> None:
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    result = run(rows, [x], device="sim")
    np.testing.assert_array_equal(result.outputs["y"], 2 * x)
    result = run(rows, {"y": zeros(2, 4)}, device="sim")
    assert result.inputs["x"].shape == (2, 4)
    result = run(rows, shapes={"x": (4, 4)}, device="sim", seed=3)
    np.testing.assert_array_equal(result.outputs["y"], 2 * result.inputs["x"])


def test_a_run_with_gaps_between_rows(rows: Artifact) -> None:
    x, y = rows.arguments
    apart = replace(rows, arguments=(x, replace(y, strides=(100, 1))))
    result = run(apart, shapes={"x": (4, 4)}, device="sim")
    np.testing.assert_array_equal(result.outputs["y"], 2 * result.inputs["x"])


# --- what does not fit: one paragraph, with the argument's name ---


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        (zeros(3, 8), zeros(4, 8), "'y': its size along dimension 0 is 4, not M, the size of 'x'"),
        (zeros(3, 6), zeros(3, 6), "'x': its size along dimension 1 is 6, no multiple of 4, which"),
        (zeros(3, 8, 1), zeros(3, 8), r"'x' has shape \[\?, \?\], the array has \[3, 8, 1\]"),
        (
            zeros(8, 3).T,
            zeros(3, 8),
            r"'x' has strides \[\?, 1\], in elements, the array has \[1, 3",
        ),
        (zeros(3, 8)[::-1], zeros(3, 8), "'x' has the negative stride -8 along dimension 0"),
        (zeros(3, 8), np.broadcast_to(zeros(8), (3, 8)), "'y' share memory, and the kernels write"),
        (zeros(3, 8).astype("f8"), zeros(3, 8), "'x' holds f32"),
    ],
)
def test_what_no_launch_takes(rows: Artifact, x: Any, y: Any, says: str) -> None:
    with pytest.raises(LegoError, match=says) as caught:
        launch(rows, x, y, device="sim")
    assert "\n" not in caught.value.message


def test_sizes_that_follow_from_nothing(rows: Artifact) -> None:
    with pytest.raises(
        LegoError, match=r"'x' is not given, and .* its size along dimension 0"
    ) as e:
        run(rows, device="sim")
    assert (e.value.hint or "").startswith("pass an array for 'x', or its shape")
    with pytest.raises(LegoError, match="there is no argument 'z'"):
        run(rows, shapes={"z": (4, 4)}, device="sim")
    with pytest.raises(LegoError, match=r"'x' has shape \[\?, \?\], the array has \[4\]"):
        run(rows, shapes={"x": (4,)}, device="sim")


def test_broadcast_rows_are_read(rows: Artifact) -> None:
    row, y = np.arange(8, dtype=np.float32), zeros(3, 8)
    launch(rows, np.broadcast_to(row, (3, 8)), y, device="sim")
    np.testing.assert_array_equal(y, np.broadcast_to(2 * row, (3, 8)))


# --- arrays and arguments ---

COLUMNS = Argument(
    "a", "f32", (None, 64), "OrderBy(Col(M, 64))", symbols=(("M", "a2.d0"),), access="read"
)


def test_the_logical_tensor_tells_the_symbols_of_its_layout() -> None:
    seen = Extents((100, 64), (1, 100))
    assert fitted_extents(seen, COLUMNS, 2) == Extents((100, 64), (64, 1))
    with pytest.raises(
        LegoError, match=r"'a' is not dense and row-major: its strides are \[1, 101"
    ):
        fitted_extents(Extents((100, 64), (1, 101)), COLUMNS, 2)
    with pytest.raises(LegoError, match=r"'a' has shape \[\?, 64\], the array has \[100, 65\]"):
        fitted_extents(Extents((100, 65), (1, 100)), COLUMNS, 2)


def test_a_run_lays_the_logical_tensor_out(rows: Artifact) -> None:
    """The kernel sees rows of the buffer: it doubles what it finds, wherever the layout puts it."""
    x = Argument(
        "x", "f32", (None, None), "OrderBy(Col(M, N))", "read",
        symbols=(("M", "a0.d0"), ("N", "a0.d1")),
    )  # fmt: skip
    y = replace(x, name="y", access="write", symbols=(("M", "a1.d0"), ("N", "a1.d1")))
    result = run(replace(rows, arguments=(x, y)), shapes={"x": (3, 8)}, device="sim")
    np.testing.assert_array_equal(result.outputs["y"], 2 * result.inputs["x"])


# --- the numbers of a launch ---

TILED = Artifact(
    name="tiled",
    target="sm_90a",
    arguments=(
        Argument("x", "f16", (None, 64), access="read", alignment=16),
        Argument("n", "i32", None),
    ),
    launches=(
        KernelLaunch(
            "k",
            ("a0.d0 127 + 128 //", "a1", 1),
            (32, 1, 1),
            (
                TensorMapParameter(0, (64, "a0.d0"), ("a0.s0 2 *",), (64, 64), 128),
                Computed("i32", "a0.d0 a1 *"),
                WorkspaceIndex(0),
            ),
        ),
    ),
    ptx="",
    facts=(Fact("a0.d0 a1 % 0 ==", "a0.d0", "no multiple of n"),),
    workspaces=(Workspace("w", "f32", ("a0.d0", 2)),),
)


def at(m: int, n: int) -> Artifact:
    return sized(TILED, Known([0, n], [(m, 64), ()], [(64, 1), ()]))


def test_every_expression_is_a_number_of_the_launch() -> None:
    (found,) = at(300, 2).launches
    assert found.grid == (3, 2, 1)
    tiles, product, space = found.parameters
    assert isinstance(tiles, TensorMapParameter)
    assert (tiles.shape, tiles.strides) == ((64, 300), (128,))
    assert product == Constant("i32", 600)
    assert space == WorkspaceIndex(0)
    assert at(300, 2).workspaces[0].shape == (300, 2)
    assert at(300, 2).arguments[0].shape == (300, 64)


def test_artifacts_of_fixed_sizes_stay_as_they_are(copy: Artifact) -> None:
    assert sized(copy, known((4, 6), (4, 6))) is copy


@pytest.mark.parametrize(
    ("m", "n", "says"),
    [
        (128, 65536, "kernel 'k' would have a grid of 1 × 65536 × 1 CTAs, a GPU takes at most"),
        (128, -1, "kernel 'k' would have a grid of 1 × -1 × 1 CTAs"),
        (1 << 33, 1, "the tensor map of argument 'x' would be a tensor map with a shape of"),
    ],
)
def test_numbers_that_no_launch_has(m: int, n: int, says: str) -> None:
    with pytest.raises(LegoError, match=says) as caught:
        at(m, n)
    assert f"; 'x' has the shape [{m}, 64], 'n' has the value {n}" in caught.value.message


def test_a_launch_without_a_cta_needs_no_tensor_map() -> None:
    assert at(0, 1).launches[0].grid == (0, 1, 1)


def test_a_division_by_a_size_of_0() -> None:
    with pytest.raises(LegoError, match="a size of 'tiled' is divided by 0; 'x' has the shape"):
        sized(
            replace(TILED, workspaces=(Workspace("w", "f32", ("64 a0.d0 //",)),)),
            Known([0, 1], [(0, 64), ()], [(64, 1), ()]),
        )
