"""Operations of the nvvm dialect, as the transforms make them; at the current insertion point.

The bindings have a class for each operation of the dialect, and loading these takes longer than
compiling a kernel. Here is what is needed of them, by the same names.

Source: the NVVM dialect of MLIR; each operation is an instruction of PTX ISA 9.7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lego_mlir.mlir.bindings import ir


def _made(
    name: str,
    operands: Sequence[Any] = (),
    results: Sequence[Any] = (),
    attributes: dict[str, Any] | None = None,
) -> Any:
    return ir.Operation.create(
        f"nvvm.{name}", results=list(results), operands=list(operands), attributes=attributes or {}
    )


def _segments(*counts: int) -> Any:
    return ir.DenseI32ArrayAttr.get(list(counts))


def _i32(n: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32), n)


# Barriers (PTX ISA 9.7.13).
_ACQUIRE_RELEASE = 6  # LLVM::AtomicOrdering


def barrier(number: Any, threads: Any) -> None:
    """Wait at a named barrier for a number of threads; both are i32."""
    _made("barrier", [number, threads], attributes={"operandSegmentSizes": _segments(1, 1, 0)})


def barrier_arrive(number: Any, threads: Any) -> None:
    """Arrive at a named barrier of a number of threads without waiting; both are i32."""
    _made("barrier.arrive", [number, threads])


def cluster_arrive() -> None:
    """Arrive at the cluster's barrier with all threads of the warp."""
    _made("cluster.arrive", attributes={"aligned": ir.UnitAttr.get()})


def cluster_arrive_relaxed() -> None:
    """Arrive at the cluster's barrier without ordering memory."""
    _made("cluster.arrive.relaxed", attributes={"aligned": ir.UnitAttr.get()})


def cluster_wait() -> None:
    """Wait for all threads of the cluster."""
    _made("cluster.wait", attributes={"aligned": ir.UnitAttr.get()})


def mbarrier_init(barrier: Any, count: Any) -> None:
    """Initialize an mbarrier with the number of arrivals, an i32, that complete a phase."""
    _made("mbarrier.init", [barrier, count])


def fence_mbarrier_init() -> None:
    """Make initialized mbarriers visible to the cluster."""
    _made("fence.mbarrier.init")


def mbarrier_arrive(barrier: Any) -> None:
    """Arrive at an mbarrier of this CTA or of another CTA of the cluster."""
    _made("mbarrier.arrive", [barrier])


def mbarrier_arrive_expect_tx(barrier: Any, count: Any) -> None:
    """Arrive at an mbarrier and add to the bytes, an i32, that its phase expects."""
    _made("mbarrier.arrive.expect_tx", [barrier, count])


def mbarrier_try_wait_parity(barrier: Any, parity: Any, ticks: Any) -> Any:
    """Wait until the mbarrier's phase of this parity is complete; return the operation.

    Args:
        barrier: a pointer.
        parity: an i32.
        ticks: nanoseconds after which to look again, an i32.
    """
    return _made("mbarrier.try_wait.parity", [barrier, parity, ticks])


def fence_async_shared(own: Mapping[str, Any] | None = None) -> None:
    """Make writes to the CTA's shared memory visible to the asynchronous proxy.

    Args:
        own: attributes of the operation that say nothing to the dialect.
    """
    attributes = {
        **(own or {}),
        "kind": ir.Attribute.parse("#nvvm.proxy_kind<async.shared>"),
        "space": ir.Attribute.parse("#nvvm.shared_space<cta>"),
    }
    _made("fence.proxy", attributes=attributes)


def griddepcontrol(action: Literal["wait", "launch_dependents"]) -> None:
    """Wait for the preceding launch, or let the next one begin (programmatic dependent launch)."""
    kind = ir.Attribute.parse(f"#nvvm<grid_dep_action {action}>")
    _made("griddepcontrol", attributes={"kind": kind})


# Copies by threads (PTX ISA 9.7.9.25.3, 9.7.13.15.15).
def commit_copies() -> None:
    """Make a group of the cp.async that the thread started since the last group."""
    _made("cp.async.commit.group")


def wait_for_copies(groups: int) -> None:
    """Wait until all but the last groups, this many, of the thread's cp.async are complete."""
    _made("cp.async.wait.group", attributes={"n": _i32(groups)})


def arrive_after_copies(barrier: Any) -> None:
    """Arrive at an mbarrier when the cp.async that the thread started so far are complete."""
    _made("cp.async.mbarrier.arrive", [barrier], attributes={"noinc": ir.BoolAttr.get(True)})


# Copies by TMA (PTX ISA 9.7.9.25).
def fetch_tile(
    target: Any, tensor: Any, coordinates: Sequence[Any], barrier: Any, blocks: Any = None
) -> None:
    """Copy a box of a tensor into shared memory by TMA.

    Args:
        target: a pointer to the cluster's shared memory.
        tensor: a pointer to the tensor map.
        coordinates: of the box, innermost first, i32 values.
        barrier: that counts its bytes.
        blocks: the cluster's CTAs that receive the box, a mask of 16 bits; by default this CTA.
    """
    sizes = _segments(1, 1, len(coordinates), 1, 0, int(blocks is not None), 0, 0)
    mask = [] if blocks is None else [blocks]
    _made(
        "cp.async.bulk.tensor.shared.cluster.global",
        [target, tensor, *coordinates, barrier, *mask],
        attributes={"operandSegmentSizes": sizes},
    )


def store_tile(tensor: Any, source: Any, coordinates: Sequence[Any]) -> None:
    """Copy a box of a tensor from shared memory by TMA.

    Args:
        tensor: a pointer to the tensor map.
        source: a pointer to shared memory.
        coordinates: of the box, innermost first, i32 values.
    """
    _made(
        "cp.async.bulk.tensor.global.shared.cta",
        [tensor, source, *coordinates],
        attributes={"operandSegmentSizes": _segments(1, 1, len(coordinates), 0, 0)},
    )


def commit_stores() -> None:
    """Commit the TMA stores so far as one group."""
    _made("cp.async.bulk.commit.group")


def wait_for_stores_read(groups: int) -> None:
    """Wait until all but the last groups, this many, have been read from shared memory."""
    attributes = {"group": _i32(groups), "read": ir.UnitAttr.get()}
    _made("cp.async.bulk.wait_group", attributes=attributes)


# wgmma (PTX ISA 9.7.15).
def wgmma_wait(groups: int) -> None:
    """Wait for all but the last groups, this many, of wgmma."""
    i64 = ir.IntegerType.get_signless(64)
    _made("wgmma.wait.group.sync.aligned", attributes={"group": ir.IntegerAttr.get(i64, groups)})


# Threads, blocks and registers.
def elect() -> Any:
    """Return an i1 that is true in one elected lane of the warp."""
    return _made("elect.sync", results=[ir.IntegerType.get_signless(1)]).result


def shuffle(mask: Any, value: Any, lane: Any, clamp: Any) -> Any:
    """Return the 32-bit value of another lane of the warp (shfl.sync.idx)."""
    kind = ir.Attribute.parse("#nvvm<shfl_kind idx>")
    operands = [mask, value, lane, clamp]
    return _made("shfl.sync", operands, [value.type], {"kind": kind}).result


def vote_any(mask: Any, truth: Any) -> Any:
    """Return whether an i1 is true in any lane of the warp of a mask (vote.sync.any)."""
    kind = ir.Attribute.parse("#nvvm<vote_sync_kind any>")
    i1 = ir.IntegerType.get_signless(1)
    return _made("vote.sync", [mask, truth], [i1], {"kind": kind}).result


def set_registers(count: int, action: Literal["increase", "decrease"]) -> None:
    """Set the number of registers of each thread of the warpgroup (setmaxnreg)."""
    kind = ir.Attribute.parse(f"#nvvm<action {action}>")
    _made("setmaxregister", attributes={"regCount": _i32(count), "action": kind})


def rank_in_cluster() -> Any:
    """Return the CTA's rank in its cluster, an i32."""
    i32 = ir.IntegerType.get_signless(32)
    return _made("read.ptx.sreg.cluster.ctarank", results=[i32]).result


def of_block(kind: Any, pointer: Any, block: Any) -> Any:
    """Return the same address in the shared memory of another CTA of the cluster (mapa).

    Args:
        kind: the type of a pointer to the cluster's shared memory.
        pointer: an address in this CTA's shared memory.
        block: its rank, an i32.
    """
    return _made("mapa", [pointer, block], [kind]).result
