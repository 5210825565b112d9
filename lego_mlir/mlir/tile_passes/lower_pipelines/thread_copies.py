"""Copies of tiles into rings by threads: cp.async, or loads and stores through registers.

    "lego.copy_async"(%ring, %n, %a, %i, %j) {layout = #A, engine = "cp.async", ...}

becomes

    "lego.copy_parts"(%a, %i, %j, %stages, %stage, %k, %l) {layout = #A, target = #S, ...}

The threads of the role divide the tile as a coalesced load does.

Source: PTX ISA 9.7.9.25.3.1 (cp.async).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.analysis.distributed import DistributedLayout
from lego_mlir.analysis.distributed.slices import slice_of_cta, stacked
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import layout_attribute
from lego_mlir.mlir.lowering.parts_access.copies import CHUNK_BYTES
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.operations import slice_of
from lego_mlir.mlir.tile_ir.roles import Role
from lego_mlir.mlir.tile_ir.types import shared_layout_in
from lego_mlir.mlir.tile_passes.assign_layouts.memory_anchors import (
    Accesses,
    TileAccess,
)
from lego_mlir.mlir.tile_passes.lower_tiles import build
from lego_mlir.mlir.tile_passes.lower_tiles.fragments import register_factors, without_copies
from lego_mlir.mlir.tile_passes.lower_tiles.memory import where
from lego_mlir.mlir.tile_passes.lower_tiles.threads import Threads

_CAPABILITY = (8, 0)


def check_thread_copy(accesses: Accesses, copy: Any) -> tuple[DistributedLayout, DistributedLayout]:
    """Check that cp.async can make a lego.copy_async.

    Args:
        accesses: of the kernel.
        copy: the operation.

    Returns:
        Which thread copies which element, of the tile and of the CTA's slice.

    Raises:
        LegoError: the target has none, or the tile has no neighbours to copy together.
    """
    kernel = accesses.kernel
    if kernel.target.capability < _CAPABILITY:
        raise LegoError(
            f"{kernel.target.name} has no cp.async", hint="--target=sm_80, or another engine"
        )
    access = _access(accesses, copy)
    shared = shared_layout_in(pipelines.tile_type_of(copy.operands[0]))
    assert shared is not None  # the verifier has seen to it
    divided = _divided(accesses, access, accesses.roles.of(copy), shared)
    own = slice_of_cta(divided)
    if own is None or own.shape != tuple(shared.dims):
        raise LegoError(
            "the CTAs of a cluster would copy other elements than those of their slices",
            hint="a slice is of the slowest dimension in memory that CTAs divide",
        )
    *_, nearest = register_factors(divided) or [(0, 1, 1)]
    dim, count, stride = nearest
    is_near = access.order and dim == access.order[-1] and stride == 1
    width = (count if is_near else 1) * access.element_bytes
    if width < CHUNK_BYTES[-1]:
        raise LegoError(
            f"cp.async copies {CHUNK_BYTES[-1]} bytes or more at a time, and {width} are known to "
            "be neighbours in the tensor and in the ring",
            hint='engine = "plain" copies through registers',
        )
    return divided, own


class ThreadCopies:
    """The copies of one kernel by threads.

    Args:
        kernel: the kernel.

    Attributes:
        accesses: of the kernel.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self.accesses = Accesses(kernel)
        self._threads: dict[Any, Threads] = {}

    def asynchronous(self, op: Any, role: Role, buffer: Any, layout: Layout, stage: Any) -> None:
        """Build the copies of a tile by cp.async.

        Args:
            op: the lego.copy_async.
            role: what executes it.
            buffer: the stages of its ring.
            layout: of that memory, with the stage as its first dimension.
            stage: the tile's stage, an index.

        Raises:
            LegoError: cp.async cannot copy the tile.
        """
        divided, own = check_thread_copy(self.accesses, op)
        threads = self._of(role)
        at, to = threads.coordinates(divided), threads.coordinates(own)
        _, _, source, *operands = list(op.operands)
        dims = slice_of(op)
        for dim, x in zip(dims, at, strict=True):
            operands[dim] = build.binary("addi", operands[dim], x)
        factors = register_factors(divided)
        with where(threads.is_first_copy(divided)):
            tiles.copy_parts(
                source,
                operands,
                op.attributes[dialect.LAYOUT],
                [(dims[dim], n, stride) for dim, n, stride in factors],
                buffer,
                [stage, *to],
                layout_attribute(layout),
                [(1 + dim, n, stride) for dim, n, stride in factors],
            )

    def through_registers(
        self, op: Any, role: Role, buffer: Any, layout: Layout, stage: Any
    ) -> None:
        """Build the load and the store of a tile; arguments as `asynchronous`.

        Raises:
            LegoError: the CTAs of a cluster have slices of the tile.
        """
        if self._kernel.ctas > 1:
            raise LegoError(
                "the CTAs of a cluster copy slices of a tile by cp.async",
                hint='engine = "cp.async"',
            )
        kind = ir.RankedTensorType(pipelines.tile_type_of(op.operands[0]))
        access = _access(self.accesses, op)
        shared = shared_layout_in(kind)
        assert shared is not None  # the verifier has seen to it
        divided = layout_attribute(_divided(self.accesses, access, role, shared).layout)
        placed = ir.RankedTensorType.get(kind.shape, kind.element_type, divided)
        attributes = {name: op.attributes[name] for name in (dialect.LAYOUT, dialect.SLICE)}
        tile = dialect.load(placed, op.operands[2], list(op.operands)[3:], attributes)
        zero = build.index(0)
        whole = ir.DenseI64ArrayAttr.get(list(range(1, 1 + len(kind.shape))))
        dialect.store(
            tile,
            buffer,
            [stage, *[zero] * len(kind.shape)],
            {dialect.LAYOUT: layout_attribute(layout), dialect.SLICE: whole},
        )

    def _of(self, role: Role) -> Threads:
        if role.op not in self._threads:
            self._threads[role.op] = Threads(self._kernel, role.op)
        return self._threads[role.op]


def _divided(
    accesses: Accesses, access: TileAccess, role: Role, shared: Layout
) -> DistributedLayout:
    """Return which thread of a role copies which element, each once a thread.

    All threads copy a row of a tile together if it has a vector for each, or if each CTA of a
    cluster has a slice of each row.

    Args:
        accesses: of the kernel.
        access: of the tile in the tensor.
        role: what copies it.
        shared: the layout of what a CTA has of it in shared memory.
    """
    warps, ctas = len(role.warps), accesses.kernel.ctas
    has_rows = access.order == (0, 1) and shared.dims[0] == access.shape[0]
    if has_rows and (ctas > 1 or access.shape[1] >= access.vector * warps * WARP_THREADS):
        row = replace(access, shape=(1, access.shape[1]))
        return without_copies(stacked(row.coalesced(warps, ctas), 0, access.shape[0]))
    return without_copies(access.coalesced(warps, ctas))


def _access(accesses: Accesses, copy: Any) -> TileAccess:
    """Return the access of the tensor, in vectors that are neighbours in the ring, too."""
    ring = copy.operands[0]
    shared = shared_layout_in(pipelines.tile_type_of(ring))
    assert shared is not None  # the verifier has seen to it
    found = accesses.of(copy)
    if not found.order:
        return found
    dim = found.order[-1]
    most = gcd(found.vector, found.shape[dim], CHUNK_BYTES[0] // found.element_bytes)
    return replace(found, vector=_widest(shared, dim, most), contiguous=1)


@lru_cache(maxsize=1 << 8)
def _widest(memory: Layout, dim: int, most: int) -> int:
    """Return how many elements along a dimension of a tile are always aligned neighbours.

    Args:
        memory: the layout of the tile, of known sizes.
        dim: the dimension.
        most: the most elements, a power of two that divides the dimension.
    """
    offsets = np.moveaxis(np.asarray(memory.offsets()), dim, -1)
    vector = most
    while vector > 1:
        rows = offsets.reshape(-1, vector)
        if not (rows[:, :1] % vector).any() and (np.diff(rows, axis=1) == 1).all():
            return vector
        vector //= 2
    return 1
