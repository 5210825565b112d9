"""Shared memory beyond 48 KiB: dynamic by itself, and an error beyond the GPU's."""

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import OrderBy, Row
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

SPACE = "#gpu.address_space<workgroup>"
ALLOC = (
    '%s = "lego.alloc"() {layout = #lego.layout<"OrderBy(Row(N))">} : () -> memref<?xf32, ' + SPACE
) + ">"

REVERSE = """
func.func @reverse(%a: memref<Nxf32>, %b: memref<Nxf32>) {
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%t, %ty, %tz) in (%nx = %c256, %ny = %c1, %nz = %c1) ATTRIBUTION {
    ALLOC
    %n = arith.constant N : index
    %last = arith.constant LAST : index
    scf.for %i = %t to %n step %c256 {
      %v = memref.load %a[%i] : memref<Nxf32>
      memref.store %v, %s[%i] : memref<Kxf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    scf.for %i = %t to %n step %c256 {
      %j = arith.subi %last, %i : index
      %v = memref.load %s[%j] : memref<Kxf32, #gpu.address_space<workgroup>>
      memref.store %v, %b[%i] : memref<Nxf32>
    }
    gpu.terminator
  }
  return
}
"""


def reverse(n: int, how: str) -> str:
    """A module that reverses n floats by way of shared memory."""
    text = REVERSE.replace("ALLOC", ALLOC if how == "alloc" else "")
    attribution = f"workgroup(%s: memref<Nxf32, {SPACE}>)" if how == "attribution" else ""
    text = text.replace("ATTRIBUTION", attribution)
    text = text.replace("Kxf32", "?xf32" if how == "alloc" else "Nxf32")
    return (
        text.replace("LAST", str(n - 1))
        .replace("Row(N)", f"Row({n})")
        .replace("<Nx", f"<{n}x")
        .replace("constant N ", f"constant {n} ")
    )


def compiled(text: str, target: str = "sm_90a") -> Compilation:
    return Compilation(Source("reverse.mlir", text), Options(target=Target.parse(target)))


def runs(artifact: Artifact, n: int) -> None:
    a = np.arange(n, dtype=np.float32)
    b = np.zeros_like(a)
    lg.launch(artifact, a, b, device="sim")
    np.testing.assert_array_equal(b, a[::-1])


@pytest.mark.parametrize("how", ["attribution", "alloc"])
@pytest.mark.parametrize(("n", "dynamic"), [(12288, 0), (12289, 49156), (20480, 81920)])
def test_shared_memory_beyond_48_kib_is_dynamic(how: str, n: int, dynamic: int) -> None:
    artifact = compiled(reverse(n, how)).artifact(assemble=False)
    assert [launch.shared_bytes for launch in artifact.launches] == [dynamic]
    assert (".extern .shared" in artifact.ptx) == (dynamic > 0)
    runs(artifact, n)


@pytest.mark.parametrize(("target", "n"), [("sm_80", 41728), ("sm_90a", 58112)])
def test_all_that_a_block_may_have_can_be_used(target: str, n: int) -> None:
    compilation = compiled(reverse(n, "attribution"), target)
    assert compilation.cubin.code
    (launch,) = compilation.artifact().launches
    assert launch.shared_bytes == Target.parse(target).optin_shared_bytes
    with pytest.raises(LegoError, match="4 more than the") as e:
        _ = compiled(reverse(n + 1, "attribution"), target).ptx
    assert target in e.value.message
    assert e.value.location is not None
    assert (e.value.location.file, e.value.location.line) == ("reverse.mlir", 5)


def test_dynamic_bytes_of_a_launch_beyond_the_target_are_an_error() -> None:
    text = (
        reverse(12288, "attribution")
        .replace("threads(%t", "threads(%t")
        .replace("workgroup(", "dynamic_shared_memory_size %size workgroup(")
    )
    text = text.replace("%c1 =", "%size = arith.constant 200000 : i32\n  %c1 =")
    with pytest.raises(LegoError, match="needs 249152 bytes of shared memory"):
        _ = compiled(text).nvvm


TWO = """
module attributes {gpu.container_module} {
  gpu.module @m {
    memref.global "private" @tile : memref<10000xf32, #gpu.address_space<workgroup>>
    gpu.func @small(%a: memref<32xf32>) kernel { BODY gpu.return }
    gpu.func @large(%a: memref<32xf32>)
        workgroup(%own: memref<10000xf32, #gpu.address_space<workgroup>>) kernel {
      %x = gpu.thread_id x
      %w = memref.load %a[%x] : memref<32xf32>
      memref.store %w, %own[%x] : memref<10000xf32, #gpu.address_space<workgroup>>
      BODY
      %y = memref.load %own[%x] : memref<10000xf32, #gpu.address_space<workgroup>>
      %z = memref.load %a[%x] : memref<32xf32>
      %sum = arith.addf %y, %z : f32
      memref.store %sum, %a[%x] : memref<32xf32>
      gpu.return
    }
  }
  func.func @host(%a: memref<32xf32>) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @m::@small blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%a : memref<32xf32>)
    gpu.launch_func @m::@large blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
      args(%a : memref<32xf32>)
    return
  }
}
""".replace(
    "BODY",
    """
      %s = memref.get_global @tile : memref<10000xf32, #gpu.address_space<workgroup>>
      %t = gpu.thread_id x
      %last = arith.constant 31 : index
      %i = arith.subi %last, %t : index
      %v = memref.load %a[%t] : memref<32xf32>
      memref.store %v, %s[%t] : memref<10000xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %u = memref.load %s[%i] : memref<10000xf32, #gpu.address_space<workgroup>>
      memref.store %u, %a[%t] : memref<32xf32>
""",
)


def test_a_variable_of_two_kernels_has_one_offset_in_both() -> None:
    artifact = compiled(TWO).artifact(assemble=False)
    assert [launch.shared_bytes for launch in artifact.launches] == [40000, 40064 + 40000]
    assert ".extern .shared .align 1024 .b8 __dynamic_shmem__0[];" in artifact.ptx
    a = np.arange(32, dtype=np.float32)
    lg.launch(artifact, a, device="sim")
    np.testing.assert_array_equal(a, np.full(32, 31.0))


WHOLE = OrderBy(Row(80, 256))


@lg.kernel(grid=1, block=256)
def turned(x: lg.Tensor["f32", WHOLE], y: lg.Tensor["f32", WHOLE]):  # noqa: F821
    thread = lg.thread_id()
    tile = lg.shared("f32", WHOLE)
    for row in lg.loop(80):
        tile[row, thread] = x[row, thread]
    lg.barrier()
    for row in lg.loop(80):
        y[row, thread] = tile[79 - row, 255 - thread]


def test_in_python_it_is_lg_shared() -> None:
    x = np.random.default_rng(0).standard_normal((80, 256), np.float32)
    y = np.zeros_like(x)
    turned(x, y, device="sim")
    np.testing.assert_array_equal(y, x[::-1, ::-1])
