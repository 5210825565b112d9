"""Matrix instructions: fragments of random bits in, fragments out, no layout of our own between.

The registers of a warp are loaded lane by lane, so what an answer says is which element the
hardware takes each register for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recorded.program import Accuracy, Program, kernel

Values = Callable[[np.random.Generator, int], np.ndarray]


def _bits(rng: np.random.Generator, words: int) -> np.ndarray:
    return rng.integers(0, 1 << 32, words, np.uint64).astype(np.uint32)


def _halves(rng: np.random.Generator, words: int) -> np.ndarray:
    return rng.standard_normal(2 * words).astype(np.float16).view(np.uint32)


def _singles(rng: np.random.Generator, words: int) -> np.ndarray:
    return rng.standard_normal(words).astype(np.float32).view(np.uint32)


def _bf16(rng: np.random.Generator, words: int) -> np.ndarray:
    pairs = (rng.standard_normal(2 * words).astype(np.float32).view(np.uint32) >> 16) & 0xFFFF
    return pairs.astype(np.uint16).view(np.uint32)


def _tf32(rng: np.random.Generator, words: int) -> np.ndarray:
    return _singles(rng, words) & np.uint32(0xFFFFE000)


def _fp8(rng: np.random.Generator, words: int) -> np.ndarray:
    """Finite numbers of moderate size in both formats: no exponent of ones."""
    return (rng.integers(0, 256, 4 * words, np.uint8) & np.uint8(0xBF)).view(np.uint32)


def _doubles(rng: np.random.Generator, words: int) -> np.ndarray:
    return rng.standard_normal(words // 2).view(np.uint32)


_INPUT: dict[str, Values] = {
    "f16": _halves, "bf16": _bf16, "tf32": _tf32, "e4m3": _fp8, "e5m2": _fp8,
    "s8": _bits, "u8": _bits, "f64": _doubles,
}  # fmt: skip
_SUM = {
    "f16": (_halves, Accuracy("f2", 2**-9, 2**-8)),
    "f32": (_singles, Accuracy("f4", 2**-18, 2**-17)),
    "s32": (_bits, None),
    "f64": (_doubles, Accuracy("f8", 2**-48, 2**-48)),
}

# Shape, types of D, A, B, C, and the 32-bit registers of A, B and C.
_MMA: list[tuple[str, str, str, str, tuple[int, int, int]]] = [
    ("m16n8k8", "f16", "f16", "f16", (2, 1, 2)),
    ("m16n8k8", "f32", "f16", "f16", (2, 1, 4)),
    ("m16n8k16", "f16", "f16", "f16", (4, 2, 2)),
    ("m16n8k16", "f32", "f16", "f16", (4, 2, 4)),
    ("m16n8k8", "f32", "bf16", "bf16", (2, 1, 4)),
    ("m16n8k16", "f32", "bf16", "bf16", (4, 2, 4)),
    ("m16n8k4", "f32", "tf32", "tf32", (2, 1, 4)),
    ("m16n8k8", "f32", "tf32", "tf32", (4, 2, 4)),
    ("m16n8k16", "s32", "s8", "s8", (2, 1, 4)),
    ("m16n8k32", "s32", "s8", "u8", (4, 2, 4)),
    ("m16n8k32", "s32", "u8", "u8", (4, 2, 4)),
    ("m16n8k32", "f32", "e4m3", "e4m3", (4, 2, 4)),
    ("m16n8k32", "f32", "e5m2", "e4m3", (4, 2, 4)),
]


def _vector(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{k}" for k in range(count)) + "}"


def _loads(prefix: str, count: int, parameter: str) -> str:
    lines = [f"ld.param.u64 %base, [{parameter}];", "mad.wide.u32 %at, %t, 4, %base;"]
    lines += [f"ld.global.b32 %{prefix}{k}, [%at+{128 * k}];" for k in range(count)]
    return "\n".join(lines)


def _mma(
    shape: str, d: str, a: str, b: str, counts: tuple[int, int, int], tail: str = ""
) -> Program:
    na, nb, nc = counts
    opcode = f"mma.sync.aligned.{shape}.row.col{tail}.{d}.{a}.{b}.{d}"
    body = f"""
    .reg .b32 %t, %a<{na}>, %b<{nb}>, %c<{nc}>, %d<{nc}>;
    .reg .b64 %at, %base;
    mov.u32 %t, %tid.x;
    {_loads("a", na, "a")}
    {_loads("b", nb, "b")}
    {_loads("c", nc, "c")}
    {opcode} {_vector("d", nc)}, {_vector("a", na)}, {_vector("b", nb)}, {_vector("c", nc)};
    ld.param.u64 %base, [out];
    mad.wide.u32 %at, %t, 4, %base;
    """ + "\n".join(f"st.global.b32 [%at+{128 * k}], %d{k};" for k in range(nc))
    values, accuracy = _SUM[d]

    def make(rng: np.random.Generator) -> list[Any]:
        return [
            np.zeros(32 * nc, np.uint32),
            _INPUT[a](rng, 32 * na),
            _INPUT[b](rng, 32 * nb),
            values(rng, 32 * nc),
        ]

    return Program(
        f"mma_{shape}_{d}_{a}_{b}{tail.replace('.', '_')}",
        kernel("u64 out, u64 a, u64 b, u64 c", body),
        make,
        accuracy={} if accuracy is None else {0: accuracy},
    )


def _mma_f64() -> Program:
    body = """
    .reg .b32 %t; .reg .b64 %at, %base, %a, %b, %c0, %c1, %d0, %d1;
    mov.u32 %t, %tid.x;
    ld.param.u64 %base, [a]; mad.wide.u32 %at, %t, 8, %base; ld.global.b64 %a, [%at];
    ld.param.u64 %base, [b]; mad.wide.u32 %at, %t, 8, %base; ld.global.b64 %b, [%at];
    ld.param.u64 %base, [c]; mad.wide.u32 %at, %t, 8, %base; ld.global.b64 %c0, [%at];
    ld.global.b64 %c1, [%at+256];
    mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%a}, {%b}, {%c0, %c1};
    ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 8, %base;
    st.global.b64 [%at], %d0; st.global.b64 [%at+256], %d1;
    """

    def make(rng: np.random.Generator) -> list[Any]:
        return [np.zeros(64), *(rng.standard_normal(n) for n in (32, 32, 64))]

    spread = {0: Accuracy("f8", 2**-48, 2**-48)}
    return Program(
        "mma_m8n8k4_f64", kernel("u64 out, u64 a, u64 b, u64 c", body), make, accuracy=spread
    )


def _tile(bytes_: int, threads: int = 32) -> str:
    """Copies the input into shared memory at `tile`, and clears what a kernel leaves alone."""
    lines = [
        ".reg .pred %p; .reg .b32 %t, %s, %x, %y, %r<8>; .reg .b64 %at, %base;",
        "mov.u32 %t, %tid.x; mov.u32 %s, tile; ld.param.u64 %base, [in];",
        "mad.wide.u32 %at, %t, 4, %base; mad.lo.u32 %x, %t, 4, %s;",
    ]
    lines += (
        f"ld.global.b32 %y, [%at+{k}]; st.shared.b32 [%x+{k}], %y;"
        for k in range(0, bytes_, 4 * threads)
    )
    lines.append("bar.sync 0;")
    return "\n".join(lines)


def _ldmatrix(count: int, trans: str) -> Program:
    registers = "{" + ", ".join(f"%r{k}" for k in range(count)) + "}"
    # Rows 80 bytes apart in a scrambled order, so that every address counts.
    body = (
        ".shared .align 128 .b8 tile[4096];\n"
        + _tile(4096)
        + f"""
    xor.b32 %x, %t, 13; mad.lo.u32 %x, %x, 80, %s;
    ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {registers}, [%x];
    ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 4, %base;
    """
        + "\n".join(f"st.global.b32 [%at+{128 * k}], %r{k};" for k in range(count))
    )
    return Program(
        f"ldmatrix_x{count}{trans.replace('.', '_')}",
        kernel("u64 out, u64 in", body),
        lambda rng: [np.zeros(32 * count, np.uint32), _bits(rng, 1024)],
    )


def _stmatrix(count: int, trans: str) -> Program:
    registers = "{" + ", ".join(f"%r{k}" for k in range(count)) + "}"
    body = (
        ".shared .align 128 .b8 tile[4096];\n"
        + _tile(4096)
        + "\n".join(f"ld.global.b32 %r{k}, [%at+{128 * k}];" for k in range(count))
        + f"""
    xor.b32 %x, %t, 21; mad.lo.u32 %x, %x, 48, %s;
    stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%x], {registers};
    bar.sync 0;
    ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 4, %base; mad.lo.u32 %x, %t, 4, %s;
    """
        + "\n".join(
            f"ld.shared.b32 %y, [%x+{k}]; st.global.b32 [%at+{k}], %y;" for k in range(0, 2048, 128)
        )
    )
    return Program(
        f"stmatrix_x{count}{trans.replace('.', '_')}",
        kernel("u64 out, u64 in", body),
        lambda rng: [np.zeros(512, np.uint32), _bits(rng, 1024)],
    )


def _movmatrix() -> Program:
    body = """
    .reg .b32 %t, %a, %d; .reg .b64 %at, %base; mov.u32 %t, %tid.x;
    ld.param.u64 %base, [in]; mad.wide.u32 %at, %t, 4, %base; ld.global.b32 %a, [%at];
    movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;
    ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 4, %base; st.global.b32 [%at], %d;
    """
    return Program(
        "movmatrix",
        kernel("u64 out, u64 in", body),
        lambda rng: [np.zeros(32, np.uint32), _bits(rng, 32)],
    )


def _descriptor(start: str, leading: int, stride: int, swizzle: int) -> str:
    """PTX that makes a matrix descriptor in %desc of an address in %x (PTX ISA, wgmma).

    Offsets in bytes; swizzle 0, 32, 64 or 128.
    """
    mode = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    fixed = (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62
    return (
        f"{start} and.b32 %x, %x, 0x3ffff; shr.u32 %x, %x, 4; cvt.u64.u32 %desc, %x; "
        f"or.b64 %desc, %desc, {fixed:#x};"
    )


def _wgmma(
    name: str, n: int, d: str, a: str, b: str, *,
    k: int, swizzle: int = 128, leading: int = 16, stride: int | None = None,
    trans_a: int = 0, trans_b: int = 0, a_registers: bool = False, steps: int = 1,
    scale_a: int = 1, scale_b: int = 1,
) -> Program:  # fmt: skip
    """One warpgroup multiplies what random bytes in shared memory mean as its operands."""
    stride = 8 * max(swizzle, 16) if stride is None else stride
    results = n // 2 if d != "f16" else n // 4
    size = 32768
    d_list = ", ".join(f"%d{i}" for i in range(results))
    float_in = a in ("f16", "bf16")
    signs = "" if d == "s32" else f", {scale_a}, {scale_b}"
    if float_in:
        signs += f", {trans_a}, {trans_b}" if not a_registers else f", {trans_b}"
    body = [
        f".reg .pred %p, %true; .reg .b32 %t, %s, %x, %y, %a<4>, %d<{results}>;",
        ".reg .b64 %at, %base, %desc, %da, %db; mov.u32 %t, %tid.x; mov.u32 %s, tile;",
        "ld.param.u64 %base, [in]; mad.wide.u32 %at, %t, 16, %base; mad.lo.u32 %x, %t, 16, %s;",
    ]
    body += (
        f"ld.global.v4.b32 {{%a0, %a1, %a2, %a3}}, [%at+{at}]; "
        f"st.shared.v4.b32 [%x+{at}], {{%a0, %a1, %a2, %a3}};"
        for at in range(0, size, 2048)
    )
    body += [
        "ld.param.u64 %base, [c]; mad.wide.u32 %at, %t, 4, %base;",
        *(f"ld.global.b32 %d{i}, [%at+{512 * i}];" for i in range(results)),
        "ld.param.u64 %base, [in]; mad.wide.u32 %at, %t, 16, %base;",
        "ld.global.v4.b32 {%a0, %a1, %a2, %a3}, [%at+64];",
        "fence.proxy.async.shared::cta; bar.sync 0; setp.eq.u32 %true, 0, 0;",
        "wgmma.fence.sync.aligned;",
    ]
    for step in range(steps):
        moved = step * 32
        body.append(_descriptor(f"add.u32 %x, %s, {moved};", leading, stride, swizzle))
        body.append("mov.b64 %da, %desc;")
        body.append(_descriptor(f"add.u32 %x, %s, {16384 + moved};", leading, stride, swizzle))
        body.append("mov.b64 %db, %desc;")
        source = "{%a0, %a1, %a2, %a3}" if a_registers else "%da"
        body.append(
            f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{d}.{a}.{b} "
            f"{{{d_list}}}, {source}, %db, %true{signs};"
        )
    body += [
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        "ld.param.u64 %base, [out]; mad.wide.u32 %at, %t, 4, %base;",
        *(f"st.global.b32 [%at+{512 * i}], %d{i};" for i in range(results)),
    ]
    values, accuracy = _SUM[d]
    if a in ("e4m3", "e5m2"):
        accuracy = None

    def make(rng: np.random.Generator) -> list[Any]:
        return [
            np.zeros(128 * results, np.uint32),
            _INPUT[a](rng, size // 4),
            values(rng, 128 * results),
        ]

    return Program(
        f"wgmma_{name}",
        kernel(
            "u64 out, u64 in, u64 c", "\n".join(body),
            before=f".shared .align 1024 .b8 tile[{size}];",
        ),
        make,
        block=(128, 1, 1),
        accuracy={} if accuracy is None else {0: accuracy},
    )  # fmt: skip


PROGRAMS: tuple[Program, ...] = (
    *(_mma(*row) for row in _MMA),
    _mma("m16n8k32", "s32", "s8", "s8", (4, 2, 4), ".satfinite"),
    _mma_f64(),
    *(_ldmatrix(n, trans) for n in (1, 2, 4) for trans in ("", ".trans")),
    *(_stmatrix(n, trans) for n in (1, 2, 4) for trans in ("", ".trans")),
    _movmatrix(),
    _wgmma("f16_sw128", 64, "f32", "f16", "f16", k=16),
    _wgmma("f16_sw128_steps", 32, "f32", "f16", "f16", k=16, steps=4),
    _wgmma("f16_sw64", 32, "f32", "f16", "f16", k=16, swizzle=64),
    _wgmma("f16_sw32", 32, "f32", "f16", "f16", k=16, swizzle=32),
    _wgmma("f16_plain", 32, "f32", "f16", "f16", k=16, swizzle=0, leading=1024, stride=128),
    _wgmma("f16_half_sum", 16, "f16", "f16", "f16", k=16),
    _wgmma("bf16", 8, "f32", "bf16", "bf16", k=16),
    _wgmma("f16_n256", 256, "f32", "f16", "f16", k=16, stride=256),
    _wgmma("f16_negated", 24, "f32", "f16", "f16", k=16, scale_a=-1, scale_b=1),
    _wgmma("f16_trans_a", 32, "f32", "f16", "f16", k=16, trans_a=1, leading=2048, stride=1024),
    _wgmma("f16_trans_b", 128, "f32", "f16", "f16", k=16, trans_b=1, leading=2048, stride=1024),
    _wgmma("f16_trans_sw64", 64, "f32", "f16", "f16", k=16, swizzle=64, trans_a=1, trans_b=1,
           leading=1024, stride=512),
    _wgmma("f16_trans_sw32", 64, "f32", "f16", "f16", k=16, swizzle=32, trans_a=1, trans_b=1,
           leading=512, stride=256),
    _wgmma("f16_trans_plain", 32, "f32", "f16", "f16", k=16, swizzle=0, trans_a=1, trans_b=1,
           leading=1024, stride=128),
    _wgmma("f16_a_registers", 64, "f32", "f16", "f16", k=16, a_registers=True),
    _wgmma("tf32", 32, "f32", "tf32", "tf32", k=8),
    _wgmma("e4m3", 32, "f32", "e4m3", "e4m3", k=32),
    _wgmma("e5m2_e4m3", 16, "f32", "e5m2", "e4m3", k=32),
    _wgmma("s8", 32, "s32", "s8", "s8", k=32),
    _wgmma("u8_registers", 16, "s32", "u8", "s8", k=32, a_registers=True),
)  # fmt: skip
