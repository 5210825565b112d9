"""Printed windows compute what their definition enumerates; no language has their inverse."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from printed import decoded
from random_windows import Drawn, windows

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.printers import to_c, to_cuda, to_cute, to_numpy, to_python, to_triton


def compare(w: Drawn, mask: Any, offsets: Any) -> None:
    """Compare offsets where there is an element, and the mask everywhere."""
    expected, exists = w.elements()
    assert (np.asarray(mask, bool).reshape(w.dims) == exists).all()
    assert (np.reshape(offsets, w.dims)[exists] == expected[exists]).all()


def has_element(w: Drawn) -> bool:
    return bool(w.elements()[1].any())


@given(windows().filter(has_element))
def test_python_and_numpy(w: Drawn) -> None:
    layout = w.layout()
    names: dict[str, Any] = {}
    exec(to_python(layout, "A"), names)  # noqa: S102
    every = list(np.ndindex(*w.dims))
    mask = [names["A_mask"](*i) if "A_mask" in names else 1 for i in every]
    compare(w, mask, [names["A_apply"](*i) if m else -1 for i, m in zip(every, mask, strict=True)])
    names = {}
    exec(to_numpy(layout, "A"), names)  # noqa: S102
    assert "A_inv" not in names
    index = np.indices(w.dims)
    mask = names["A_mask"](*index) if "A_mask" in names else 1
    offsets = np.broadcast_to(names["A_apply"](*index), w.dims)
    compare(w, np.broadcast_to(mask, w.dims), offsets)


@settings(max_examples=2, suppress_health_check=list(HealthCheck))
@given(st.lists(windows().filter(has_element), min_size=10, max_size=10))
def test_c(tmp_path: Path, drawn: list[Drawn]) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    text, calls = "#include <stdio.h>\n", ""
    for k, w in enumerate(drawn):
        layout = w.layout()
        calls += f"  L{k}_test();\n"
        at = ", ".join(decoded(layout, "flat"))
        exists = f"L{k}_mask({at})" if layout.is_partial else "1"
        text += to_c(layout, f"L{k}") + (
            f"static void L{k}_test(void) {{\n"
            f"  for (int flat = 0; flat < {np.prod(w.dims)}; ++flat) {{\n"
            f"    int pair[2] = {{{exists}, 0}};\n"
            f"    if (pair[0]) pair[1] = (int)L{k}_apply({at});\n"
            "    fwrite(pair, sizeof pair, 1, stdout);\n  }\n}\n"
        )
    (tmp_path / "printed.c").write_text(text + f"int main(void) {{\n{calls}}}\n")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wno-unused-function", "-Wno-unused-parameter"]
    command = [compiler, *flags, "-Werror", "printed.c", "-o", "printed", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    out = subprocess.run([tmp_path / "printed"], capture_output=True, check=True).stdout
    pairs = np.frombuffer(out, np.int32).reshape(-1, 2)
    start = 0
    for w in drawn:
        part = pairs[start : start + int(np.prod(w.dims))]
        compare(w, part[:, 0], part[:, 1])
        start += len(part)


@pytest.mark.parametrize("to", [to_c, to_cuda, to_python, to_numpy, to_triton])
def test_a_window_is_printed_without_an_inverse(to: Any) -> None:
    text = to(lg.OrderBy(lg.Row(8)).Window([8, 3], lambda k, i: k + i - 1, "zero"), "A")
    assert "A_apply" in text
    assert "A_mask" in text
    assert "A_inv" not in text


def test_cute_has_the_strides_of_padded_rows_and_refuses_boundaries() -> None:
    rows = lg.OrderBy(lg.Row(32, 33))
    assert str(to_cute(rows.Window([32, 32]))) == "(32,32):(33,1)"
    assert str(rows.Window([30, 30, 3], lambda i, j, k: (i + k, j)).to_strides()) == (
        "(30,30,3):(33,1,33)"
    )
    with pytest.raises(LegoError, match="stays inside of the tensor"):
        to_cute(rows.Window([32, 32], lambda i, j: (i, j + 2), "zero"))


def test_a_slice_of_a_window_is_a_tile_of_triton_with_a_mask() -> None:
    window = lg.OrderBy(lg.Row(64)).Window([64, 3], lambda k, i: k + i - 1, "zero")
    tile = to_triton(window.TileBy([4, 3], [16, 1])["m", 0, :, 0])
    assert "tl.arange(0, 16)" in tile.offsets
    assert tile.mask is not None
