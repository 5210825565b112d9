"""The public face: `run` on tensors, `launch` on buffers, both in the simulator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dlpack_only import DlpackOnly

from lego_mlir.artifact import Argument, Artifact, Constant
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime import launch, run

A = np.arange(24, dtype=np.float32).reshape(4, 6)


def test_run_on_random_data_compares_with_the_reference(copy: Artifact) -> None:
    result = run(copy, device="sim")
    assert result.device == "sim"
    assert result.launches == copy.launches
    assert result.comparison is not None
    assert result.comparison.equal
    assert str(result.comparison) == "b: all 24 elements equal"
    assert list(result.inputs) == ["a"]
    assert list(result.outputs) == ["b"]
    np.testing.assert_array_equal(result.outputs["b"], result.inputs["a"])


def test_costs_are_counted_with_the_option(copy: Artifact) -> None:
    """The copy of 24 floats by three blocks: each a request of 8 lanes, one sector long."""
    assert run(copy, device="sim").costs == ()
    for device in ("sim", "auto"):
        result = run(copy, device=device, costs=True)
        assert result.device.startswith("sim")
        (costs,) = result.costs
        assert costs.kernel == copy.launches[0].kernel
        assert [(m.requests, m.lanes, m.sectors, m.excess_sectors) for m in costs.memory] == [
            (3, 24, 3, 0),
            (3, 24, 3, 0),
        ]
    with pytest.raises(LegoError, match="does not count costs"):
        run(copy, device="cuda", costs=True)


def test_the_seed_determines_the_data(copy: Artifact) -> None:
    one, two = (run(copy, device="sim", seed=seed).outputs["b"] for seed in (0, 1))
    assert (one != two).any()


def test_run_on_tensors_leaves_them_alone(copy: Artifact) -> None:
    a, b = A.copy(), np.zeros_like(A)
    result = run(copy, [a, b], device="sim")
    np.testing.assert_array_equal(result.outputs["b"], A)
    np.testing.assert_array_equal(a, A)
    assert not b.any()


def test_layouts_relate_tensors_and_buffers(transpose: Artifact) -> None:
    """A copy of the memory is a transpose of the tensor, by the output's layout alone."""
    result = run(transpose, [A], device="sim")
    assert result.comparison is not None
    assert result.comparison.equal
    np.testing.assert_array_equal(result.outputs["b"], A.T)


def test_a_wrong_kernel_is_reported(copy: Artifact) -> None:
    half = replace(copy.launches[0], parameters=(0, 1, Constant("i32", 14)))
    result = run(replace(copy, launches=(half,)), device="sim")
    comparison = result.comparison
    assert comparison is not None
    assert (comparison.equal, comparison.count, comparison.first) == (False, 10, (2, 2))
    assert comparison.actual is not None
    assert np.isnan(comparison.actual), "what is left unwritten is poison"


def test_no_reference_no_comparison(copy: Artifact) -> None:
    assert run(replace(copy, reference=None), device="sim").comparison is None


def test_unknown_reference(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="unknown reference 'sort'"):
        run(replace(copy, reference="sort"), device="sim")


def test_inputs_are_as_before_the_run(copy: Artifact) -> None:
    a, b = copy.arguments
    swapped = replace(copy, arguments=(a, replace(b, access="readwrite")), reference=None)
    result = run(swapped, [A, -A], device="sim")
    np.testing.assert_array_equal(result.inputs["b"], -A)
    np.testing.assert_array_equal(result.outputs["b"], A)


def test_launches_run_in_order(copy: Artifact) -> None:
    c = Argument("c", "f32", (4, 6), access="write")
    first = copy.launches[0]
    second = replace(first, parameters=(1, 2, Constant("i32", 24)))
    chained = replace(
        copy, arguments=(*copy.arguments, c), launches=(first, second), reference=None
    )
    np.testing.assert_array_equal(run(chained, [A], device="sim").outputs["c"], A)


def test_scalar_argument(copy: Artifact) -> None:
    n = Argument("n", "index", None)
    counted = replace(
        copy,
        arguments=(*copy.arguments, n),
        launches=(replace(copy.launches[0], parameters=(0, 1, 2)),),
    )
    comparison = run(counted, {"n": 23}, device="sim").comparison
    assert comparison is not None
    assert comparison.count == 1


def test_a_result_is_saved_by_name(copy: Artifact, tmp_path: Path) -> None:
    (path,) = run(copy, [A], device="sim").save(tmp_path)
    np.testing.assert_array_equal(np.load(path), A)


def test_launch_in_place(copy: Artifact) -> None:
    b = np.zeros_like(A)
    launch(copy, A, b, device="sim")
    np.testing.assert_array_equal(b, A)


def test_launch_writes_through_dlpack(copy: Artifact) -> None:
    b = np.zeros_like(A)
    launch(copy, DlpackOnly(A.copy()), DlpackOnly(b), device="sim")
    np.testing.assert_array_equal(b, A)


def read_only() -> Any:
    array = np.zeros_like(A)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    ("b", "message"),
    [
        (np.zeros((4, 12), np.float32)[:, ::2], "'b' is not dense and row-major"),
        (np.zeros((6, 4), np.float32), r"'b' has shape \[4, 6\], the array has \[6, 4\]"),
        (np.zeros((4, 6)), r"'b' holds f32 \(NumPy float32\), the array holds float64"),
        (np.zeros((4, 6), ">f4"), "foreign byte order"),
        (read_only(), "the kernels write argument 'b', the array is read-only"),
        (None, "'b' needs an array, not NoneType"),
        ([[0.0] * 6] * 4, "'b' needs an array, not list"),
    ],
)
def test_launch_refuses(copy: Artifact, b: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        launch(copy, A, b, device="sim")


def test_launch_takes_a_read_only_input(copy: Artifact) -> None:
    a, b = read_only(), np.ones_like(A)
    launch(copy, a, b, device="sim")
    assert not b.any()


def test_launch_counts(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="takes 2 arguments, 1 are given") as caught:
        launch(copy, A, device="sim")
    assert caught.value.hint == "they are a, b"


class OnGpu:
    """An array that says it lives on a GPU."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


def test_gpu_arrays_do_not_go_to_the_simulator(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="'a' lives on a GPU"):
        launch(copy, OnGpu(), A.copy(), device="sim")
    with pytest.raises(LegoError, match="'a' lives on a GPU"):
        run(copy, [OnGpu()], device="sim")


def test_gpu_arrays_choose_the_gpu(copy: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[tuple[str, bool]] = []

    class Recorder:
        name, reason = "cuda", ""

        def describe(self) -> str:
            return self.name

        def run(self, artifact: Artifact, values: Sequence[Any], stream: Any = None) -> None:
            pass

    def fake(name: str, *, on_gpu: bool) -> Recorder:
        chosen.append((name, on_gpu))
        return Recorder()

    monkeypatch.setattr("lego_mlir.runtime.binding.chosen", fake)
    launch(copy, OnGpu(), OnGpu())
    launch(copy, A, A.copy())
    assert chosen == [("auto", True), ("auto", False)]


def test_the_simulator_has_no_streams(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="no streams"):
        launch(copy, A, A.copy(), device="sim", stream=1)


def test_parameters_are_checked_before_a_launch(copy: Artifact) -> None:
    short = replace(copy.launches[0], parameters=(0, 1))
    with pytest.raises(LegoError, match="takes 3 parameters, the artifact passes 2"):
        run(replace(copy, launches=(short,)), device="sim")


def test_no_mlir_no_sympy_no_cuda_is_imported() -> None:
    script = (
        "import sys, lego_mlir.runtime\n"
        "heavy = {'numba_cuda_mlir', 'mlir', 'sympy', 'z3', 'cuda', 'lego_mlir.sim'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
