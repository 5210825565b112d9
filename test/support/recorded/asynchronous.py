"""Copies that run beside the threads: cp.async, bulk copies, TMA, clusters and their barriers."""

from __future__ import annotations

from typing import Any

import numpy as np

from recorded.program import Program, TensorMap, kernel

_SHARED = 16384
_REGISTERS = """
.reg .pred %p, %q; .reg .b32 %t, %s, %bar, %x, %y, %z, %rank, %c<5>;
.reg .b64 %at, %base, %in, %out, %state, %map, %wide;
mov.u32 %t, %tid.x; mov.u32 %s, tile; mov.u32 %bar, barrier;
ld.param.u64 %out, [out]; ld.param.u64 %in, [in];
"""
_VARIABLES = f".shared .align 1024 .b8 tile[{_SHARED}];\n.shared .align 8 .b64 barrier[4];"
_WAIT = """
wait_{n}: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], {parity};
@!%p bra wait_{n};
"""


def _wait(n: int, parity: int = 0) -> str:
    return _WAIT.format(n=n, parity=parity)


def _fill(words: int, threads: int = 32, value: str = "0x5a5a5a5a") -> str:
    """Shared memory with a known word everywhere, so that what a copy leaves alone is known."""
    lines = [f"mad.lo.u32 %x, %t, 4, %s; mov.b32 %y, {value};"]
    lines += [f"st.shared.b32 [%x+{at}], %y;" for at in range(0, 4 * words, 4 * threads)]
    return "\n".join(lines) + "\nfence.proxy.async.shared::cta; bar.sync 0;"


def _dump(words: int, threads: int = 32) -> str:
    lines = ["bar.sync 0; mad.wide.u32 %at, %t, 4, %out; mad.lo.u32 %x, %t, 4, %s;"]
    lines += (
        f"ld.shared.b32 %y, [%x+{at}]; st.global.b32 [%at+{at}], %y;"
        for at in range(0, 4 * words, 4 * threads)
    )
    return "\n".join(lines)


_INIT = """
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared::cta.b64 [%bar], 1;
fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta; bar.sync 0;
"""


def _words(outputs: int, inputs: int):  # type: ignore[no-untyped-def]
    def make(rng: np.random.Generator) -> list[Any]:
        data = rng.integers(0, 1 << 32, inputs, np.uint64).astype(np.uint32)
        return [np.zeros(outputs, np.uint32), data]

    return make


def _cp_async() -> Program:
    body = (
        _REGISTERS
        + _fill(512)
        + """
    mad.wide.u32 %at, %t, 16, %in; mad.lo.u32 %x, %t, 16, %s;
    cp.async.cg.shared.global [%x], [%at], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%x+512], [%at+512], 8;
    cp.async.ca.shared.global [%x+524], [%at+524], 4;
    cp.async.commit_group;
    and.b32 %z, %t, 15; cp.async.cg.shared.global [%x+1024], [%at+1024], 16, %z;
    and.b32 %z, %t, 7; cp.async.ca.shared.global [%x+1536], [%at+1536], 8, %z;
    cp.async.wait_group 0; cp.async.wait_all;
    """
        + _dump(512)
    )
    return Program("cp_async", kernel("u64 out, u64 in", body, _VARIABLES), _words(512, 512))


def _bulk() -> Program:
    body = (
        _REGISTERS
        + _fill(1024)
        + _INIT
        + """
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 1552;
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [%s+16], [%in+32], 1040, [%bar];
    @%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [%s+2048], [%in], 512, [%bar];
    """
        + _wait(0)
        + """
    bar.sync 0;
    @%q cp.async.bulk.global.shared::cta.bulk_group [%out], [%s], 2048;
    @%q cp.async.bulk.global.shared::cta.bulk_group [%out+2048], [%s+2048], 1024;
    @%q cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out+4096], [%s+2048], 512;
    @%q cp.async.bulk.commit_group; @%q cp.async.bulk.wait_group 0;
    """
    )
    return Program("bulk_copy", kernel("u64 out, u64 in", body, _VARIABLES), _words(1280, 512))


def _array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return rng.integers(-8, 9, shape).astype(kind)
    return rng.integers(0, np.iinfo(kind).max, shape, np.uint64).astype(kind)


def _coordinates(at: tuple[int, ...]) -> str:
    return "{" + ", ".join(str(c) for c in at) + "}"


def _tensor_map(
    rank_shape: tuple[int, ...], dtype: str, box: tuple[int, ...], swizzle: int
) -> TensorMap:
    dims = rank_shape[::-1]
    size = np.dtype(dtype).itemsize
    strides, step = [], size
    for n in dims[:-1]:
        step *= n
        strides.append(step)
    return TensorMap(1, dtype, dims, tuple(strides), box, swizzle)


def _tma_load(name: str, shape: tuple[int, ...], dtype: str, box: tuple[int, ...],
              at: tuple[int, ...], swizzle: int = 0) -> Program:  # fmt: skip
    """A box of a tensor, `at` and `box` fastest dimension first, into shared memory."""
    bytes_ = int(np.prod(box)) * np.dtype(dtype).itemsize
    words = -(-bytes_ // 128) * 32 + 32
    body = (
        _REGISTERS.replace(
            "ld.param.u64 %in, [in];", "mov.b64 %map, map; cvta.param.u64 %map, %map;"
        )
        + _fill(words)
        + _INIT
        + f"""
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], {bytes_};
    @%q cp.async.bulk.tensor.{len(box)}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%s], [%map, {_coordinates(at)}], [%bar];
    """
        + _wait(0)
        + _dump(words)
    )

    def make(rng: np.random.Generator) -> list[Any]:
        tensor = _array(rng, shape, dtype)
        return [np.zeros(words, np.uint32), tensor, _tensor_map(shape, dtype, box, swizzle)]

    return Program(
        f"tma_load_{name}",
        kernel("u64 out, u64 in, align 64 .b8 map[128]", body, _VARIABLES),
        make,
    )


def _tma_store(name: str, shape: tuple[int, ...], dtype: str, box: tuple[int, ...],
               at: tuple[int, ...], swizzle: int = 0, reduce: str = "") -> Program:  # fmt: skip
    """Shared memory into a box of a tensor, or combined with what is there."""
    size = np.dtype(dtype).itemsize
    words = int(np.prod(box)) * size // 4
    opcode = f"cp.reduce.async.bulk.tensor.{len(box)}d.global.shared::cta.{reduce}.tile.bulk_group"
    if not reduce:
        opcode = f"cp.async.bulk.tensor.{len(box)}d.global.shared::cta.tile.bulk_group"
    copies = "\n".join(
        f"ld.global.b32 %y, [%at+{k}]; st.shared.b32 [%x+{k}], %y;"
        for k in range(0, 4 * words, 128)
    )
    body = (
        _REGISTERS
        + f"""mov.b64 %map, map; cvta.param.u64 %map, %map; setp.eq.u32 %q, %t, 0;
    mad.wide.u32 %at, %t, 4, %out; mad.lo.u32 %x, %t, 4, %s;
    {copies}
    fence.proxy.async.shared::cta; bar.sync 0;
    @%q {opcode} [%map, {_coordinates(at)}], [%s];
    @%q cp.async.bulk.commit_group; @%q cp.async.bulk.wait_group 0;
    """
    )

    def make(rng: np.random.Generator) -> list[Any]:
        source = _array(rng, (4 * words // size,), dtype).view(np.uint32)
        return [source, _array(rng, shape, dtype), _tensor_map(shape, dtype, box, swizzle)]

    return Program(
        f"tma_store_{name}",
        kernel("u64 out, u64 in, align 64 .b8 map[128]", body, _VARIABLES),
        make,
        outputs=(1,),
    )


_CLUSTER = ".explicitcluster .reqnctapercluster 4, 1, 1"


def _distributed() -> Program:
    body = (
        _REGISTERS
        + """
    mov.u32 %rank, %cluster_ctarank; mad.lo.u32 %x, %t, 4, %s; mad.lo.u32 %y, %rank, 1000, %t;
    st.shared.b32 [%x], %y; mov.b32 %z, 0; st.shared.b32 [%x+512], %z;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    add.u32 %c0, %rank, 1; and.b32 %c0, %c0, 3; mapa.shared::cluster.u32 %c1, %x, %c0;
    ld.shared::cluster.b32 %y, [%c1];
    xor.b32 %c2, %rank, 2; mapa.shared::cluster.u32 %c3, %s, %c2;
    mad.lo.u32 %c4, %rank, 4, %c3; atom.shared::cluster.add.u32 %z, [%c4+512], %t;
    mapa.u64 %wide, %wide, %c0; getctarank.shared::cluster.u32 %z, %c1;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    ld.shared.b32 %c4, [%x+512]; mov.u32 %x, %ctaid.x; mad.lo.u32 %x, %x, 128, 0;
    mad.lo.u32 %x, %t, 1, %x; mad.wide.u32 %at, %x, 4, %out;
    st.global.b32 [%at], %y; st.global.b32 [%at+128], %c4; st.global.b32 [%at+256], %z;
    mov.u32 %x, %clusterid.x; st.global.b32 [%at+384], %x;
    barrier.cluster.arrive; barrier.cluster.wait;
    """.replace("mapa.u64 %wide, %wide, %c0; ", "")
    )
    return Program(
        "distributed_shared_memory",
        kernel("u64 out, u64 in", body, _VARIABLES, _CLUSTER),
        _words(8 * 128, 32),
        grid=(8, 1, 1),
        cluster=(4, 1, 1),
    )


def _multicast() -> Program:
    """Two of four blocks fetch a box each for the blocks of a mask, and all wait for both."""
    body = (
        _REGISTERS.replace(
            "ld.param.u64 %in, [in];", "mov.b64 %map, map; cvta.param.u64 %map, %map;"
        )
        + ".reg .b16 %mask; mov.u32 %rank, %cluster_ctarank;"
        + _fill(512)
        + _INIT
        + """
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    shr.u32 %x, %rank, 1; setp.eq.u32 %p, %x, 0; selp.b32 %z, 2048, 1024, %p;
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], %z;
    setp.eq.and.u32 %p, %rank, 0, %q; mov.b16 %mask, 15;
    @%p
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
      [%s], [%map, {0, 0}], [%bar], %mask;
    setp.eq.and.u32 %p, %rank, 2, %q; mov.b16 %mask, 3;
    @%p
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
      [%s+1024], [%map, {32, 8}], [%bar], %mask;
    """
        + _wait(0)
        + """
    bar.sync 0; mul.lo.u32 %x, %rank, 512; add.u32 %x, %x, %t; mad.wide.u32 %at, %x, 4, %out;
    mad.lo.u32 %x, %t, 4, %s;
    """
        + "\n".join(
            f"ld.shared.b32 %y, [%x+{k}]; st.global.b32 [%at+{k}], %y;" for k in range(0, 2048, 128)
        )
        + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    )

    def make(rng: np.random.Generator) -> list[Any]:
        tensor = _array(rng, (16, 64), "u4")
        return [np.zeros(4 * 512, np.uint32), tensor, _tensor_map((16, 64), "u4", (32, 8), 128)]

    return Program(
        "tma_multicast",
        kernel("u64 out, u64 in, align 64 .b8 map[128]", body, _VARIABLES, _CLUSTER),
        make,
        grid=(4, 1, 1),
        cluster=(4, 1, 1),
    )


def _mbarriers() -> Program:
    """Phases by thread counts, parities, remote arrivals, and what test_wait says in between."""
    body = (
        _REGISTERS
        + """
    mov.u32 %rank, %cluster_ctarank; setp.eq.u32 %q, %t, 0;
    @%q mbarrier.init.shared::cta.b64 [%bar], 33; @%q mbarrier.init.shared::cta.b64 [%bar+8], 4;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    mbarrier.arrive.shared::cta.b64 %state, [%bar];
    mbarrier.pending_count.b64 %c0, %state;
    bar.sync 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 0; selp.b32 %c1, 1, 0, %p;
    bar.sync 0;
    @%q mbarrier.arrive.shared::cta.b64 _, [%bar], 1;
    """
        + _wait(0)
        + """
    mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 1; selp.b32 %c2, 1, 0, %p;
    mapa.shared::cluster.u32 %x, %bar, 0;
    @%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%x+8];
    setp.ne.u32 %p, %rank, 0; @%p bra past; add.u32 %bar, %bar, 8;
    """
        + _wait(1)
        + """
    past: mul.lo.u32 %x, %rank, 32; add.u32 %x, %x, %t; mad.wide.u32 %at, %x, 4, %out;
    shl.b32 %c1, %c1, 8; add.u32 %c2, %c2, %c1; setp.eq.u32 %p, %t, 40; st.global.b32 [%at], %c2;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    """
    )
    return Program(
        "mbarrier_phases",
        kernel("u64 out, u64 in", body, _VARIABLES, _CLUSTER),
        _words(128, 32),
        grid=(4, 1, 1),
        cluster=(4, 1, 1),
    )


def _st_async() -> Program:
    body = _REGISTERS + _fill(128) + _INIT + """
    mov.u32 %rank, %cluster_ctarank;
    @%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%bar], 384;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    add.u32 %c0, %rank, 3; and.b32 %c0, %c0, 3; mad.lo.u32 %x, %t, 8, %s;
    mapa.shared::cluster.u32 %c1, %x, %c0; mapa.shared::cluster.u32 %c2, %bar, %c0;
    mad.lo.u32 %y, %rank, 100, %t;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%c1], {%y, %rank}, [%c2];
    mapa.shared::cluster.u32 %c1, %s, %c0;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32
      [%c1+256], %t, [%c2];
    """ + _wait(0) + """
    mul.lo.u32 %z, %rank, 128; add.u32 %z, %z, %t; mad.wide.u32 %out, %z, 4, %out;
    mov.b32 %t, %t; bar.sync 0; mad.lo.u32 %x, %t, 4, %s;
    """ + "\n".join(
        f"ld.shared.b32 %y, [%x+{k}]; st.global.b32 [%out+{k}], %y;" for k in range(0, 512, 128)
    ) + "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"  # fmt: skip
    return Program(
        "st_async",
        kernel("u64 out, u64 in", body, _VARIABLES, _CLUSTER),
        _words(4 * 128, 32),
        grid=(4, 1, 1),
        cluster=(4, 1, 1),
    )


PROGRAMS: tuple[Program, ...] = (
    _cp_async(),
    _bulk(),
    _tma_load("1d", (100,), "u4", (64,), (60,)),
    _tma_load("2d", (20, 32), "u4", (16, 8), (8, 4)),
    _tma_load("2d_outside", (20, 32), "u4", (16, 8), (-4, 15)),
    _tma_load("2d_half", (20, 64), "f2", (64, 8), (0, 3)),
    _tma_load("sw128", (32, 64), "f2", (64, 16), (0, 5), 128),
    _tma_load("sw128_outside", (32, 64), "f2", (64, 16), (24, 20), 128),
    _tma_load("sw64", (32, 64), "f2", (32, 16), (8, 5), 64),
    _tma_load("sw32", (32, 64), "f2", (16, 32), (8, 0), 32),
    _tma_load("sw128_bytes", (64, 256), "u1", (128, 32), (64, 8), 128),
    _tma_load("3d", (5, 6, 32), "u4", (8, 4, 3), (12, 1, 1)),
    _tma_load("4d", (3, 5, 6, 16), "u4", (8, 3, 2, 2), (4, 2, -1, 1)),
    _tma_load("5d", (2, 3, 4, 5, 16), "u2", (8, 2, 2, 2, 2), (8, 1, 3, 2, 0)),
    _tma_store("2d", (20, 32), "u4", (16, 8), (8, 4)),
    _tma_store("2d_outside", (20, 32), "u4", (16, 8), (24, 15)),
    _tma_store("sw128", (32, 64), "f2", (64, 16), (0, 5), 128),
    _tma_store("sw64", (32, 64), "f2", (32, 16), (8, 5), 64),
    _tma_store("sw32", (32, 64), "f2", (16, 32), (8, 0), 32),
    _tma_store("3d", (5, 6, 32), "u4", (8, 4, 3), (12, 1, 3)),
    _tma_store("add_half", (32, 64), "f2", (64, 16), (0, 5), 128, "add"),
    _tma_store("add_outside", (20, 32), "u4", (16, 8), (24, 15), 0, "add"),
    _tma_store("max", (20, 32), "u4", (16, 8), (8, 4), 0, "max"),
    _tma_store("xor", (20, 32), "u4", (16, 8), (8, 4), 0, "xor"),
    _distributed(),
    _multicast(),
    _mbarriers(),
    _st_async(),
)  # fmt: skip
