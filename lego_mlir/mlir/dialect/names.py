"""The names of the dialect's operations and attributes."""

from __future__ import annotations

from lego_mlir.mlir.dialect.tile_operations import (
    BROADCAST,
    CONVERT,
    DOT,
    EXTRACT_PART,
    EXTRACT_SLICE,
    FILL,
    FULL,
    GATHER,
    IN_RANGE,
    IOTA,
    ITEM,
    JOIN,
    LOAD_MATRICES,
    LOAD_PARTS,
    REDUCE,
    REDUCE_WITH,
    RESHAPE,
    RESTRICT,
    SCAN,
    SCAN_WITH,
    SCATTER,
    SEND_PARTS,
    SORT_WITH,
    SPLIT,
    STORE_MATRICES,
    STORE_PARTS,
    TAKE,
    TRANSPOSE,
    VOTE,
)

PREFIX = "lego."

# Operations on indices.
APPLY = "lego.apply"
INV = "lego.inv"
MASK = "lego.mask"
SIZE = "lego.size"
DIM = "lego.dim"
TABLE = "lego.table"
CHECK = "lego.check"
# Operations on memory.
ALLOC = "lego.alloc"
LOAD = "lego.load"
STORE = "lego.store"
ATOMIC = "lego.atomic"
PICK = "lego.pick"
# Operations that a schedule makes.
TENSOR_MAP = "lego.tensor_map"
TENSOR_MAPS = "lego.tensor_maps"

# Operations on tiles, and what they become in each thread.
TILE_OPERATIONS = (
    GATHER,
    SCATTER,
    FULL,
    ITEM,
    VOTE,
    IOTA,
    IN_RANGE,
    RESTRICT,
    FILL,
    BROADCAST,
    RESHAPE,
    TRANSPOSE,
    JOIN,
    SPLIT,
    CONVERT,
    EXTRACT_PART,
    EXTRACT_SLICE,
    REDUCE,
    REDUCE_WITH,
    SCAN,
    SCAN_WITH,
    SORT_WITH,
    DOT,
    TAKE,
)
PARTS_OPERATIONS = (LOAD_PARTS, STORE_PARTS, SEND_PARTS, LOAD_MATRICES, STORE_MATRICES)

TENSOR_MAP_OPERATIONS = (TENSOR_MAP, TENSOR_MAPS)

# Attributes of a module or a host function.
SIZES = "lego.sizes"
"""A module's dictionary from symbols of its layouts to their values."""
SCHEDULE = "lego.schedule"
"""The name of the schedule that a module is compiled with, or, on a gpu.launch, that launch."""
REFERENCE = "lego.reference"
"""The name of the NumPy function that `--run` compares a module's results with."""
IN_PLACE = "lego.in_place"
"""A unit attribute: the buffers of a host function may overlap."""
FACTS = "lego.facts"
"""Conditions on a host function's arguments that each launch checks."""
INDEX_BITWIDTH = "lego.index_bitwidth"
"""32 or 64: the bits that hold every index of a lowered module's kernels."""
EXACT_MATH = "lego.exact_math"
"""A unit attribute of a module: f32 quotients and roots are rounded to nearest, as IEEE 754 has it,
and other functions of mathematics have errors of a few units in the last place."""

# Attributes of a host function's arguments.
ARGUMENT_LAYOUT = "lego.layout"
ARGUMENT_NAME = "lego.name"
ALIGNMENT = "lego.alignment"
"""Bytes, a power of two: the alignment of an argument's address, or of an alloc's buffer."""
ELEMENTS = "lego.elements"
"""An exclusive upper bound of the offsets in an argument's buffer, in elements."""
STRIDE_DIVISORS = "lego.stride_divisors"
"""For each dimension of an argument's buffer a number that divides its stride."""
COMPUTED = "lego.computed"
"""On an argument that the compiler added: the expression by which the launch computes it."""

# Attributes of a gpu.alloc in a host function, which is a workspace of the launches. It may have
# `ARGUMENT_NAME` and `ALIGNMENT`, too.
ZEROED = "lego.zeroed"
"""A unit attribute: the buffer holds zeros when the first kernel begins, and after the last one."""

# Attributes of a gpu.launch.
PARAMS = "lego.params"
"""A dictionary of the parameters of the launch's own schedule, which `SCHEDULE` names there."""
CLUSTER = "lego.cluster"
"""The number of CTAs along x that make a cluster."""
ORDERS = "ordered"
"""A unit attribute of a lego.atomic in a kernel on tiles: it orders what the CTA accesses."""
REASSOCIATED = "lego.reassociated"
"""On a kernel: sums are rounded in another order than the program's."""
CTAS_PER_SM = "lego.ctas_per_sm"
"""The number of CTAs for which a multiprocessor is to have registers."""
EXTENDED_LATE = "lego.extended_late"
"""A unit attribute of an arith.extf in a loop: what was loaded before stays short between its
iterations."""
CONTRACT = "lego.contract"
"""A unit attribute: products may be added before they are rounded."""
EVICTION = "lego.eviction"
"""The cache eviction priority of the launch's loads: `evict_last` or `evict_first`."""
PREFETCH = "lego.prefetch"
"""The bytes that the launch's loads bring into the L2 cache: 64, 128 or 256."""
OWN_PROGRAMS = "lego.own_programs"
"""A unit attribute of a launch in clusters, of a kernel on tiles: each CTA runs a program of its
own, instead of all CTAs of a cluster together."""
TILE_WARPS = "lego.tile_warps"
"""The number of warps that hold the tiles of a kernel with roles: those from 0 on."""
MIN_SHARED_BYTES = "lego.min_shared_bytes"
"""The least shared memory of a CTA, in bytes: it limits the CTAs of a multiprocessor."""
GUARDED = "lego.guarded"
"""A unit attribute of a buffer in shared memory: mbarriers order its accesses, and it has its bytes
for itself."""
ORDERED = "lego.ordered"
"""A unit attribute of a buffer in shared memory: barriers that are there order its accesses among
one another."""
ONE_THREAD = "lego.one_thread"
"""A unit attribute of a lego.role: one thread of its first warp executes it."""
FILLED = "lego.filled"
"""A unit attribute: invalid elements of tiles hold what the operations need that ignore them. Only
bounds of accesses, and each lego.restrict right before one, still say what is valid."""
PDL = "lego.pdl"
"""A unit attribute: the kernel itself waits for the work before it, so its launch need not; or the
CTAs of a launch up to which this holds."""

# Attributes of other dialects' operations.
TEAM = "lego.team"
"""A unit attribute of the operation that computes the number of a team, in a role with teams."""
TEAM_BYTES = "lego.team_bytes"
"""An attribute of a memref.view: the distance from the part of one team to that of the next one."""
BOUNDS = "lego.bounds"
"""For each result, an index, an exclusive upper bound, or 0 where none is known. On a scf.for the
bounds hold for the values that it carries, too. On an argument: for each size of its buffer."""
LEAST = "lego.least"
"""On an argument: for each size of its buffer the least value, or 0 where none is known."""
CLAIM = "lego.claim"
"""A range that the program claims for an operand or a result: `mlir.lowering.indices.claims`."""
DIVERGENT = "lego.divergent"
"""A unit attribute of an scf.if: its condition differs between threads."""
ORDERED_BY_USER = "lego.own"
"""A unit attribute of an llvm atomic whose ordering and scope the user wrote."""

# Attributes of the dialect's own operations.
LAYOUT = "layout"
SLICE = "slice"
"""The whole dimensions of a load or store of a tile, in ascending order."""
OTHER = "other"
"""The value that a load returns where there is no element."""
EXCLUSIVE = "exclusive"
"""A unit attribute of a store: no two threads update the same element."""
STREAMED = "streamed"
"""A unit attribute of a load from global memory: the elements are read once."""
KIND = "kind"
VALUES = "values"
BIJECTIVE = "bijective"
INJECTIVE = "injective"
