"""CuTe layouts: NVIDIA's own layout functions, where they are installed, and known forms."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzz import drawn
from random_layouts import built, table_of

from lego_mlir.algebra import Layout, OrderBy, Row, from_strides, parse_layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.printers import to_cute


@pytest.mark.parametrize(
    ("text", "cute"),
    [
        ("OrderBy(Row(128, 64))", "(128,64):(64,1)"),
        ("OrderBy(Col(128, 64))", "(128,64):(1,128)"),
        ("OrderBy(RegP([4, 8], [1, 0])).GroupBy([32])", "((8,4)):((4,1))"),
        ("OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])",
         "(M/128,K/64,128,64):(128*K,64,K,1)"),
        ("OrderBy(GenP([8, 64], swizzle(8)))", "Sw<3,3,3> o 0 o (8,64):(64,1)"),
        ("OrderBy(GenP([64, 64], tma_swizzle(128, 2)))", "Sw<3,3,3> o 0 o (64,64):(64,1)"),
        ("OrderBy(GenP([64, 32], tma_swizzle(64, 2)))", "Sw<2,3,3> o 0 o (64,32):(32,1)"),
        ("OrderBy(GenP([64, 16], tma_swizzle(32, 2)))", "Sw<1,3,3> o 0 o (64,16):(16,1)"),
        ("OrderBy(GenP([48, 64], tma_swizzle(128, 2)))", "Sw<3,3,3> o 0 o (48,64):(64,1)"),
        ("OrderBy(GenP([8, 8], morton))", "((2,2,2),(2,2,2)):((2,8,32),(1,4,16))"),
    ],
)  # fmt: skip
def test_known_forms(text: str, cute: str) -> None:
    assert str(to_cute(parse_layout(text))) == cute


def test_strides_come_back() -> None:
    layout = from_strides("((8,4),2):((4,1),32)")
    assert str(to_cute(layout)) == "((8,4),2):((4,1),32)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("OrderBy(GenP([8, 8], antidiagonal))", "element .* is at"),
        ("OrderBy(GenP([8, 8], reverse))", "element .* is at 63, where strides give 0"),
        ("OrderBy(Row(6, 4)).TileBy([ceildiv(6, 4), 1], [4, 4])", "stick out of the tensor"),
        ("OrderBy(GenP([M, 8], reverse))", "is no permutation of dimensions"),
    ],
)
def test_other_layouts_are_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(LegoError, match=f"CuTe has no such layout.*({reason})"):
        to_cute(parse_layout(text))


def test_code_of_symbolic_sizes() -> None:
    found = to_cute(parse_layout("OrderBy(Row(M, K)).TileBy([M/8, K/8], [8, 8])"))
    assert found.cpp() == (
        "cute::make_layout(cute::make_shape(M >> 3, K >> 3, cute::Int<8>{}, cute::Int<8>{}), "
        "cute::make_stride(K * 8, cute::Int<8>{}, K, cute::Int<1>{}))"
    )
    assert found.python() == "cute.make_layout((M // 8, K // 8, 8, 8), stride=(K * 8, 8, K, 1))"
    with pytest.raises(LegoError, match="'for' is a word"):
        to_cute(parse_layout("OrderBy(Row(for, 8))")).cpp()


def samples(count: int) -> list[tuple[Layout, Any]]:
    """Layouts that CuTe has, with their offsets."""
    found = []
    for seed in range(count):
        random = Random(seed)
        description = drawn.layout(random, drawn.pool(random, 600))
        layout = built(description)
        try:
            to_cute(layout)
        except LegoError:
            continue
        found.append((layout, table_of(description)))
    return found


def test_the_python_dsl_computes_the_layout(tmp_path: Path) -> None:
    """`cute.crd2idx` of a static layout is computed while the function is traced."""
    if importlib.util.find_spec("cutlass") is None:
        pytest.skip("no CuTe DSL: pip install nvidia-cutlass-dsl")
    layouts = samples(60)
    swizzled = OrderBy(Row(16, 64)), parse_layout("OrderBy(GenP([16, 64], swizzle(8)))")
    layouts += [(layout, layout.offsets().reshape(-1)) for layout in swizzled]
    text = "import json\nimport cutlass.cute as cute\n\n@cute.jit\ndef f():\n    found = []\n"
    truths = []
    for layout, truth in layouts:
        index = list(np.ndindex(*layout.dims))
        chosen = Random(0).sample(range(len(index)), min(16, len(index)))
        truths.append([int(truth[k]) for k in chosen])
        text += f"    a = {to_cute(layout).python()}\n"
        values = ", ".join(f"int(cute.crd2idx({tuple(index[k])}, a))" for k in chosen)
        text += f"    found.append([{values}])\n"
    (tmp_path / "f.py").write_text(text + "    print(json.dumps(found))\n\nf()\n")
    done = subprocess.run(
        [sys.executable, "f.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == truths
