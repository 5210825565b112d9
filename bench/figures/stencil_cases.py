"""Stencils over bricks, beside their roofline: a copy of the field, their multiply-adds alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from bench.contenders.case import (
    BY_HAND,
    OURS,
    PRINTED,
    Built,
    Call,
    ContenderCase,
    Contenders,
)
from bench.figures.cuda_kernels import BY_HAND_FOLDER, example, kernels_of

_BRICK, _FIELD = 4, 384
_OWN_BRICK = (8, 4, 32)
_IN_ROWS, _IN_BRICKS = f"{OURS}, rows", f"{OURS}, bricks"
_COPY, _ARITHMETIC = "copy", "multiply-adds alone"
_STARS, _CUBES = (1, 2, 3, 4), (1, 2, 3, 4)
_SWEEPS = {
    ("star", 1): (32, 4, 32, 2, 0, 1, True, True),
    ("star", 2): (48, 8, 48, 3, 3, 1, True, True),
    ("star", 3): (96, 16, 24, 3, 3, 1, True, True),
    ("star", 4): (96, 16, 24, 3, 3),
    ("cube", 1): (96, 16, 24, 3, 3, 1, False, True),
    ("cube", 2): (96, 8, 16, 3, 0, 1, False, True),
    ("cube", 3): (140, 12, 32, 2, 4, 1, False, True, 1),
    ("cube", 4): (210, 16, 32, 1, 4, 1, False, True, 3),
}
"""The `Sweep` of docs/examples/stencil.py over rows: the fastest of those measured on an H200."""

_BRICK_SWEEPS = {
    ("star", 1): (32, 4, 32, 2),
    ("star", 2): (96, 4, 32, 3),
    ("star", 3): (96, 4, 32, 3),
    ("star", 4): (96, 4, 96, 3),
    ("cube", 1): (24, 4, 32, 3),
    ("cube", 2): (96, 8, 16, 3, 0, 1, False, True),
    ("cube", 3): (96, 8, 16, 1, 0, 1, False, True),
    ("cube", 4): (96, 12, 32, 1, 0, 1, False, True),
}
"""Those over bricks, which have no strides for TMA; so planes pass through registers."""

_CTAS, _THREADS, _CHAINS, _UNROLLED = 132 * 16, 128, 16, 8
"""All threads of an H200, each with as many independent multiply-adds as hide their latency."""


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for shape, radii in (("star", _STARS), ("cube", _CUBES)):
        for radius in radii:
            values = {"N": _FIELD, "B": _BRICK, "R": radius, "SHAPE": shape}
            yield ContenderCase(
                name=f"stencil {shape} {radius} {_FIELD}",
                figure="LEGO, bricks",
                printed={"printed.cu": ("stencil.cu.j2", values)},
                kernels=partial(_kernels, shape, radius),
                contenders=partial(_contenders, shape=shape, radius=radius),
                work=8.0 * _FIELD**3,
                unit="GB/s",
            )


def _kernels(shape: str, radius: int) -> dict[str, Any]:
    """Return our kernels over a field in rows and in bricks, and their multiply-adds alone."""
    from lego_mlir import GenP, OrderBy, Row, bricks

    program, n = example("stencil"), _FIELD
    taps = dict.fromkeys(program.weights(shape, radius), 1.0)
    sweeps = {_IN_ROWS: _SWEEPS, _IN_BRICKS: _BRICK_SWEEPS}
    layouts = {
        _IN_ROWS: OrderBy(Row(n, n, n)),
        _IN_BRICKS: OrderBy(GenP([n, n, n], bricks(*_OWN_BRICK))),
    }
    kernels = {}
    for name, layout in layouts.items():
        sweep = program.Sweep(*sweeps[name][shape, radius])
        kernels[name] = program.stencil(n, taps, layout, sweep)
    return {**kernels, _ARITHMETIC: _multiply_adds(len(taps) * n**3)}


def _multiply_adds(count: int) -> Any:
    """Return a kernel of at least so many multiply-adds, in registers."""
    import lego_mlir as lg
    from lego_mlir import OrderBy, Row

    ids = OrderBy(Row(_CTAS, _THREADS))
    numbers = lg.Tensor["f32", (ids.size,)]
    iterations = -(-count // (ids.size * _CHAINS * _UNROLLED))

    @lg.kernel(grid=_CTAS, block=_THREADS, parameters={"a": numbers, "b": numbers})
    def multiply_adds(a: Any, b: Any) -> None:
        i = ids.apply(lg.block_id(), lg.thread_id())
        x = a[i]

        @lg.fold(iterations, tuple(x + float(k) for k in range(_CHAINS)))
        def sums(_: Any, *sums: Any) -> Any:
            for _ in range(_UNROLLED):
                sums = tuple(lg.fma(own, x, 0.5) for own in sums)
            return sums

        total = sums[0]
        for own in sums[1:]:
            total = total + own
        b[i] = total

    return multiply_adds


def _in_bricks(x: Any, sides: tuple[int, int, int] = (_BRICK,) * 3) -> Any:
    """Return a field in bricks."""
    split = x.reshape([size for side in sides for size in (_FIELD // side, side)])
    return split.permute(0, 2, 4, 1, 3, 5).contiguous()


def _contenders(built: Built, shape: str, radius: int) -> Contenders:
    torch, n, tiles = built.torch, _FIELD, _FIELD // _BRICK
    field = torch.randn((n, n, n), device="cuda")
    bricks = _in_bricks(field)
    out, rows = torch.empty_like(bricks), torch.empty_like(field)
    sizes = (tiles, tiles, tiles), (_BRICK, _BRICK, _BRICK)
    (printed,) = kernels_of(built, built.folder / "printed.cu", ("stencil",))
    names, star = ("in_bricks", "in_rows"), int(shape == "star")
    source = BY_HAND_FOLDER / "stencil.cu"
    hand = kernels_of(built, source, names, N=n, R=radius, STAR=star)
    # Ours has zeros outside of the field, and results everywhere; the others inside alone.
    whole = _summed(torch, field.double(), shape, radius)
    inside = (slice(radius, -radius),) * 3
    expected = torch.zeros_like(whole)
    expected[inside] = whole[inside]
    own, own_bricks = torch.empty_like(field), _in_bricks(field, _OWN_BRICK)
    own_out, copied = torch.empty_like(own_bricks), torch.empty_like(field)
    numbers = torch.randn(_CTAS * _THREADS, device="cuda")
    row_major = f"{BY_HAND}, row-major"
    calls: dict[str, Call] = {
        _IN_ROWS: built.ours(_IN_ROWS, field, own),
        _IN_BRICKS: built.ours(_IN_BRICKS, own_bricks.view(-1), own_out.view(-1)),
        PRINTED: lambda: printed(*sizes, bricks.data_ptr(), out.data_ptr()),
        BY_HAND: lambda: hand[0](*sizes, bricks.data_ptr(), out.data_ptr()),
        row_major: lambda: hand[1](*sizes, field.data_ptr(), rows.data_ptr()),
        _COPY: lambda: copied.copy_(field),
        _ARITHMETIC: built.ours(_ARITHMETIC, numbers, torch.empty_like(numbers)),
    }
    separate = {
        _IN_ROWS: (own, whole),
        _IN_BRICKS: (own_out, _in_bricks(whole, _OWN_BRICK)),
        row_major: (rows, expected),
    }
    unchecked = frozenset({_COPY, _ARITHMETIC})
    return Contenders(calls, [out], [_in_bricks(expected)], 1e-5, unchecked, separate)


def _summed(torch: Any, field: Any, shape: str, radius: int) -> Any:
    """Return the sum of each element's neighbours, one dimension after the other."""

    def along(x: Any, axis: int) -> Any:
        around = [(2 - axis == k // 2) * radius for k in range(6)]
        padded = torch.nn.functional.pad(x, around)
        return sum(padded.narrow(axis, k, _FIELD) for k in range(2 * radius + 1))

    if shape == "cube":
        return along(along(along(field, 0), 1), 2)
    return along(field, 0) + along(field, 1) + along(field, 2) - 2 * field
