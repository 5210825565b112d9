"""Lower lego.send_parts to stores into the shared memory of another CTA of the cluster.

    %there = mapa %buffer, %cta                     the buffer's address in the other CTA
    st.async [%there + offset], %value, [%barrier_there]   the bytes count at the barrier there
    mbarrier.arrive [%barrier_there]                of an exchange in a loop

The instructions are PTX: MLIR has no operation for them.

Source: PTX ISA, "st.async" and "mapa".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import arith, ir, vector
from lego_mlir.mlir.emit.operations import assembly, make
from lego_mlir.mlir.lowering.parts_access.lanes import grouped, lanes_of
from lego_mlir.mlir.lowering.parts_access.plan import PartsMemory, Plan, bytes_of

_MBARRIER_BYTES = 8

_REGISTERS = {4: "r", 8: "l"}
"""The constraint of a register, by the bytes of an element."""


def send(
    memory: PartsMemory, parts: Sequence[Any], barrier: Any, cta: Any, slot: Any | None = None
) -> None:
    """Build the stores of parts into the memory of another CTA.

    Args:
        memory: where they go; it has the same address there.
        parts: the values.
        barrier: the mbarriers, a memref in shared memory.
        cta: the other CTA's rank, an i32.
        slot: the number of the mbarrier, an index; the first by default.

    Raises:
        LegoError: elements have other sizes than 4 or 8 bytes, or one of them may not exist.
    """
    size = bytes_of(memory.element)
    if size not in _REGISTERS:
        raise LegoError(f"st.async stores elements of 4 or 8 bytes, not {memory.element}")
    plan = Plan(memory, ())
    if any(truth is not True for truth in plan.truths.values()):
        raise LegoError(f"the layout '{memory.layout}' does not have all elements that are sent")
    lanes = lanes_of(parts)
    signal = _in_cta(_beyond(_address(barrier), slot, _MBARRIER_BYTES), cta)
    accesses = [access for group in plan.groups.values() for access in group]
    # One mapa for several stores. A single one has its address made ahead of it, outside of loops.
    is_one = len(accesses) == 1
    here = _address(memory.flat)
    there = here if is_one else _in_cta(here, cta)
    for access in accesses:
        sent = [lanes[registers[0]] for registers in access.lanes]
        (value,) = grouped(sent, [plan.unit(access)])
        target = _beyond(there, plan.offset(access), size)
        _store(
            _in_cta(target, cta) if is_one else target, _words(value, len(sent), size), signal, size
        )


def arrive(barrier: Any, cta: Any, slot: Any | None = None) -> None:
    """Build an arrival at the mbarrier of another CTA; arguments as `send`."""
    signal = _in_cta(_beyond(_address(barrier), slot, _MBARRIER_BYTES), cta)
    assembly("mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,~{memory}", [signal])


def _store(target: Any, words: Sequence[Any], signal: Any, size: int) -> None:
    """Build one st.async of up to 16 bytes; all operands are integers."""
    most = 16 // size
    assert len(words) <= most
    names = [f"${k + 1}" for k in range(len(words))]
    vector_ = f".v{len(words)}" if len(words) > 1 else ""
    value = "{" + ", ".join(names) + "}" if len(words) > 1 else names[0]
    assembly(
        f"st.async.weak.shared::cluster.mbarrier::complete_tx::bytes{vector_}.b{8 * size} "
        f"[$0], {value}, [${len(words) + 1}];",
        ",".join(["r", *([_REGISTERS[size]] * len(words)), "r", "~{memory}"]),
        [target, *words, signal],
    )


def _words(value: Any, count: int, size: int) -> list[Any]:
    """Build the elements of a vector, or the one value, as integers."""
    word = ir.IntegerType.get_signless(8 * size)
    if count == 1:
        return [value if value.type == word else arith.BitcastOp(word, value).result]
    words = value
    if ir.VectorType(value.type).element_type != word:
        words = vector.BitCastOp(ir.VectorType.get([count], word), value).result
    return [vector.ExtractOp(words, [], [k]).result for k in range(count)]


def _address(buffer: Any) -> Any:
    """Build the address of a buffer in the shared memory of its CTA, an i32."""
    at = make("memref.extract_aligned_pointer_as_index", ir.IndexType.get(), buffer)
    return make("arith.index_cast", ir.IntegerType.get_signless(32), at)


def _beyond(start: Any, count: Any | None, size: int) -> Any:
    """Build the address behind so many elements, an index, of a size in bytes."""
    if count is None:
        return start
    offset = make("arith.index_cast", start.type, count)
    distance = arith.MulIOp(offset, arith.ConstantOp(start.type, size).result).result
    return arith.AddIOp(start, distance).result


def _in_cta(address: Any, cta: Any) -> Any:
    """Build the same address in another CTA of the cluster."""
    return assembly("mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", [address, cta], address.type)
