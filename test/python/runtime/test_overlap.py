"""Arrays that share memory: an error where a kernel writes one, unless it works in place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.artifact import Argument, Artifact
from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul, transpose
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import launch
from lego_mlir.runtime.launch_sizes.extents import fixed_extents
from lego_mlir.runtime.overlap import check_overlap

LINE = lg.Tensor["f32", lg.OrderBy(lg.Row(24))]
TWO = {"a": LINE, "b": LINE}


def test_an_output_that_is_the_input() -> None:
    x = np.zeros((64, 64), np.float32)
    with pytest.raises(LegoError, match=r"arguments 'a' and 'b' of .* overlap .* writes 'b'") as e:
        transpose(64, 64)(x, x, device="sim")
    assert "in_place=True" in str(e.value.hint)


def test_an_output_that_is_one_of_two_inputs() -> None:
    a, b = np.zeros((2, 64, 64), np.float16)
    with pytest.raises(LegoError, match=r"'a' and 'c' .* overlap"):
        matmul(64, 64, 64, target="sm_80")(a, b, a, device="sim")


def test_inputs_may_be_the_same(copy: Artifact) -> None:
    both = replace(copy, arguments=(*copy.arguments, Argument("c", "f32", (4, 6), access="read")))
    a, b = np.ones((2, 4, 6), np.float32)
    launch(both, a, b, a, device="sim")
    assert b.all()


@pytest.mark.parametrize("start", [0, 1, 23])
def test_partially_overlapping_buffers(copy: Artifact, start: int) -> None:
    memory = np.zeros(48, np.float32)
    a, b = memory[:24].reshape(4, 6), memory[start : start + 24].reshape(4, 6)
    with pytest.raises(LegoError, match="overlap"):
        launch(copy, a, b, device="sim")
    with pytest.raises(LegoError, match="overlap"):
        launch(copy, b, a, device="sim")


def test_neighbours_do_not_overlap(copy: Artifact) -> None:
    a, b = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    launch(copy, a, b, device="sim")
    assert (a == b).all()
    launch(copy, b, a, device="sim")


def test_two_outputs() -> None:
    @lg.kernel(grid=1, block=24, parameters=TWO)
    def twice(a: Any, b: Any) -> None:
        a[lg.thread_id()] = 1.0
        b[lg.thread_id()] = 2.0

    x = np.zeros(24, np.float32)
    with pytest.raises(LegoError, match="overlap in memory, and the kernel writes 'a' and 'b'"):
        twice(x, x, device="sim")


def test_a_kernel_that_works_in_place() -> None:
    @lg.kernel(grid=1, block=24, parameters=TWO, in_place=True)
    def doubled(a: Any, b: Any) -> None:
        b[lg.thread_id()] = a[lg.thread_id()] * 2.0

    x = np.ones(24, np.float32)
    doubled(x, x, device="sim")
    assert (x == 2).all()


def test_the_artifact_keeps_in_place(copy: Artifact, tmp_path: Any) -> None:
    path = tmp_path / "t.lego"
    for attribute in (False, True):
        replace(copy, in_place=attribute).save(path)
        assert Artifact.load(path).in_place is attribute


@pytest.mark.parametrize("where", ["", "func", "module"])
def test_a_module_says_that_it_works_in_place(where: str) -> None:
    attribute = "attributes {lego.in_place}"
    text = f"""
    module {attribute if where == "module" else ""} {{
      func.func @main(%a: memref<8xf32>) {attribute if where == "func" else ""} {{
        %c1 = arith.constant 1 : index
        gpu.launch blocks(%x, %y, %z) in (%gx = %c1, %gy = %c1, %gz = %c1)
                   threads(%i, %j, %k) in (%bx = %c1, %by = %c1, %bz = %c1) {{
          %v = memref.load %a[%i] : memref<8xf32>
          memref.store %v, %a[%i] : memref<8xf32>
          gpu.terminator
        }}
        return
      }}
    }}
    """
    artifact = Compilation(Source("m.mlir", text)).artifact(assemble=False)
    assert artifact.in_place is bool(where)


def test_addresses_on_a_device(copy: Artifact) -> None:
    """What a bound launch on a GPU is checked by: addresses alone."""
    size = 4 * 6 * 4
    extents = [fixed_extents(argument) for argument in copy.arguments]
    check_overlap(copy, [4096, 4096 + size], extents)
    check_overlap(copy, [4096, None], extents)
    with pytest.raises(LegoError, match="'a' and 'b'"):
        check_overlap(copy, [4096, 4096 + size - 1], extents)
