"""Movements that are no permutations: pad, crop, flip, roll, concatenate, split, gather, cast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from bench.moves.case import BYTES, OURS, MoveCase, Tensor

if TYPE_CHECKING:
    from lego_mlir import Kernel

Shape = tuple[int, ...]
ByTorch = Callable[[Any, Sequence[Any], Sequence[Any]], None]

_IMAGES, _MATRIX = (64, 3, 512, 512), (16384, 4096)
_TABLE, _ROWS, _DEPTH = 50257, 32768, 4096


def other_cases() -> list[MoveCase]:
    """Return the cases."""
    found = []
    for dtype in ("f32", "f16", "i8"):
        found += [
            _pad(_IMAGES, (0, 0, 1, 1), dtype),
            _pad((16384, 4001), (0, 47), dtype),
            _crop(_IMAGES, (0, 0, 32, 32), (64, 3, 448, 448), dtype),
            _crop((16384, 4099), (0, 3), (16384, 4096), dtype),
            _flip(_MATRIX, (1,), dtype),
            _flip(_MATRIX, (0,), dtype),
            _roll(_MATRIX, (5, 129), dtype),
            *_joins([(16384, 4096), (16384, 1024), (16384, 1001)], 1, dtype),
        ]
    found += [
        *_joins([(16384, 4096), (16384, 1024), (16384, 1024)], 1, "f16"),
        *_joins([(4097, 4099), (8001, 4099)], 0, "f16"),
        *_joins([(8192, 1000 + n) for n in range(16)], 1, "f16"),
        *_joins([(1 << 22, 3), (1 << 22, 5), (1 << 22, 1)], 1, "f32"),
    ]
    found += [_gather(_TABLE, _ROWS, _DEPTH, "f16"), _gather(1 << 20, 1 << 20, 64, "f32")]
    return [
        *found,
        _cast(_MATRIX, "f32", "f16"),
        _cast(_MATRIX, "f16", "f32"),
        _cast(_MATRIX, "f32", "f16", (1, 0)),
        _cast((64, 4096, 256), "f16", "f32", (0, 2, 1)),
    ]


def _case(
    name: str,
    tensors: tuple[Sequence[Tensor], Sequence[Tensor]],
    make: Callable[[], Kernel],
    by_torch: ByTorch,
    *,
    traffic: int = 0,
    casts: bool = False,
) -> MoveCase:
    inputs, outputs = map(tuple, tensors)
    return MoveCase(name, inputs, outputs, lambda: {OURS: make()}, by_torch, traffic, casts)


def _made(name: str, *arguments: Any, **options: Any) -> Kernel:
    """Return one of `lego_mlir.kernels`, which is imported where kernels are built only."""
    from lego_mlir import kernels

    made: Kernel = getattr(kernels, name)(*arguments, **options)
    return made


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _pad(shape: Shape, by: Shape, dtype: str) -> MoveCase:
    written = tuple(n + 2 * k for n, k in zip(shape, by, strict=True))
    widths = [n for k in reversed(by) for n in (k, k)]

    def by_torch(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].copy_(torch.nn.functional.pad(inputs[0], widths))

    return _case(
        f"pad_{dtype}_{_text(shape)}_by_{_text(by)}",
        ([Tensor(shape, dtype)], [Tensor(written, dtype)]),
        partial(_made, "pad", shape, by, by, dtype),
        by_torch,
    )


def _crop(shape: Shape, begin: Shape, sizes: Shape, dtype: str) -> MoveCase:
    part = tuple(slice(k, k + n) for k, n in zip(begin, sizes, strict=True))

    def by_torch(_: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].copy_(inputs[0][part])

    return _case(
        f"crop_{dtype}_{_text(shape)}_to_{_text(sizes)}",
        ([Tensor(shape, dtype)], [Tensor(sizes, dtype)]),
        partial(_made, "crop", shape, begin, sizes, dtype),
        by_torch,
        traffic=2 * prod(sizes) * BYTES[dtype],
    )


def _flip(shape: Shape, axes: Shape, dtype: str) -> MoveCase:
    def by_torch(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].copy_(torch.flip(inputs[0], axes))

    both = [Tensor(shape, dtype)]
    name = f"flip_{dtype}_{_text(shape)}_{_text(axes)}"
    return _case(name, (both, both), partial(_made, "flip", shape, axes, dtype), by_torch)


def _roll(shape: Shape, shifts: Shape, dtype: str) -> MoveCase:
    def by_torch(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].copy_(torch.roll(inputs[0], shifts, tuple(range(len(shape)))))

    both = [Tensor(shape, dtype)]
    name = f"roll_{dtype}_{_text(shape)}_by_{_text(shifts)}"
    return _case(name, (both, both), partial(_made, "roll", shape, shifts, dtype), by_torch)


def _joins(shapes: Sequence[Shape], axis: int, dtype: str) -> list[MoveCase]:
    sizes = [shape[axis] for shape in shapes]
    whole = (*shapes[0][:axis], sum(sizes), *shapes[0][axis + 1 :])
    parts = [Tensor(shape, dtype) for shape in shapes]

    def joined(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        torch.cat(list(inputs), axis, out=outputs[0])

    def pieces(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        for piece, y in zip(torch.split(inputs[0], sizes, axis), outputs, strict=True):
            y.copy_(piece)

    at = f"{dtype}_{_text(whole)}_{_text(tuple(sizes))}"
    return [
        _case(
            f"concatenate_{at}",
            (parts, [Tensor(whole, dtype)]),
            partial(_made, "concatenate", shapes, axis, dtype),
            joined,
        ),
        _case(
            f"split_{at}",
            ([Tensor(whole, dtype)], parts),
            partial(_made, "split", whole, sizes, axis, dtype),
            pieces,
        ),
    ]


def _gather(table: int, rows: int, columns: int, dtype: str) -> MoveCase:
    def by_torch(torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        torch.index_select(inputs[0], 0, inputs[1], out=outputs[0])

    at = Tensor((rows,), "i32", below=table)
    return _case(
        f"gather_{dtype}_{rows}_of_{table}x{columns}",
        ([Tensor((table, columns), dtype), at], [Tensor((rows, columns), dtype)]),
        partial(_made, "gather_rows", None, None, columns, dtype),
        by_torch,
        traffic=2 * rows * columns * BYTES[dtype] + at.size,
    )


def _cast(shape: Shape, source: str, target: str, axes: Shape | None = None) -> MoveCase:
    order = axes or tuple(range(len(shape)))

    def by_torch(_: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        outputs[0].copy_(inputs[0].permute(order))

    return _case(
        f"cast_{source}_{target}_{_text(shape)}" + (f"_{''.join(map(str, axes))}" if axes else ""),
        ([Tensor(shape, source)], [Tensor(tuple(shape[k] for k in order), target)]),
        partial(_made, "cast", shape, source, target, axes=axes),
        by_torch,
        casts=True,
    )
