"""Buffers of a kernel on tiles have offsets in one allocation, and share bytes where that pays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lego_mlir.analysis.buffer_lifetimes import BufferLifetime
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_passes.live_registers import live_registers
from lego_mlir.mlir.tile_passes.plan_shared_memory import offsets_of, plan_shared_memory


def planned(body: str, warps: int = 1, target: str = "sm_90a") -> tuple[list[tuple[int, int]], int]:
    """Return first byte and size of each buffer of a kernel, in order, and what all need."""
    text = f"""#space = #gpu.address_space<workgroup>
func.func @main() {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %threads = arith.constant {32 * warps} : index
  gpu.launch blocks(%cta, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
      threads(%t, %ty, %tz) in (%tx = %threads, %tyy = %c1, %tzz = %c1) {{
    {body}
    gpu.terminator
  }}
  return
}}
"""
    compilation = Compilation(Source("t.mlir", text), Options(target=Target.parse(target)))
    module: Any = compilation._parsed
    with module.context, ir.Location.unknown():
        launch = next(op for op in operations_in(module.operation) if op.name == "gpu.launch")
        target_of = compilation.options.target
        plan_shared_memory(TileKernel(launch, compilation.layouts, compilation.source, target_of))
        module.operation.verify()
        found = []
        for op in operations_in(launch):
            if op.name == "memref.view":
                start = ir.IntegerAttr(op.operands[1].owner.attributes["value"]).value
                kind = ir.MemRefType(op.results[0].type)
                found.append((start, kind.shape[0] * kind.element_type.width // 8))
        (memory,) = [a for a in launch.regions[0].blocks[0].arguments if "i8" in str(a.type)]
        return found, ir.MemRefType(memory.type).shape[0]


def alloc(name: str, bytes_: int, alignment: int | None = None) -> str:
    layout = f'layout = #lego.layout<"OrderBy(Row({bytes_ // 4}))">'
    stated = "" if alignment is None else f", lego.alignment = {alignment} : i64"
    return f'%{name} = "lego.alloc"() {{{layout}{stated}}} : () -> memref<?xf32, #space>\n'


def use(name: str, bytes_: int) -> str:
    layout = f'#lego.layout<"OrderBy(Row({bytes_ // 4}))">'
    return (
        f'%v{name}{bytes_} = "lego.load"(%{name}, %t) {{layout = {layout}}} '
        ": (memref<?xf32, #space>, index) -> f32\n"
    )


KIB = 1024


def test_small_buffers_share_nothing_for_that_would_cost_barriers() -> None:
    body = alloc("a", 512) + use("a", 512) + alloc("b", 512) + use("b", 512)
    assert planned(body) == ([(0, 512), (512, 512)], 1024)


def test_a_buffer_begins_where_its_alignment_says() -> None:
    body = alloc("a", 640) + alloc("b", 512, 1024) + use("a", 640) + use("b", 512)
    assert planned(body) == ([(0, 640), (1024, 512)], 1536)


@pytest.mark.parametrize("alignment", [0, 48, 2048])
def test_an_alignment_that_shared_memory_does_not_have_is_an_error(alignment: int) -> None:
    with pytest.raises(LegoError, match=f"a power of two up to 1024, not {alignment}"):
        planned(alloc("a", 512, alignment) + use("a", 512))


def test_large_buffers_one_after_another_have_the_same_bytes() -> None:
    size = 64 * KIB
    body = alloc("a", size) + use("a", size) + alloc("b", size) + use("b", size)
    assert planned(body) == ([(0, size), (0, size)], size)


def test_the_smallest_buffers_share_nothing_as_long_as_that_is_free() -> None:
    sizes = {"a": 20 * KIB, "b": KIB, "c": 20 * KIB, "d": KIB}
    body = "".join(alloc(n, s) + use(n, s) for n, s in sizes.items())
    (a, b, c, d), size = planned(body, warps=8)
    assert a == c == (0, 20 * KIB)
    assert {b, d} == {(20 * KIB, KIB), (21 * KIB, KIB)}
    assert size == 22 * KIB, "of the 28 KiB that each of 8 CTAs may have"


def test_a_buffer_from_outside_of_a_loop_lives_through_it() -> None:
    size = 64 * KIB
    body = (
        alloc("a", size)
        + "scf.for %i = %c0 to %c8 step %c1 {\n"
        + use("a", size)
        + alloc("b", size)
        + use("b", size)
        + "}\n"
    )
    assert planned(body) == ([(0, size), (size, size)], 2 * size)


def test_buffers_of_a_loop_live_for_a_part_of_an_iteration() -> None:
    size = 64 * KIB
    body = (
        "scf.for %i = %c0 to %c8 step %c1 {\n"
        + alloc("a", size)
        + use("a", size)
        + alloc("b", size)
        + use("b", size)
        + "}\n"
    )
    assert planned(body) == ([(0, size), (0, size)], size)


def test_buffers_of_two_branches_have_the_same_bytes() -> None:
    size = 64 * KIB
    body = (
        "%c = arith.cmpi ult, %cta, %c8 : index\nscf.if %c {\n"
        + alloc("a", size)
        + use("a", size)
        + "} else {\n"
        + alloc("b", size)
        + use("b", size)
        + "}\n"
    )
    assert planned(body) == ([(0, size), (0, size)], size)


def test_the_error_names_the_largest_buffer() -> None:
    body = alloc("a", 64 * KIB) + alloc("b", 128 * KIB) + use("a", 64 * KIB) + use("b", 128 * KIB)
    body += use("a", 64 * KIB).replace("%va", "%wa")
    with pytest.raises(LegoError) as e:
        planned(body, target="sm_80")
    assert "needs 196608 bytes of shared memory, 29696 more than the 166912" in str(e.value)
    assert "the largest buffer, of 131072 bytes, is 'OrderBy(Row(32768))' of f32" in str(e.value)
    assert "smaller tiles" in str(e.value.hint)


lifetimes = st.lists(
    st.builds(
        lambda size, first, length: BufferLifetime(size, 128, first, first + length),
        st.integers(1, 5000),
        st.integers(0, 20),
        st.integers(0, 10),
    ),
    min_size=1,
    max_size=8,
)


@given(lifetimes, st.sampled_from([2 * KIB, 16 * KIB]))
def test_buffers_that_live_together_never_share_bytes(
    buffers: list[BufferLifetime], free: int
) -> None:
    offsets = offsets_of(buffers, lambda: free)
    for k, (a, at) in enumerate(zip(buffers, offsets, strict=True)):
        assert at % a.alignment == 0
        for b, other in list(zip(buffers, offsets, strict=True))[:k]:
            assert not a.overlaps(b) or at + a.size <= other or other + b.size <= at


def test_registers_are_those_of_the_values_that_live_together() -> None:
    text = """
func.func @f(%x: memref<64xf32>, %i: index) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %a = vector.load %x[%i] : memref<64xf32>, vector<4xf32>
  %b = vector.load %x[%c0] : memref<64xf32>, vector<4xf32>
  %r = scf.for %k = %c0 to %c8 step %c8 iter_args(%v = %b) -> (vector<4xf32>) {
    %s = arith.addf %v, %a : vector<4xf32>
    scf.yield %s : vector<4xf32>
  }
  vector.store %r, %x[%i] : memref<64xf32>, vector<4xf32>
  return
}
"""
    module: Any = Compilation(Source("t.mlir", text), Options())._parsed
    block = module.body.operations[0].regions[0].blocks[0]
    assert live_registers(block) == 4 + 1 + 4 + 4, "in the loop: %a, %k, %v and %s"
