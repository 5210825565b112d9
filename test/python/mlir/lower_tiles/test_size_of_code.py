"""What a kernel on tiles costs the compiler: LLVM's work must not grow faster than the tiles."""

from __future__ import annotations

import re

import numpy as np
from tile_kernels import access, compiled, kernel, load, outputs, store, tile

from lego_mlir.analysis.distributed import (
    coalesced,
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    reduced,
    transposed,
)


def attention(queries: int, keys: int, depth: int, warps: int) -> tuple[str, dict[str, np.ndarray]]:
    """Return attention of one head by online softmax, and its arguments.

    Args:
        queries: of the CTA; a warp has 16, or a multiple.
        keys: two tiles of them, so many in each.
        depth: of queries, keys and values.
        warps: of the CTA.
    """
    random = np.random.default_rng(0)
    shapes = {"q": (queries, depth), "k": (2 * keys, depth), "v": (2 * keys, depth)}
    arguments = {n: random.standard_normal(s).astype(np.float16) for n, s in shapes.items()}
    arguments["y"] = np.zeros((queries, depth), np.float16)
    grid = (warps, 1)
    scores, sums = mma_accumulator((queries, keys), grid), mma_accumulator((queries, depth), grid)
    q_rows, kv_rows = coalesced((queries, depth), 2, warps), coalesced((keys, depth), 2, warps)
    of_rows = reduced(scores, 1)
    assert of_rows == reduced(sums, 1)
    a, b = mma_operand_a((queries, depth), 16, grid), mma_operand_b((depth, keys), 16, grid)
    p, v = mma_operand_a((queries, keys), 16, grid), mma_operand_b((keys, depth), 16, grid)
    s_type, acc, row = tile(scores, "f32"), tile(sums, "f32"), tile(of_rows, "f32")
    kv, kt = tile(kv_rows, "f16"), tile(transposed(kv_rows), "f16")
    a_type, b_type, p_type, v_type = (tile(x, "f16") for x in (a, b, p, v))
    size = arguments["k"].size

    def part(name: str) -> str:
        types = f"(memref<{size}xf16>, index, index) -> {kv}"
        return f'"lego.load"(%{name}, %at, %c0) {access(arguments, name)} : {types}'

    body = f"""
    %q0 = {load(arguments, "q", tile(q_rows, "f16"))}
    %qa = "lego.convert"(%q0) : ({tile(q_rows, "f16")}) -> {a_type}
    %m0 = arith.constant dense<0xFF800000> : {row}
    %l0 = arith.constant dense<0.0> : {row}
    %o0 = arith.constant dense<0.0> : {acc}
    %c2 = arith.constant 2 : index
    %keys = arith.constant {keys} : index
    %mn, %ln, %on = scf.for %j = %c0 to %c2 step %c1
        iter_args(%m = %m0, %l = %l0, %o = %o0) -> ({row}, {row}, {acc}) {{
      %at = arith.muli %j, %keys : index
      %k0 = {part("k")}
      %v0 = {part("v")}
      %kt = "lego.transpose"(%k0) {{order = array<i64: 1, 0>}} : ({kv}) -> {kt}
      %kb = "lego.convert"(%kt) : ({kt}) -> {b_type}
      %vb = "lego.convert"(%v0) : ({kv}) -> {v_type}
      %z = arith.constant dense<0.0> : {s_type}
      %s = "lego.dot"(%qa, %kb, %z) : ({a_type}, {b_type}, {s_type}) -> {s_type}
      %c = arith.constant dense<1.44269504> : {s_type}
      %t = arith.mulf %s, %c : {s_type}
      %top = "lego.reduce"(%t) {{kind = "max", dim = 1 : i64}} : ({s_type}) -> {row}
      %m1 = arith.maximumf %m, %top : {row}
      %mb = "lego.broadcast"(%m1) : ({row}) -> {s_type}
      %d = arith.subf %t, %mb : {s_type}
      %p = math.exp2 %d : {s_type}
      %dm = arith.subf %m, %m1 : {row}
      %scale = math.exp2 %dm : {row}
      %sum = "lego.reduce"(%p) {{kind = "add", dim = 1 : i64}} : ({s_type}) -> {row}
      %l1 = arith.mulf %l, %scale : {row}
      %l2 = arith.addf %l1, %sum : {row}
      %wide = "lego.broadcast"(%scale) : ({row}) -> {acc}
      %o1 = arith.mulf %o, %wide : {acc}
      %ph = arith.truncf %p : {s_type} to {tile(scores, "f16")}
      %pa = "lego.convert"(%ph) : ({tile(scores, "f16")}) -> {p_type}
      %o2 = "lego.dot"(%pa, %vb, %o1) : ({p_type}, {v_type}, {acc}) -> {acc}
      scf.yield %m1, %l2, %o2 : {row}, {row}, {acc}
    }}
    %lb = "lego.broadcast"(%ln) : ({row}) -> {acc}
    %r = arith.divf %on, %lb : {acc}
    %rh = arith.truncf %r : {acc} to {tile(sums, "f16")}
    {store(arguments, "y", "%rh", tile(sums, "f16"))}
    """
    return kernel(arguments, warps, body), arguments


def test_attention() -> None:
    text, arguments = attention(64, 64, 64, 4)
    q, k, v = (arguments[n].astype(np.float64) for n in "qkv")
    e = np.exp(q @ k.T - (q @ k.T).max(1, keepdims=True))
    found = outputs(text, arguments)["y"]
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True) @ v, atol=5e-3)


def test_llvm_gets_no_more_than_the_work() -> None:
    """A tile as one wide vector made LLVM take 14 s: each part is a few registers."""
    counts = []
    for keys in (32, 64):
        compilation = compiled(attention(64, keys, 64, 4)[0])
        widths = [int(n) for n in re.findall(r"vector<(\d+)x", str(compilation.index))]
        assert max(widths) <= 8  # one access of halves
        counts.append(sum(line.startswith("  ") for line in compilation.llvm.splitlines()))
    # Twice the keys are twice the work. 5,000 lines are 50 for each of a thread's 96 registers.
    assert counts[1] <= 2 * counts[0]
    assert counts[1] <= 5000


def softmax(columns: int, warps: int) -> tuple[str, dict[str, np.ndarray]]:
    """Return the softmax of a row, and its arguments."""
    x = np.random.default_rng(0).standard_normal((1, columns)).astype(np.float32)
    arguments = {"x": x, "y": np.zeros_like(x)}
    layout = coalesced((1, columns), 4, warps)
    rows, row = tile(layout, "f32"), tile(reduced(layout, 1), "f32")
    body = f"""
    %v = {load(arguments, "x", rows)}
    %m = "lego.reduce"(%v) {{kind = "max", dim = 1 : i64}} : ({rows}) -> {row}
    %mb = "lego.broadcast"(%m) : ({row}) -> {rows}
    %d = arith.subf %v, %mb : {rows}
    %c = arith.constant dense<1.44269504> : {rows}
    %t = arith.mulf %d, %c : {rows}
    %e = math.exp2 %t : {rows}
    %s = "lego.reduce"(%e) {{kind = "add", dim = 1 : i64}} : ({rows}) -> {row}
    %one = arith.constant dense<1.0> : {row}
    %i = arith.divf %one, %s : {row}
    %ib = "lego.broadcast"(%i) : ({row}) -> {rows}
    %r = arith.mulf %e, %ib : {rows}
    {store(arguments, "y", "%r", rows)}
    """
    return kernel(arguments, warps, body), arguments


def test_softmax_of_4096_columns() -> None:
    text, arguments = softmax(4096, 8)
    compilation = compiled(text)
    instructions = re.findall(r"^\s+(?:@!?%p\d+ )?[a-z][\w.:]*(?=[ ;\t])", compilation.ptx, re.M)
    assert len(instructions) <= 180
    assert compilation.ptx.count("ld.global.v4") == compilation.ptx.count("st.global.v4") == 4
    (resources,) = compilation.cubin.resources
    assert resources.registers <= 40
    assert resources.spill_store_bytes == 0
    x = arguments["x"].astype(np.float64)
    e = np.exp(x - x.max())
    np.testing.assert_allclose(outputs(text, arguments)["y"], e / e.sum(), atol=1e-6)
