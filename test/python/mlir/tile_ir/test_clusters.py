"""What kernels of clusters may not do, and where the errors are."""

from __future__ import annotations

import pytest

from lego_mlir.artifact.ptx import cluster_sizes
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

LAYOUT = '{layout = #lego.layout<"OrderBy(Row(256))">}'
SLICE = '{layout = #lego.layout<"OrderBy(Row(256))">, slice = array<i64: 0>}'


def compiled(body: str, *, grid: int = 4, cluster: int = 2, target: str = "sm_90a") -> str:
    """Compile a kernel that adds 1 to a row, and has further operations."""
    text = f"""
func.func @main(%x: memref<256xi32>) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %grid = arith.constant {grid} : index
  %threads = arith.constant 32 : index
  gpu.launch blocks(%b, %by, %bz) in (%gx = %grid, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {{
    %v = "lego.load"(%x, %c0) {SLICE} : (memref<256xi32>, index) -> tensor<256xi32>
    {body}
    gpu.terminator
  }} {{lego.cluster = {cluster} : i64}}
  return
}}
"""
    options = Options(target=Target.parse(target))
    found: str = Compilation(Source("t.mlir", text), options).text("ptx")
    return found


WRONG = {
    "use of the CTA's number": "%d = arith.addi %b, %c1 : index",
    "the CTA's number": "%d = gpu.block_id x",
    "the CTA's number in the cluster": "%d = gpu.cluster_block_id x",
}


@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG.keys())
def test_all_ctas_of_a_cluster_run_the_same_program(body: str) -> None:
    with pytest.raises(LegoError, match="hold together") as error:
        compiled(body)
    assert error.value.location is not None
    assert error.value.hint


def test_a_grid_has_whole_clusters() -> None:
    with pytest.raises(LegoError, match="no whole clusters of 2"):
        compiled("", grid=5)


def test_a_target_has_clusters() -> None:
    with pytest.raises(LegoError, match="sm_89 has no clusters"):
        compiled("", target="sm_89")


def test_what_an_update_returns_is_known_to_one_cta() -> None:
    update = f"""
    %one = arith.constant 1 : i32
    %old = "lego.atomic"(%one, %x, %c0) {{kind = "add", layout = {LAYOUT[10:-1]}}}
        : (i32, memref<256xi32>, index) -> i32
    "lego.store"(%old, %x, %c1) {LAYOUT} : (i32, memref<256xi32>, index) -> ()
    "lego.store"(%v, %x, %c0) {SLICE} : (tensor<256xi32>, memref<256xi32>, index) -> ()
    """
    with pytest.raises(LegoError, match="one CTA of the cluster only") as error:
        compiled(update)
    assert error.value.hint


def test_elements_at_indices_come_from_the_own_warp_only() -> None:
    take = f"""
    %i = "lego.iota"() {{dim = 0 : i64}} : () -> tensor<256xi32>
    %w = "lego.take"(%v, %i) {{dim = 0 : i64}}
        : (tensor<256xi32>, tensor<256xi32>) -> tensor<256xi32>
    "lego.store"(%w, %x, %c0) {SLICE} : (tensor<256xi32>, memref<256xi32>, index) -> ()
    """
    with pytest.raises(LegoError, match="each CTA of a cluster has its own") as error:
        compiled(take)
    assert error.value.hint


def test_clusters_in_ptx() -> None:
    store = f'"lego.store"(%v, %x, %c0) {SLICE} : (tensor<256xi32>, memref<256xi32>, index) -> ()'
    text = compiled(store)
    assert cluster_sizes(text) == {"main_kernel": (2, 1, 1)}
    assert cluster_sizes(text.replace("2, 1, 1", "16")) == {"main_kernel": (16, 1, 1)}
    assert cluster_sizes("// .entry f() .reqnctapercluster 2") == {}
