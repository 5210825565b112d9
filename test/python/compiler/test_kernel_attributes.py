"""What a launch says of its kernel: clusters, tensor maps among the parameters, dependence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lego_mlir.artifact import Artifact, TensorMapParameter
from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source

MAP = TensorMapParameter(1, (64, 32), (128,), (64, 8), 128, 64)

TWO = """
func.func @two(%b: memref<32xf32>, %a: memref<2048xf16>) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %c0 = arith.constant 0.0 : f32
  %map = "lego.tensor_map"(%a) {layout = #lego.layout<"OrderBy(Row(32, 64))">,
      shape = array<i64: 64, 32>, strides = array<i64: 128>, box = array<i64: 64, 8>,
      swizzle = 128 : i64, l2_promotion = 64 : i64} : (memref<2048xf16>) -> !llvm.ptr
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    memref.store %c0, %b[%tx] : memref<32xf32>
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c4, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    memref.store %c0, %b[%tx] : memref<32xf32>
    nvvm.prefetch tensormap, %map : !llvm.ptr
    REGISTERS
    gpu.terminator
  } {lego.cluster = 2 : i64, lego.pdl}
  return
}
"""


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    text = TWO.replace("REGISTERS", "")
    return Compilation(Source("t.mlir", text)).artifact(assemble=False)


def entry(artifact: Artifact, kernel: str) -> str:
    """The head of a kernel in the PTX."""
    (head,) = re.findall(rf"\.entry {kernel}\((.*?)^\{{", artifact.ptx, re.M | re.S)
    return str(head)


def test_parameters_of_each_launch(artifact: Artifact) -> None:
    plain, mapped = artifact.launches
    assert plain.parameters == (0,)
    assert set(mapped.parameters) == {0, MAP}
    assert (plain.pdl, mapped.pdl) == (False, True)
    assert [a.access for a in artifact.arguments] == ["write", "read"]


def test_a_tensor_map_lies_among_the_parameters(artifact: Artifact) -> None:
    plain, mapped = (entry(artifact, launch.kernel) for launch in artifact.launches)
    assert "[128]" not in plain
    (declared,) = re.findall(r"\.param (.*\[128\])", mapped)
    assert declared.startswith(".align 64 .b8")
    where = artifact.launches[1].parameters.index(MAP)
    assert f"_param_{where}[128]" in declared
    # It is used where it lies: a copy of it would be no tensor map.
    assert ".local" not in artifact.ptx


def test_clusters(artifact: Artifact) -> None:
    plain, clustered = (entry(artifact, launch.kernel) for launch in artifact.launches)
    assert "cluster" not in plain
    assert ".reqnctapercluster 2" in clustered


def test_dependent_launches_have_a_number_of_ctas() -> None:
    text = TWO.replace("REGISTERS", "")
    few = text.replace("lego.pdl", "lego.pdl = 64 : i64")
    made = Compilation(Source("t.mlir", few)).artifact(assemble=False)
    assert [launch.pdl_ctas for launch in made.launches] == [0, 64]
    none = Compilation(Source("t.mlir", text.replace("lego.pdl", "lego.pdl = -1 : i64")))
    with pytest.raises(LegoError, match=r"lego\.pdl is a unit attribute, or the CTAs"):
        none.artifact(assemble=False)


def test_the_file_has_it_all(artifact: Artifact, tmp_path: Path) -> None:
    artifact.save(tmp_path / "k.lego")
    assert Artifact.load(tmp_path / "k.lego") == artifact


def test_kernels_say_how_many_blocks_share_registers() -> None:
    """Without that ptxas ignores what sets registers (C7508), and spares some for more blocks."""
    text = TWO.replace("REGISTERS", "nvvm.setmaxregister increase 232")
    compilation = Compilation(Source("t.mlir", text))
    made = compilation.artifact()
    for launch in made.launches:
        assert ".minnctapersm 1" in entry(made, launch.kernel)
    assert compilation.cubin.warnings == ()
