"""Kernels that break the protocol of rings: the verifier or the simulator refuses each of them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ptx_mutants import is_caught

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

TILE = "tensor<64x64xf16, #S>"
RING = f"!lego.ring<2 : i64, {TILE}>"
ROWS = "OrderBy(Row(4, 32, 32)).OrderBy(RegP([4, 4, 4, 8, 8], [1, 2, 3, 0, 4])).GroupBy([64, 64])"
ORDERS = ("late", "early", "random")

MODULE = f"""
#A = #lego.layout<"OrderBy(Row(256, 64))">
#S = #lego.shared<"OrderBy(GenP([64, 64], tma_swizzle(128, 2)))">
#D = #lego.layout<"{ROWS}">
func.func @main(%a: memref<16384xf16> {{lego.layout = #A, lego.alignment = 16 : i64}},
                %b: memref<16384xf16> {{lego.layout = #A, lego.alignment = 16 : i64}},
                %c: memref<16384xf16> {{lego.layout = #A, lego.alignment = 16 : i64}}) {{
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c256, %sy = %c1, %sz = %c1) {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c64 = arith.constant 64 : index
    %r = "lego.make_ring"() : () -> {RING}
    %s = "lego.make_ring"() : () -> {RING}
    "lego.role"() ({{
      scf.for %i = %c0 to %c4 step %one {{ // consume
        %row = arith.muli %i, %c64 : index
        %after = arith.addi %i, %one : index
        %t = "lego.wait"(%r, %i) : ({RING}, index) -> {TILE}
        %x = "lego.convert"(%t) : ({TILE}) -> tensor<64x64xf16, #D>
        "lego.release"(%r, %i) : ({RING}, index) -> ()
        %u = "lego.wait"(%s, %i) : ({RING}, index) -> {TILE}
        %y = "lego.convert"(%u) : ({TILE}) -> tensor<64x64xf16, #D>
        "lego.release"(%s, %i) : ({RING}, index) -> ()
        %z = arith.addf %x, %y : tensor<64x64xf16, #D>
        "lego.store"(%z, %c, %row, %c0) {{layout = #A, slice = array<i64: 0, 1>}}
          : (tensor<64x64xf16, #D>, memref<16384xf16>, index, index) -> ()
      }}
      gpu.yield
    }}) {{name = "consumer", first_warp = 0 : i64, warps = 4 : i64}} : () -> ()
    "lego.role"() ({{
      scf.for %i = %c0 to %c4 step %one {{ // produce
        %row = arith.muli %i, %c64 : index
        %after = arith.addi %i, %one : index
        "lego.acquire"(%r, %i) : ({RING}, index) -> ()
        "lego.copy_async"(%r, %i, %a, %row, %c0) {{layout = #A, slice = array<i64: 0, 1>,
          engine = "tma"}} : ({RING}, index, memref<16384xf16>, index, index) -> ()
        "lego.commit"(%r, %i) : ({RING}, index) -> ()
        "lego.acquire"(%s, %i) : ({RING}, index) -> ()
        "lego.copy_async"(%s, %i, %b, %row, %c0) {{layout = #A, slice = array<i64: 0, 1>,
          engine = "tma"}} : ({RING}, index, memref<16384xf16>, index, index) -> ()
        "lego.commit"(%s, %i) : ({RING}, index) -> ()
      }}
      gpu.yield
    }}) {{name = "producer", first_warp = 4 : i64, warps = 4 : i64}} : () -> ()
    gpu.terminator
  }} {{lego.tile_warps = 4 : i64}}
  return
}}
"""
CONSUME = "scf.for %i = %c0 to %c4 step %one { // consume"
PRODUCE = "scf.for %i = %c0 to %c4 step %one { // produce"


def _op(name: str, ring: str, number: str) -> str:
    return f'"lego.{name}"({ring}, {number}) : ({RING}, index) -> ()'


ACQUIRE, COMMIT, RELEASE = (_op(name, "%r", "%i") for name in ("acquire", "commit", "release"))
COPY = re.search(r'"lego.copy_async"\(%r.*?\(\)', MODULE, re.S)[0]  # type: ignore[index]
CONVERT = f'%x = "lego.convert"(%t) : ({TILE}) -> tensor<64x64xf16, #D>'
CONSUMED = re.search(r'%t = "lego.wait".*?(?=%u)', MODULE, re.S)[0]  # type: ignore[index]

MUTANTS = {
    "no acquire": (((ACQUIRE, ""),), "has no 'lego.acquire'"),
    "no commit": (((COMMIT, ""),), "has no 'lego.commit'"),
    "no copy": (((COPY, ""),), "has no 'lego.copy_async'"),
    "no release": (((RELEASE, ""),), "has no 'lego.release'"),
    "no wait for the second ring": (
        (('%u = "lego.wait"(%s, %i)', '%u = "lego.wait"(%r, %after)'),),
        "has no 'lego.wait'",
    ),
    "acquire of the tile after": (
        ((ACQUIRE, _op("acquire", "%r", "%after")),),
        "'lego.acquire' of tile 1 in the loop's first iteration, where tile 0 is next",
    ),
    "commit of the tile after": (
        ((COMMIT, _op("commit", "%r", "%after")),),
        "'lego.commit' of tile 1",
    ),
    "always the first tile": (
        ((RELEASE, _op("release", "%r", "%c0")),),
        "'lego.release' of tile 0 in the next iteration, where tile 1 is next",
    ),
    "every second tile": (
        ((PRODUCE, PRODUCE.replace("step %one", "step %c2")),),
        "in the next iteration",
    ),
    "too few tiles": (((PRODUCE, PRODUCE.replace("%c4", "%c3")),), "is executed 3 times"),
    "too many tiles": (((PRODUCE, PRODUCE.replace("%c4", "%c5")),), "is executed 5 times"),
    "the consumer begins late": (((CONSUME, CONSUME.replace("%c0", "%one")),), "of tile 1"),
    "released twice": (((RELEASE, RELEASE + "\n" + RELEASE),), "'lego.release' of tile"),
    "committed twice": (((COMMIT, COMMIT + "\n" + COMMIT),), "'lego.commit' of tile"),
    "read behind its release": (
        ((CONVERT, ""), (RELEASE, RELEASE + "\n" + CONVERT)),
        "'lego.convert' reads a tile behind its release",
    ),
    "copied behind its commit": (
        ((COPY, ""), (COMMIT, COMMIT + "\n" + COPY)),
        "not followed by one copy and one commit",
    ),
    "copied to another tile": (
        ((COPY, COPY.replace("(%r, %i,", "(%r, %after,")),),
        "not followed by one copy and one commit",
    ),
    "two producers": (
        ((CONSUMED, f"{ACQUIRE}\n{COPY}\n{COMMIT}\n{CONSUMED}"),),
        "has 2 roles that fill it",
    ),
    "released on one way": (
        (
            (
                RELEASE,
                "%even = arith.cmpi eq, %i, %c2 : index\nscf.if %even {\n" + RELEASE + "\n}",
            ),
        ),
        "'scf.if' whose two ways use rings differently",
    ),
    "a warp with two roles": (
        (("first_warp = 4 : i64", "first_warp = 3 : i64"),),
        "'producer' has warp 3, as 'consumer' has",
    ),
    "a warp that is not launched": (
        (("first_warp = 4 : i64, warps = 4 : i64", "first_warp = 4 : i64, warps = 8 : i64"),),
        "'producer' has the warps 4 to 11, the launch 0 to 7",
    ),
    "too many registers": (
        (
            ("first_warp = 0 : i64,", "first_warp = 0 : i64, registers = 256 : i64,"),
            (
                "first_warp = 4 : i64, warps = 4 : i64",
                "first_warp = 4 : i64, registers = 256 : i64, warps = 8 : i64",
            ),
            ("%c256 = arith.constant 256", "%c256 = arith.constant 384"),
        ),
        "and the others have 98304 registers, a CTA of 384 threads 64512",
    ),
    "a tile behind the roles": (
        (
            (
                "gpu.terminator",
                "%w = arith.constant dense<0.0> : tensor<64x64xf16, #D>\n gpu.terminator",
            ),
        ),
        "'arith.constant' behind a role",
    ),
    "a turn without an end": (
        ((CONSUMED, '"lego.turn_begin"() {groups = 2 : i64} : () -> ()\n' + CONSUMED),),
        "'lego.turn_begin' of 2 warpgroups, in a role of 4 warps",
    ),
    "an end without a turn": (
        ((CONSUMED, '"lego.turn_end"() {groups = 2 : i64} : () -> ()\n' + CONSUMED),),
        "'lego.turn_end' without a 'lego.turn_begin' before it",
    ),
    "waiting in a circle": (
        (
            (CONSUME, CONSUME + "\n%skip = arith.constant 3 : index"),
            (CONSUMED, ""),
            (
                'gpu.yield\n    }) {name = "consumer"',
                "scf.for %i = %c0 to %c4 step %one {\n" + CONSUMED.replace(CONVERT, "") + "}\n"
                'gpu.yield\n    }) {name = "consumer"',
            ),
            ("arith.addf %x, %y", "arith.addf %y, %y"),
        ),
        "deadlock: 'consumer' waits for tile 2, 'producer' waits for the release of tile 0",
    ),
}


def _compilation(text: str) -> Compilation:
    source = Source("kernel.mlir", text)
    return Compilation(source, Options(target=Target.parse("sm_90a")))


@pytest.mark.parametrize("name", MUTANTS)
def test_the_verifier_refuses(name: str) -> None:
    changes, said = MUTANTS[name]
    text = MODULE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(LegoError) as caught:
        _ = _compilation(text).placed
    assert said in caught.value.message
    assert caught.value.location is not None


# The lowered protocol.
@pytest.fixture(scope="module")
def artifact() -> Artifact:
    return _compilation(MODULE).artifact(assemble=False)


def _run(artifact: Artifact, order: str) -> bool:
    """Return whether a run in the simulator has the right result."""
    a, b = np.random.default_rng(0).standard_normal((2, 256, 64)).astype(np.float16)
    done = runtime.run(
        artifact, [a, b, np.zeros_like(a)], device=runtime.select("sim", order=order)
    )
    found = np.asarray(done.outputs["c"]).view(np.float16).reshape(a.shape)
    return bool((found == a + b).all())


def test_the_lowered_protocol_is_right_in_all_orders(artifact: Artifact) -> None:
    assert all(_run(artifact, order) for order in ORDERS)


PTX_MUTANTS = {
    "fewer bytes are expected": (r"(expect_tx\S* \S+ \[\S+\], )\S+;", r"\g<1>4096;"),
    "more bytes are expected": (r"(expect_tx\S* \S+ \[\S+\], )\S+;", r"\g<1>16384;"),
    "no wait for full stages": (r"@P1 bra\.uni DONE;\s*(\.loc[^\n]*\n\s*)?bra\.uni +LAB_WAIT;", ""),
    "no release": (r"mbarrier\.arrive\.shared\.b64[^;]*;", ""),
    "one warp's release is enough": (r"mov\.b32 (\s*)(%r\d+), 4;", r"mov.b32 \1\2, 1;"),
    "barriers are not initialized": (r"mbarrier\.init\.shared\.b64[^;]*;", ""),
}


@pytest.mark.parametrize("name", PTX_MUTANTS)
def test_the_simulator_finds(artifact: Artifact, name: str) -> None:
    assert is_caught(artifact, PTX_MUTANTS[name], _run, ORDERS)
