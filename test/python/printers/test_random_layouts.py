"""Random layouts: what the printed functions compute is the enumeration of the definition.

LEGO_TEST_PRINTED sets the number of layouts for a longer run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import printed
import pytest
from fuzz import drawn
from random_layouts import built, table_of

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.printers import to_cute

COUNT = int(os.environ.get("LEGO_TEST_PRINTED", "60"))
BATCH = 100

PRINTERS: dict[str, Callable[[list[Layout], Path], printed.Results]] = {
    "c": printed.by_c,
    "cuda": lambda layouts, folder: printed.by_cuda(layouts),
    "numpy": lambda layouts, folder: printed.by_numpy(layouts),
    "python": lambda layouts, folder: printed.by_python(layouts),
    "triton": printed.by_triton,
}


def drawn_layouts(seeds: range) -> tuple[list[Layout], list[Any]]:
    """Layouts of at most 600 elements, and the offset of each index in row-major order."""
    layouts, truths = [], []
    for seed in seeds:
        random = Random(seed)
        description = drawn.layout(random, drawn.pool(random, 600))
        layouts.append(built(description))
        truths.append(table_of(description))
    return layouts, truths


def compare(printer: str, seeds: range, folder: Path) -> None:
    layouts, truths = drawn_layouts(seeds)
    found = PRINTERS[printer](layouts, folder)
    for layout, truth, (offsets, back) in zip(layouts, truths, found, strict=True):
        assert np.array_equal(offsets, truth), f"{printer}: apply of {layout} is wrong"
        assert np.array_equal(back, np.arange(len(truth))), f"{printer}: inv of {layout} is wrong"


@pytest.mark.parametrize("printer", PRINTERS)
def test_printed_functions_are_the_layout(printer: str, tmp_path: Path) -> None:
    """LEGO_TEST_PRINTED is the number of layouts."""
    for start in range(0, COUNT, BATCH):
        compare(printer, range(start, min(start + BATCH, COUNT)), tmp_path)


def test_triton_compiles_printed_functions_to_ptx(tmp_path: Path) -> None:
    layouts, truths = drawn_layouts(range(500, 504))
    for truth, (offsets, back) in zip(
        truths, printed.by_triton_ptx(layouts, tmp_path), strict=True
    ):
        assert np.array_equal(offsets, truth)
        assert np.array_equal(back, np.arange(len(truth)))


# ------------------------------------------------------------------------------------------ CuTe
def cute_offset(text: str, index: tuple[int, ...]) -> int:
    """The offset that CuTe's own rules give an index, from the notation alone."""
    swizzle, _, strides = text.rpartition(" o 0 o ")
    shape, stride = (tuple_of(part) for part in strides.split(":"))
    x = sum(crd2idx(i, n, d) for i, n, d in zip(index, shape, stride, strict=True))
    if swizzle:
        b, m, s = map(int, swizzle.removeprefix("Sw<").removesuffix(">").split(","))
        bits = (1 << b) - 1
        x ^= ((x & (bits << (m + s))) >> s) if s > 0 else ((x & (bits << m)) << -s)
    return x


def tuple_of(text: str) -> Any:
    value = eval(text.replace(")", ",)").replace(",,", ","))  # noqa: S307
    return value if isinstance(value, tuple) else (value,)


def crd2idx(i: int, shape: Any, stride: Any) -> int:
    if not isinstance(shape, tuple):
        return i * stride
    total = 0
    for n, d in zip(shape, stride, strict=True):  # colexicographic
        size = int(np.prod(np.array(flat(n))))
        total += crd2idx(i % size, n, d)
        i //= size
    return total


def flat(x: Any) -> list[int]:
    return [n for part in x for n in flat(part)] if isinstance(x, tuple) else [x]


def cute_text(layout: Layout) -> str | None:
    """CuTe's notation, or None if the printer says that CuTe has no such layout."""
    try:
        return str(to_cute(layout))
    except LegoError as e:
        if "CuTe has no such layout" not in e.message:
            raise
        is_regular = "GenP" not in layout.text and "do not divide" not in e.message
        if is_regular:
            raise
        return None


def compare_cute(seeds: range) -> int:
    layouts, truths = drawn_layouts(seeds)
    strided = 0
    for layout, truth in zip(layouts, truths, strict=True):
        text = cute_text(layout)
        if text is None:
            continue
        strided += 1
        offsets = [cute_offset(text, index) for index in np.ndindex(*layout.dims)]
        assert offsets == truth.tolist(), f"{layout} is printed as {text}"
    return strided


def test_cute_layouts_are_the_layout() -> None:
    assert compare_cute(range(COUNT)) > COUNT // 4
