"""The Triton kernels of docs/examples with indices by hand."""

# The parameters that Triton compiles for are in capitals, as everywhere in Triton. No others have a
# type, which Triton would look up.
# ruff: noqa: N803, N806

import triton
import triton.language as tl


@triton.jit
def matmul(
    a,
    b,
    c,
    M,
    N,
    K,
    a_row,
    a_column,
    b_row,
    b_column,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GM: tl.constexpr,
):
    """C = A B of sizes that tiles divide; each operand has strides."""
    program = tl.program_id(0)
    columns = N // BN
    group = program // (GM * columns)
    rest = program % (GM * columns)
    i = group * GM + rest % GM
    j = rest // GM
    rows_a = i * BM + tl.arange(0, BM)
    columns_b = j * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    at_a = a + rows_a[:, None] * a_row + depth[None, :] * a_column
    at_b = b + depth[:, None] * b_row + columns_b[None, :] * b_column
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(K // BK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += BK * a_column
        at_b += BK * b_row
    tl.store(c + rows_a[:, None] * N + columns_b[None, :], total)


@triton.jit
def grouped_gemm(
    pointers,
    sizes,
    groups,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Several GEMMs of f16, whose tiles a fixed number of programs takes one after another."""
    tile = tl.program_id(0)
    first = 0
    for g in range(groups):
        M = tl.load(sizes + 3 * g)
        N = tl.load(sizes + 3 * g + 1)
        K = tl.load(sizes + 3 * g + 2)
        a = tl.load(pointers + 3 * g).to(tl.pointer_type(tl.float16))
        b = tl.load(pointers + 3 * g + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(pointers + 3 * g + 2).to(tl.pointer_type(tl.float16))
        tiles = (M // BM) * (N // BN)
        while (tile >= first) & (tile < first + tiles):
            i = (tile - first) // (N // BN)
            j = (tile - first) % (N // BN)
            rows = i * BM + tl.arange(0, BM)
            columns = j * BN + tl.arange(0, BN)
            depth = tl.arange(0, BK)
            at_a = a + rows[:, None] * K + depth[None, :]
            at_b = b + depth[:, None] * N + columns[None, :]
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for _ in range(K // BK):
                total = tl.dot(tl.load(at_a), tl.load(at_b), total)
                at_a += BK
                at_b += BK * N
            tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))
            tile += tl.num_programs(0)
        first += tiles


@triton.jit
def softmax(x, y, M, N, WIDTH: tl.constexpr):
    """The softmax of a row, padded to WIDTH."""
    at = tl.program_id(0) * N + tl.arange(0, WIDTH)
    mask = tl.arange(0, WIDTH) < N
    row = tl.load(x + at, mask=mask, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + at, e / tl.sum(e, axis=0), mask=mask)


@triton.jit
def layernorm_forward(
    x,
    w,
    b,
    y,
    mean,
    rstd,
    M,
    N,
    eps,
    WIDTH: tl.constexpr,
):
    """LayerNorm of a row, padded to WIDTH."""
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    mask = column < N
    values = tl.load(x + row * N + column, mask=mask, other=0.0)
    average = tl.sum(values, axis=0) / N
    centered = tl.where(mask, values - average, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centered * centered, axis=0) / N + eps)
    weights = tl.load(w + column, mask=mask)
    bias = tl.load(b + column, mask=mask)
    tl.store(y + row * N + column, centered * scale * weights + bias, mask=mask)
    tl.store(mean + row, average)
    tl.store(rstd + row, scale)


@triton.jit
def layernorm_backward_x(
    x,
    w,
    dy,
    dx,
    mean,
    rstd,
    M,
    N,
    WIDTH: tl.constexpr,
):
    """The gradient of a row."""
    row = tl.program_id(0)
    column = tl.arange(0, WIDTH)
    mask = column < N
    values = tl.load(x + row * N + column, mask=mask, other=0.0)
    slope = tl.load(dy + row * N + column, mask=mask, other=0.0)
    weights = tl.load(w + column, mask=mask, other=0.0)
    scale = tl.load(rstd + row)
    normal = tl.where(mask, (values - tl.load(mean + row)) * scale, 0.0)
    scaled = weights * slope
    along = tl.sum(normal * scaled, axis=0) / N
    constant = tl.sum(scaled, axis=0) / N
    tl.store(dx + row * N + column, (scaled - normal * along - constant) * scale, mask=mask)


@triton.jit
def layernorm_backward_w(
    x,
    dy,
    dw,
    db,
    mean,
    rstd,
    M,
    N,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """The gradients of weights and bias of BN columns."""
    column = tl.program_id(0) * BN + tl.arange(0, BN)
    sums_w = tl.zeros((BM, BN), dtype=tl.float32)
    sums_b = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range((M + BM - 1) // BM):
        row = i * BM + tl.arange(0, BM)
        mask = (row[:, None] < M) & (column[None, :] < N)
        at = row[:, None] * N + column[None, :]
        values = tl.load(x + at, mask=mask, other=0.0)
        slope = tl.load(dy + at, mask=mask, other=0.0)
        average = tl.load(mean + row, mask=row < M, other=0.0)
        scale = tl.load(rstd + row, mask=row < M, other=0.0)
        sums_w += slope * (values - average[:, None]) * scale[:, None]
        sums_b += slope
    tl.store(dw + column, tl.sum(sums_w, axis=0), mask=column < N)
    tl.store(db + column, tl.sum(sums_b, axis=0), mask=column < N)
