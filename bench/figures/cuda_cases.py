"""The CUDA figures: transposes, Needleman-Wunsch, LU decomposition, stencils over bricks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders.case import (
    BY_HAND,
    OURS,
    PRINTED,
    TEMPLATES,
    Built,
    Call,
    ContenderCase,
    Contenders,
)
from lego_mlir.runtime import cuda as lego_cuda
from lego_mlir.runtime.cuda import cuda_core

_BY_HAND = Path(__file__).with_name("by_hand")
_TRANSPOSE = 32
_BRICK, _FIELD = 4, 384
_OWN_BRICK = (8, 4, 32)
_IN_ROWS, _IN_BRICKS = f"{OURS}, rows", f"{OURS}, bricks"
_PENALTY = 10
_NW_TILES, _OWN_NW_TILE = (16, 64), 128
_LUD_TILE, _OWN_LUD_TILE = 16, 64
_LUD = ("diagonal", "perimeter", "interior")

Dims = tuple[int, int, int]
Kernel = Callable[..., None]


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for size in (2048, 8192):
        yield _transpose_case(size)
    for shape, radius in (("star", 1), ("star", 2), ("star", 3), ("star", 4), ("cube", 1)):
        yield _stencil_case(shape, radius)
    for size in (4096, 16384):
        yield _needleman_wunsch_case(size)
    for size in (4096, 8192):
        yield _lud_case(size)


def _kernels(built: Built, source: Path, names: tuple[str, ...], **defines: int) -> list[Kernel]:
    """Compile CUDA C++; return functions `(grid, block, *arguments)` that launch its kernels."""
    import cuda.core as core

    from bench.peers.nvcc import compiled

    cubin = built.folder / f"{source.parent.name}_{source.stem}.cubin"
    path = compiled(source, cubin, built.torch.cuda.get_device_capability(), defines)
    module = core.ObjectCode.from_cubin(path.read_bytes())
    stream = cuda_core.as_stream(built.stream)

    def of(name: str) -> Kernel:
        kernel = module.get_kernel(name)

        def launch(grid: Dims, block: Dims, *arguments: Any) -> None:
            config = core.LaunchConfig(grid=grid, block=block)
            core.launch(stream, config, kernel, *arguments)

        return launch

    return [of(name) for name in names]


def _transpose_case(size: int) -> ContenderCase:
    values = {"N": size, "T": _TRANSPOSE}

    def kernels() -> dict[str, Any]:
        from lego_mlir.kernels import transpose

        return {OURS: transpose(size, size, "f32")}

    return ContenderCase(
        name=f"transpose f32 {size}",
        figure="LEGO 13",
        printed={
            "naive.cu": ("transpose.cu.j2", {**values, "SHARED": "no"}),
            "shared.cu": ("transpose.cu.j2", {**values, "SHARED": "yes"}),
        },
        kernels=kernels,
        contenders=partial(_transpose_contenders, size=size),
        work=8.0 * size * size,
        unit="GB/s",
    )


def _transpose_contenders(built: Built, size: int) -> Contenders:
    torch = built.torch
    a = torch.randn((size, size), device="cuda")
    b = torch.empty_like(a)
    tiles = size // _TRANSPOSE
    sizes = (tiles, tiles, 1), (_TRANSPOSE, _TRANSPOSE, 1)
    pointers = a.data_ptr(), b.data_ptr()
    (naive,) = _kernels(built, built.folder / "naive.cu", ("transpose",))
    (shared,) = _kernels(built, built.folder / "shared.cu", ("transpose",))
    hand = _kernels(built, _BY_HAND / "transpose.cu", ("naive", "shared_memory"), N=size)
    calls: dict[str, Call] = {
        OURS: built.ours(OURS, a, b),
        PRINTED: lambda: shared(*sizes, *pointers),
        BY_HAND: lambda: hand[1](*sizes, *pointers),
        f"{PRINTED}, naive": lambda: naive(*sizes, *pointers),
        f"{BY_HAND}, naive": lambda: hand[0](*sizes, *pointers),
        "PyTorch": lambda: b.copy_(a.t()),
    }
    return Contenders(calls, [b], [a.t()], 0.0)


def _stencil_case(shape: str, radius: int) -> ContenderCase:
    values = {"N": _FIELD, "B": _BRICK, "R": radius, "SHAPE": shape}
    return ContenderCase(
        name=f"stencil {shape} {radius} {_FIELD}",
        figure="LEGO, bricks",
        printed={"printed.cu": ("stencil.cu.j2", values)},
        kernels=partial(_stencils, shape, radius),
        contenders=partial(_stencil_contenders, shape=shape, radius=radius),
        work=8.0 * _FIELD**3,
        unit="GB/s",
    )


def _stencils(shape: str, radius: int) -> dict[str, Any]:
    """Return our kernels over a field in rows, and over one in the bricks of a CTA."""
    from lego_mlir import GenP, OrderBy, Row, bricks

    example, n = _example("stencil"), _FIELD
    taps = dict.fromkeys(example.weights(shape, radius), 1.0)
    layouts = {
        _IN_ROWS: OrderBy(Row(n, n, n)),
        _IN_BRICKS: OrderBy(GenP([n, n, n], bricks(*_OWN_BRICK))),
    }
    return {name: example.stencil(n, taps, layout) for name, layout in layouts.items()}


def _stencil_contenders(built: Built, shape: str, radius: int) -> Contenders:
    torch, n, tiles = built.torch, _FIELD, _FIELD // _BRICK
    field = torch.randn((n, n, n), device="cuda")

    def in_bricks(x: Any, sides: tuple[int, int, int] = (_BRICK,) * 3) -> Any:
        split = x.reshape([size for side in sides for size in (n // side, side)])
        return split.permute(0, 2, 4, 1, 3, 5).contiguous()

    bricks = in_bricks(field)
    out, rows = torch.empty_like(bricks), torch.empty_like(field)
    sizes = (tiles, tiles, tiles), (_BRICK, _BRICK, _BRICK)
    (printed,) = _kernels(built, built.folder / "printed.cu", ("stencil",))
    hand = _kernels(
        built,
        _BY_HAND / "stencil.cu",
        ("in_bricks", "in_rows"),
        N=n,
        R=radius,
        STAR=int(shape == "star"),
    )
    weights = torch.zeros((2 * radius + 1,) * 3, device="cuda", dtype=torch.float64)
    if shape == "cube":
        weights += 1
    else:
        for axis in range(3):
            weights[tuple(slice(None) if k == axis else radius for k in range(3))] = 1

    def summed(x: Any) -> Any:
        return torch.nn.functional.conv3d(x.double()[None, None], weights[None, None])[0, 0]

    expected = torch.nn.functional.pad(summed(field), (radius,) * 6)
    # Ours has zeros outside of the field, and results everywhere.
    whole = summed(torch.nn.functional.pad(field, (radius,) * 6))
    own, own_bricks = torch.empty_like(field), in_bricks(field, _OWN_BRICK)
    own_out = torch.empty_like(own_bricks)
    row_major = f"{BY_HAND}, row-major"
    calls: dict[str, Call] = {
        _IN_ROWS: built.ours(_IN_ROWS, field, own),
        _IN_BRICKS: built.ours(_IN_BRICKS, own_bricks.view(-1), own_out.view(-1)),
        PRINTED: lambda: printed(*sizes, bricks.data_ptr(), out.data_ptr()),
        BY_HAND: lambda: hand[0](*sizes, bricks.data_ptr(), out.data_ptr()),
        row_major: lambda: hand[1](*sizes, field.data_ptr(), rows.data_ptr()),
    }
    separate = {
        _IN_ROWS: (own, whole),
        _IN_BRICKS: (own_out, in_bricks(whole, _OWN_BRICK)),
        row_major: (rows, expected),
    }
    return Contenders(calls, [out], [in_bricks(expected)], 1e-5, separate=separate)


def _needleman_wunsch_case(size: int) -> ContenderCase:
    return ContenderCase(
        name=f"Needleman-Wunsch {size}",
        figure="LEGO 14",
        printed={
            f"{buff}_{tile}.cu": (
                "needleman_wunsch.cu.j2",
                {"N": size, "B": tile, "BUFF": buff},
            )
            for tile in _NW_TILES
            for buff in ("row", "antidiagonal")
        },
        kernels=lambda: {OURS: _example("needleman_wunsch_tiles").needleman_wunsch(size)},
        contenders=partial(_needleman_wunsch_contenders, size=size),
        work=8.0 * size * size,
        unit="GB/s",
        launches=2 * size // min(_NW_TILES),
    )


def _example(name: str) -> Any:
    """Import a program of docs/examples."""
    spec = importlib.util.spec_from_file_location(name, TEMPLATES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _needleman_wunsch_contenders(built: Built, size: int) -> Contenders:
    torch = built.torch
    similarity = torch.randint(-9, 10, (size, size), device="cuda", dtype=torch.int32)
    scores = torch.zeros((size + 1, size + 1), device="cuda", dtype=torch.int32)
    border = -_PENALTY * torch.arange(size + 1, device="cuda", dtype=torch.int32)
    scores[0], scores[:, 0] = border, border
    pointers = scores.data_ptr(), similarity.data_ptr(), np.int32(_PENALTY)

    def call(kernel: Kernel, tile: int) -> Call:
        tiles = size // tile

        def launch() -> None:
            for diagonal in range(2 * tiles - 1):
                count = min(diagonal + 1, 2 * tiles - 1 - diagonal)
                kernel((count, 1, 1), (max(tile, 32), 1, 1), *pointers, np.int32(diagonal))

        return launch

    loaded = lego_cuda.load(built.artifact(OURS))
    count = 2 * (size // _OWN_NW_TILE) - 1
    bound = [loaded.bind(scores, similarity, _PENALTY, diagonal) for diagonal in range(count)]

    def ours() -> None:
        for launch in bound:
            launch(built.stream.cuda_stream)

    calls: dict[str, Call] = {OURS: ours}
    for tile in _NW_TILES:
        names = {"row": PRINTED, "antidiagonal": f"{PRINTED}, antidiagonals"}
        for buff, name in names.items():
            file = built.folder / f"{buff}_{tile}.cu"
            (kernel,) = _kernels(built, file, ("needleman_wunsch",))
            calls[f"{name}, tiles of {tile}"] = call(kernel, tile)
    source = _BY_HAND / "needleman_wunsch.cu"
    (kernel,) = _kernels(built, source, ("needleman_wunsch",), N=size, B=min(_NW_TILES))
    calls[f"{BY_HAND}, tiles of {min(_NW_TILES)}"] = call(kernel, min(_NW_TILES))
    expected = torch.from_numpy(_aligned(similarity.cpu().numpy())).cuda()
    return Contenders(calls, [scores[1:, 1:]], [expected[1:, 1:]], 0.0)


def _aligned(similarity: Any) -> Any:
    """Return the scores that NumPy computes, a row at a time.

    Along a row, s[j] = max(t[j], s[j - 1] - p) is a running maximum of t[j] + j p.
    """
    size = len(similarity)
    steps = _PENALTY * np.arange(size + 1, dtype=np.int64)
    scores = np.empty((size + 1, size + 1), np.int32)
    scores[0] = -steps
    for i in range(size):
        above = scores[i].astype(np.int64)
        row = np.empty(size + 1, np.int64)
        row[0] = -_PENALTY * (i + 1)
        np.maximum(above[:-1] + similarity[i], above[1:] - _PENALTY, out=row[1:])
        scores[i + 1] = np.maximum.accumulate(row + steps) - steps
    return scores


def _lud_case(size: int) -> ContenderCase:
    return ContenderCase(
        name=f"LU decomposition f32 {size}",
        figure="LEGO, LUD",
        printed={"printed.cu": ("lud.cu.j2", {"N": size, "B": _LUD_TILE})},
        kernels=lambda: dict(zip(_LUD, _example("lud_tiles").lud(size), strict=True)),
        contenders=partial(_lud_contenders, size=size),
        work=2.0 / 3.0 * size**3,
        unit="TFLOP/s",
        launches=3 * size // _LUD_TILE,
    )


def _lud_contenders(built: Built, size: int) -> Contenders:
    torch, tile = built.torch, _LUD_TILE
    whole = torch.rand((size, size), device="cuda") + size * torch.eye(size, device="cuda")
    a = whole.clone()
    names = ("diagonal", "perimeter", "internal")
    steps = size // _OWN_LUD_TILE
    loaded = [lego_cuda.load(built.artifact(name)) for name in _LUD]
    bound = [[kernel.bind(a, step) for kernel in loaded] for step in range(steps)]

    def ours() -> None:
        for step, launches in enumerate(bound):
            for launch in launches[: 1 if step == steps - 1 else None]:
                launch(built.stream.cuda_stream)

    def call(kernels: list[Kernel]) -> Call:
        diagonal, perimeter, internal = kernels

        def launch() -> None:
            for step in range(size // tile):
                later, at = size // tile - step - 1, (a.data_ptr(), np.int32(step))
                diagonal((1, 1, 1), (tile, 1, 1), *at)
                if later:
                    perimeter((later, 1, 1), (2 * tile, 1, 1), *at)
                    internal((later, later, 1), (tile, tile, 1), *at)

        return launch

    calls: dict[str, Call] = {
        OURS: ours,
        PRINTED: call(_kernels(built, built.folder / "printed.cu", names)),
        BY_HAND: call(_kernels(built, _BY_HAND / "lud.cu", names, N=size, B=tile)),
    }
    expected = torch.linalg.lu_factor(whole.double(), pivot=False)[0]

    def reset() -> None:
        a.copy_(whole)

    return Contenders(calls, [a], [expected], 1e-4, reset=reset)
