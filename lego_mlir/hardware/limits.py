"""Sizes and limits that all GPUs of the supported targets share.

What differs from one architecture to another is in `targets`, what differs from one card to
another in `specs`.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; PTX ISA,
in the sections that a constant names.
"""

from __future__ import annotations

# ---------------------------------------------------------------------------- threads
WARP_THREADS = 32

WARPGROUP_WARPS = 4
"""Warps of a warpgroup (PTX ISA 9.7.15.1)."""

WARPGROUP_THREADS = WARPGROUP_WARPS * WARP_THREADS

MAX_CTA_THREADS = 1024
"""Threads of a CTA."""

MAX_CTA_DIMS = (1024, 1024, 64)
"""Threads of a CTA along x, y and z."""

MAX_GRID_DIMS = (2**31 - 1, 65535, 65535)
"""CTAs of a grid along x, y and z."""

PORTABLE_CLUSTER_CTAS = 8
MAX_CLUSTER_CTAS = 16
"""CTAs of a cluster: 8 on every GPU, 16 if the kernel asks for a size that is not portable."""

MAX_NAMED_BARRIERS = 16
"""Named barriers of a CTA (PTX ISA 9.7.13.1, "barrier")."""

# -------------------------------------------------------------------------- registers
MAX_SM_THREADS = 2048
"""Threads that a multiprocessor holds at once, of any target."""

MAX_SM_CTAS = 32
"""CTAs that a multiprocessor holds at once (CUDA C++ Programming Guide, "Compute Capabilities")."""

HOPPER_SMS = 132
"""Multiprocessors of an H100 SXM, and of an H200."""

SM_REGISTERS = 65536
"""32-bit registers of a multiprocessor, all of which one CTA may have."""

MAX_THREAD_REGISTERS = 255

# ------------------------------------------------------------------------------ memory
KIB = 1024

STATIC_SHARED_BYTES = 48 * KIB
"""Shared memory that a kernel may declare statically, and may have without opting in to more."""

MAX_SHARED_BYTES = 227 * KIB
"""Shared memory of a CTA on the targets that have most of it; see `Target.optin_shared_bytes`."""

RESERVED_SHARED_BYTES = 1024
"""Shared memory that the system takes for itself in each CTA, from sm_80 on."""

BANKS = 32
BANK_BYTES = 4
"""Shared memory has 32 banks, each of which gives one 4-byte word in a clock."""

BANK_LINE_BYTES = BANKS * BANK_BYTES
"""Bytes that all banks give in a clock."""

SECTOR_BYTES = 32
"""What device memory and the caches transfer at least."""

HALF_LINE_BYTES = 64
"""What device memory is read in: halves of a cache line. Writes are of sectors."""

CACHE_LINE_BYTES = 128

MAX_ACCESS_BYTES = 16
"""Bytes of the widest load or store of a thread."""

ALLOCATION_ALIGNMENT = 256
"""Bytes that the address of an allocation of device memory is a multiple of (CUDA C++ Programming
Guide, "Device Memory Accesses")."""

# ---------------------------------------------------------------------- kernel arguments
MAX_PARAMETER_BYTES = 32764
"""Bytes of all parameters of a kernel (PTX ISA 4.4.2, from sm_70 on)."""

TENSOR_MAP_BYTES = 128
TENSOR_MAP_ALIGNMENT = 64
"""Size and alignment of a CUtensorMap (CUDA driver API, cuTensorMapEncodeTiled)."""

MAX_BOX_SIZE = 256
"""Elements of a TMA box along one dimension (ibid.)."""

LEAST_ASYNC_BYTES = 4
"""Bytes of the narrowest asynchronous copy (PTX ISA, cp.async)."""

L2_PROMOTIONS = (0, 64, 128, 256)
"""Bytes that a TMA load brings into the L2 cache at least; 0 for those that it reads (ibid.)."""

# -------------------------------------------------------------- tensor core instructions
MMA_ROWS, MMA_COLUMNS, MMA_K_BYTES = 16, 8, 32
"""Rows, columns and bytes of k that one `mma.sync` multiplies (PTX ISA, "mma")."""

WGMMA_ROWS, WGMMA_K_BYTES = 64, 32
"""Rows and bytes of k that one `wgmma` multiplies (PTX ISA 9.7.15.2)."""

WGMMA_COLUMNS = range(8, 257, 8)
"""Columns of a `wgmma` of floats (PTX ISA 9.7.15.2)."""

WGMMA_INTEGER_COLUMNS = (8, 16, 24, *range(32, 257, 16))
"""Columns of a `wgmma` of integers (ibid.)."""
