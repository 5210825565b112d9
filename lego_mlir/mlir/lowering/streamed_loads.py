"""Loads of elements that a kernel reads once, by inline PTX.

    ld.global.L1::no_allocate.L2::256B.v4.b32 {$0, $1, $2, $3}, [$4+64];

They leave no line in the L1 cache, and bring 256 bytes at a time into the L2 cache, before sm_80
128: device memory is slower where threads read short pieces of many rows one after another. LLVM
has no operation for either.

Source: PTX ISA 9.7.9.8 (ld), 9.7.9.2 (cache eviction priority hints).
"""

from __future__ import annotations

from typing import Any

from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.emit.operations import make

STREAMED_BYTES = 16
"""Bytes of a load, and its alignment."""

_WORDS = 4
_TEXT = "ld.global.L1::no_allocate.L2::{}B.v4.b32 {{$0, $1, $2, $3}}, [$4+{}];"


def prefetched_bytes(target: Target) -> int:
    """Return the bytes that a load brings into the L2 cache, the most that a target has."""
    return 256 if target.capability >= (8, 0) else 128


def streamed_load(kind: Any, flat: Any, start: Any, distance: int, prefetched: int) -> Any:
    """Build a load of `STREAMED_BYTES`; return the vector.

    Args:
        kind: the type of the vector.
        flat: the memory, a buffer of one dimension in global memory.
        start: an offset in elements, an index.
        distance: from there to the first element; the instruction contains it.
        prefetched: bytes that it brings into the L2 cache.
    """
    i32, i64 = (ir.IntegerType.get_signless(bits) for bits in (32, 64))
    bytes_each = STREAMED_BYTES // int(ir.VectorType(kind).shape[0])
    size = arith.ConstantOp(ir.IndexType.get(), bytes_each)
    base = make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), flat)
    address = arith.AddIOp(base, arith.MulIOp(start, size.result).result).result
    words = make(
        "llvm.inline_asm",
        ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * _WORDS)})>"),
        arith.IndexCastOp(i64, address).result,
        asm_string=ir.StringAttr.get(_TEXT.format(prefetched, distance * bytes_each)),
        constraints=ir.StringAttr.get(",".join(["=r"] * _WORDS) + ",l"),
        # Without it the load could move before a wait for the launch that writes the memory.
        has_side_effects=ir.UnitAttr.get(),
    )
    parts = [
        make("llvm.extractvalue", i32, words, position=ir.DenseI64ArrayAttr.get([k]))
        for k in range(_WORDS)
    ]
    whole = vector.FromElementsOp(ir.VectorType.get([_WORDS], i32), parts).result
    return vector.BitCastOp(kind, whole).result
