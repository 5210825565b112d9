"""The programs of docs/examples/tiles: short, right in all orders, and at each step."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import runtime

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted((ROOT / "docs" / "examples" / "tiles").glob("*.py"))
ORDERS = ("late", "early", "random:1")
LINES = 25


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_a_program_is_right_in_all_orders(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file compares with NumPy itself; the orders leave the same bits in memory."""
    launches = []

    def in_all_orders(kernel: lg.Kernel, *arrays: Any) -> None:
        launches.append(kernel)
        found = []
        for order in ORDERS:
            copies = [np.copy(a) for a in arrays]
            artifact = kernel.compile(check=True)
            runtime.launch(artifact, *copies, device=runtime.select("sim", order=order))
            found.append(copies)
        for copies in found[1:]:
            for one, other in zip(found[0], copies, strict=True):
                np.testing.assert_array_equal(one, other)
        for array, result in zip(arrays, found[0], strict=True):
            array[...] = result

    monkeypatch.setattr(lg.Kernel, "__call__", in_all_orders)
    runpy.run_path(str(example))
    assert launches


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_no_step_changes_what_a_program_computes(
    example: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class CheckedError(Exception):
        pass

    def checked(kernel: lg.Kernel, *arrays: Any) -> None:
        assert kernel.check_each_step(*arrays)
        raise CheckedError

    monkeypatch.setattr(lg.Kernel, "__call__", checked)
    with pytest.raises(CheckedError):
        runpy.run_path(str(example))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_a_program_is_short(example: Path) -> None:
    text = example.read_text()
    body = text[text.index("@lg.kernel") :]
    assert len(body[: body.index("\n\n\n")].splitlines()) <= LINES
