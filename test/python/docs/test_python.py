"""docs/python.md: its blocks run, its table lists what exists, and errors look as it says."""

from __future__ import annotations

import contextlib
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "python.md").read_text()


@pytest.fixture(scope="module")
def program(tmp_path_factory: Any) -> Any:
    """The variables that the blocks of the page leave, and their file."""
    folder = tmp_path_factory.mktemp("docs")
    file = folder / "softmax.py"
    file.write_text("".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)))
    with contextlib.chdir(folder):
        return runpy.run_path(str(file)), file


def test_a_kernel_has_what_the_table_lists(program: Any, tmp_path: Path) -> None:
    made, _ = program
    softmax, x, y = made["softmax"], made["x"], made["y"]
    result = softmax.run(x, device="sim", costs=True)
    assert np.array_equal(result.outputs["y"], y)
    assert result.comparison is None
    assert len(result.costs) == 1
    for stage in re.findall(r"`(\w+)`", re.findall(r"a stage as text: (.*) \|", TEXT)[0]):
        assert softmax.compilation().text(stage)
    softmax.compile("sm_80").save(tmp_path / "softmax.lego")
    again = np.empty_like(y)
    lg.launch(lg.Artifact.load(tmp_path / "softmax.lego"), x, again, device="sim")
    assert np.array_equal(again, y)
    assert "softmax" in softmax.explain()


def test_the_error_is_the_one_that_is_shown(program: Any) -> None:
    _, file = program
    wrong = file.with_name("wrong.py")
    added = "    if own == 0:\n        return\n    sums = "
    wrong.write_text(file.read_text().replace("    sums = ", added, 1))
    with pytest.raises(LegoError) as info:
        runpy.run_path(str(wrong))
    printed = str(info.value).replace(str(wrong), "softmax.py").splitlines()
    (shown,) = re.findall(r"```text\n(softmax.*?)```", TEXT, re.DOTALL)
    assert shown.splitlines() == printed


def test_the_failed_check_is_the_one_that_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(
        "import lego_mlir as lg\n\n"
        "matrix, line = lg.OrderBy(lg.Row(4, 4)), lg.OrderBy(lg.Row(8))\n"
        "@lg.kernel(grid=1, block=8)\n"
        'def k(a: lg.Tensor["f32", matrix], b: lg.Tensor["f32", line]):\n'
        "    t = lg.thread_id()\n"
        "    b[t] = a[0, t % 8]\n"
    )
    kernel = runpy.run_path(str(file))["k"]
    with pytest.raises(LegoError) as info:
        kernel.run(device="sim")
    printed = str(info.value).replace(str(file), "k.py").splitlines()
    (shown,) = re.findall(r"\n +(k\.py:.*\n.*\n.*)\n", TEXT)
    assert [line.strip() for line in shown.splitlines()] == [line.strip() for line in printed[:3]]
