"""The CUDA figures: transposes, Needleman-Wunsch, LU decomposition, and stencils over bricks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from bench.contenders.case import (
    BY_HAND,
    OURS,
    PRINTED,
    Built,
    Call,
    ContenderCase,
    Contenders,
)
from bench.figures import stencil_cases
from bench.figures.cuda_kernels import BY_HAND_FOLDER, Kernel, example, kernels_of
from lego_mlir.runtime import cuda as lego_cuda

_TRANSPOSE = 32
_PENALTY = 10
_NW_TILES, _OWN_NW_TILE = (16, 64), 128
_LUD_TILE, _OWN_LUD_TILE = 16, 64
_LUD = ("diagonal", "perimeter", "interior")


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for size in (2048, 8192):
        yield _transpose_case(size)
    yield from stencil_cases.cases()
    for size in (4096, 16384):
        yield _needleman_wunsch_case(size)
    for size in (4096, 8192):
        yield _lud_case(size)


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
    (naive,) = kernels_of(built, built.folder / "naive.cu", ("transpose",))
    (shared,) = kernels_of(built, built.folder / "shared.cu", ("transpose",))
    hand = kernels_of(built, BY_HAND_FOLDER / "transpose.cu", ("naive", "shared_memory"), N=size)
    calls: dict[str, Call] = {
        OURS: built.ours(OURS, a, b),
        PRINTED: lambda: shared(*sizes, *pointers),
        BY_HAND: lambda: hand[1](*sizes, *pointers),
        f"{PRINTED}, naive": lambda: naive(*sizes, *pointers),
        f"{BY_HAND}, naive": lambda: hand[0](*sizes, *pointers),
        "PyTorch": lambda: b.copy_(a.t()),
    }
    return Contenders(calls, [b], [a.t()], 0.0)


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
        kernels=lambda: {OURS: example("needleman_wunsch_tiles").needleman_wunsch(size)},
        contenders=partial(_needleman_wunsch_contenders, size=size),
        work=8.0 * size * size,
        unit="GB/s",
        launches=2 * size // min(_NW_TILES),
    )


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
            (kernel,) = kernels_of(built, file, ("needleman_wunsch",))
            calls[f"{name}, tiles of {tile}"] = call(kernel, tile)
    source = BY_HAND_FOLDER / "needleman_wunsch.cu"
    (kernel,) = kernels_of(built, source, ("needleman_wunsch",), N=size, B=min(_NW_TILES))
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
        kernels=lambda: dict(zip(_LUD, example("lud_tiles").lud(size), strict=True)),
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
        PRINTED: call(kernels_of(built, built.folder / "printed.cu", names)),
        BY_HAND: call(kernels_of(built, BY_HAND_FOLDER / "lud.cu", names, N=size, B=tile)),
    }
    expected = torch.linalg.lu_factor(whole.double(), pivot=False)[0]

    def reset() -> None:
        a.copy_(whole)

    return Contenders(calls, [a], [expected], 1e-4, reset=reset)
