"""The templates of docs/examples: filled, they compute what NumPy does."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import printed
import pytest

from lego_mlir import sim
from lego_mlir.algebra import GenP, OrderBy, bricks
from lego_mlir.printers.templates import language_of, render

pytest.importorskip("jinja2")
EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


def filled(name: str, **values: Any) -> str:
    return render((EXAMPLES / name).read_text(), values, language_of(name), name)


def interpreted(text: str, folder: Path, run: str, **arrays: Any) -> dict[str, Any]:
    """Run a Triton program in its interpreter, and return the arrays.

    The interpreter is chosen before Triton is imported, so it runs in a process of its own.
    """
    pytest.importorskip("triton")
    (folder / "kernel.py").write_text(text)
    np.savez(folder / "in.npz", **arrays)
    (folder / "run.py").write_text(
        "import numpy as np\nfrom kernel import *\nfrom printed import Tensor\n"
        "arrays = dict(np.load('in.npz'))\n"
        "globals().update({name: Tensor(a) for name, a in arrays.items()})\n"
        f"{run}\nnp.savez('out.npz', **arrays)\n"
    )
    paths = [str(Path(printed.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(
        [sys.executable, "run.py"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(folder / "out.npz"))


@pytest.mark.parametrize(("a_order", "b_order"), itertools.product(["row", "col"], repeat=2))
def test_triton_matmul_in_four_orders(a_order: str, b_order: str, tmp_path: Path) -> None:
    text = filled("matmul.py.j2", BM=16, BN=32, BK=16, GM=2, A=a_order, B=b_order)
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((64, 48)), draw.standard_normal((48, 96))
    a, b = a.astype(np.float32), b.astype(np.float32)
    arrays = interpreted(
        text,
        tmp_path,
        "matmul[(12,)](a, b, c, 64, 96, 48)",
        a=np.ascontiguousarray(a if a_order == "row" else a.T),
        b=np.ascontiguousarray(b if b_order == "row" else b.T),
        c=np.zeros((64, 96), np.float32),
    )
    np.testing.assert_allclose(arrays["c"], a @ b, rtol=1e-4, atol=1e-4)


def test_the_program_ids_of_matmul_are_those_of_tritons_tutorial() -> None:
    """Groups of GM rows of tiles, each column by column."""
    text = filled("matmul.py.j2", BM=64, BN=64, BK=32, GM=8, A="row", B="row")
    (line,) = [line for line in text.splitlines() if "pid_m, pid_n =" in line]
    code = line.split("=", 1)[1].strip()
    tiles_m, tiles_n, group = 32, 6, 8
    for pid in range(tiles_m * tiles_n):
        first = pid // (group * tiles_n) * group
        truth = first + pid % group, pid % (group * tiles_n) // group
        names = {"pid": pid, "M": 64 * tiles_m, "N": 64 * tiles_n}
        assert eval(code, names) == truth  # noqa: S307


def test_triton_softmax(tmp_path: Path) -> None:
    x = np.random.default_rng(0).standard_normal((5, 100)).astype(np.float32)
    arrays = interpreted(
        filled("softmax.py.j2", WIDTH=128), tmp_path, "softmax[(5,)](x, y, 5, 100)",
        x=x, y=np.zeros_like(x),
    )  # fmt: skip
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(arrays["y"], e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("shared", ["yes", "no"])
def test_cuda_transpose(shared: str) -> None:
    a = np.arange(128 * 128, dtype=np.float32).reshape(128, 128)
    b = np.zeros_like(a)
    ptx = printed.ptx_of(filled("transpose.cu.j2", N=128, T=32, SHARED=shared))
    costs = sim.launch(ptx, "transpose", (4, 4, 1), (32, 32, 1), [a, b], costs=True)
    assert (b == a.T).all()
    assert costs is not None
    assert costs.excess_wavefronts == 0
    assert (costs.excess_sectors == 0) == (shared == "yes")


def test_cuda_lud() -> None:
    size, tile = 64, 16
    a = np.random.default_rng(0).random((size, size), dtype=np.float32)
    a += size * np.eye(size, dtype=np.float32)
    whole = a.copy()
    ptx = sim.parse(printed.ptx_of(filled("lud.cu.j2", N=size, B=tile)))
    for step in range(size // tile):
        later = size // tile - step - 1
        sim.launch(ptx, "diagonal", (1, 1, 1), (tile, 1, 1), [a, np.int32(step)])
        if later:
            sim.launch(ptx, "perimeter", (later, 1, 1), (2 * tile, 1, 1), [a, np.int32(step)])
            sim.launch(ptx, "internal", (later, later, 1), (tile, tile, 1), [a, np.int32(step)])
    lower, upper = np.tril(a, -1) + np.eye(size), np.triu(a)
    np.testing.assert_allclose(lower @ upper, whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("buff", ["row", "antidiagonal"])
def test_cuda_needleman_wunsch(buff: str) -> None:
    size, tile, penalty = 24, 8, 3
    similarity = np.random.default_rng(0).integers(-9, 10, (size, size), dtype=np.int32)
    scores = np.zeros((size + 1, size + 1), np.int32)
    scores[0] = scores[:, 0] = -penalty * np.arange(size + 1)
    truth = scores.copy()
    for i, j in np.ndindex(size, size):
        truth[i + 1, j + 1] = max(
            truth[i, j] + similarity[i, j], truth[i, j + 1] - penalty, truth[i + 1, j] - penalty
        )
    tiles = size // tile
    ptx = sim.parse(printed.ptx_of(filled("needleman_wunsch.cu.j2", N=size, B=tile, BUFF=buff)))
    for diagonal in range(2 * tiles - 1):
        count = min(diagonal + 1, 2 * tiles - 1 - diagonal)
        arguments = [scores, similarity, np.int32(penalty), np.int32(diagonal)]
        sim.launch(ptx, "needleman_wunsch", (count, 1, 1), (32, 1, 1), arguments)
    assert (scores == truth).all()


@pytest.mark.parametrize(("shape", "radius"), [("star", 1), ("star", 2), ("cube", 1)])
def test_cuda_stencils_over_bricks(shape: str, radius: int) -> None:
    n = 8
    field = np.random.default_rng(0).integers(-9, 10, (n, n, n)).astype(np.float32)
    layout = OrderBy(GenP([n, n, n], bricks(4, 4, 4)))
    places = layout.offsets()
    stored, out = np.zeros(n**3, np.float32), np.zeros(n**3, np.float32)
    stored[places] = field
    text = filled("stencil.cu.j2", N=n, B=4, R=radius, SHAPE=shape)
    sim.launch(printed.ptx_of(text), "stencil", (2, 2, 2), (4, 4, 4), [stored, out])
    truth = np.zeros_like(field)
    offsets = itertools.product(range(-radius, radius + 1), repeat=3)
    inner = slice(radius, n - radius)
    for at in offsets:
        if shape == "cube" or sum(k != 0 for k in at) <= 1:
            truth[inner, inner, inner] += np.roll(field, [-k for k in at], (0, 1, 2))[
                inner, inner, inner
            ]
    assert (out[places] == truth).all()


def test_triton_layernorm_forward_and_backward(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    m, n = 6, 50
    x, dy = (draw.standard_normal((m, n)).astype(np.float32) for _ in "xd")
    w, b = (draw.standard_normal(n).astype(np.float32) for _ in "wb")
    run = (
        f"forward[({m},)](x, w, b, y, mean, rstd, {m}, {n}, 1e-5)\n"
        f"backward_x[({m},)](x, w, dy, dx, mean, rstd, {m}, {n})\n"
        f"backward_w[(4,)](x, dy, dw, db, mean, rstd, {m}, {n})"
    )
    zeros = {
        name: np.zeros_like(like)
        for name, like in {
            "y": x,
            "dx": x,
            "dw": w,
            "db": w,
            "mean": x[:, 0],
            "rstd": x[:, 0],
        }.items()
    }
    got = interpreted(
        filled("layernorm.py.j2", WIDTH=64, BM=4, BN=16),
        tmp_path,
        run,
        x=x,
        dy=dy,
        w=w,
        b=b,
        **zeros,
    )
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    normal, scaled = (x - mean) * rstd, dy * w
    along = (normal * scaled).mean(axis=1, keepdims=True)
    constant = scaled.mean(axis=1, keepdims=True)
    close = {"rtol": 1e-3, "atol": 1e-5}
    np.testing.assert_allclose(got["y"], normal * w + b, **close)
    np.testing.assert_allclose(got["dx"], (scaled - normal * along - constant) * rstd, **close)
    np.testing.assert_allclose(got["dw"], (dy * normal).sum(axis=0), **close)
    np.testing.assert_allclose(got["db"], dy.sum(axis=0), **close)


def test_triton_grouped_gemm(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    sizes = [(32, 16, 32), (16, 48, 16), (64, 32, 48)]
    arrays: dict[str, Any] = {"sizes": np.array(sizes, np.int32)}
    for g, (m, n, k) in enumerate(sizes):
        arrays[f"a{g}"] = draw.standard_normal((m, k)).astype(np.float32)
        arrays[f"b{g}"] = draw.standard_normal((k, n)).astype(np.float32)
        arrays[f"c{g}"] = np.zeros((m, n), np.float32)
    run = (
        "order = [arrays[f'{x}{g}'].ctypes.data for g in range(3) for x in 'abc']\n"
        "pointers = Tensor(np.array(order, np.int64))\n"
        "grouped_gemm[(5,)](pointers, sizes, 3)"
    )
    got = interpreted(
        filled("grouped_gemm.py.j2", BM=16, BN=16, BK=16, TYPE="float32"), tmp_path, run, **arrays
    )
    for g in range(3):
        truth = arrays[f"a{g}"] @ arrays[f"b{g}"]
        np.testing.assert_allclose(got[f"c{g}"], truth, rtol=1e-4, atol=1e-4)


def test_triton_matmul_of_8_bit_floats(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    draw = np.random.default_rng(0)
    a, b = (
        draw.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn)
        for shape in ((32, 48), (48, 32))
    )
    got = interpreted(
        filled("matmul.py.j2", BM=16, BN=16, BK=16, GM=1, A="row", B="col"),
        tmp_path,
        "a.dtype = b.dtype = 'float8_e4m3fn'\nmatmul[(4,)](a, b, c, 32, 32, 48)",
        a=a.view(np.uint8),
        b=np.ascontiguousarray(b.T).view(np.uint8),
        c=np.zeros((32, 32), np.float32),
    )
    truth = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(got["c"], truth, rtol=1e-4, atol=1e-4)
