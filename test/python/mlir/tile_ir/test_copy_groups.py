"""Kernels whose threads copy tiles ahead wrongly: the verifier or the simulator refuses each."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from ptx_mutants import is_caught

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source

INPUTS = Path(__file__).resolve().parents[3] / "tile_steps" / "Inputs"
ORDERS = ("late", "early", "random")
TARGET = Target.parse("sm_80")


def _compilation(text: str, schedule: Path | None = None) -> Compilation:
    named = None if schedule is None else str(schedule)
    return Compilation(Source("kernel.mlir", text), Options(target=TARGET, schedule=named))


@pytest.fixture(scope="module")
def placed() -> str:
    """A matmul of four iterations, whose tiles are copied two iterations ahead."""
    text = (INPUTS / "matmul.mlir").read_text()
    return str(_compilation(text, INPUTS / "copy_ahead.mlir").placed)


SHIFT = r"(scf\.for.*?arith\.constant) 2( : index)"
"""By how many iterations the copies in the loop are ahead."""

FILL = r'"lego\.acquire"[^\n]*\n *"lego\.copy_async"[^\n]*\n *"lego\.commit"[^\n]*\n'

MUTANTS = {
    "too few iterations ahead": (SHIFT, r"\1 1\2", "in the loop's first iteration"),
    "too many iterations ahead": (SHIFT, r"\1 3\2", "in the loop's first iteration"),
    "a tile is not copied": (FILL, "", "where tile"),
    "one tile too many": (
        r"(%c4_1 = arith\.constant) 4",
        r"\1 5",
        "is executed",
    ),
    "copied whatever there is": (r"arith\.cmpi slt", "arith.cmpi eq", "use rings differently"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_verifier_refuses(placed: str, name: str) -> None:
    pattern, new, said = MUTANTS[name]
    text, count = re.subn(pattern, new, placed, count=1, flags=re.DOTALL)
    assert count
    with pytest.raises(LegoError) as caught:
        _ = _compilation(text).placed
    assert said in caught.value.message
    assert caught.value.location is not None


@pytest.fixture(scope="module")
def artifact(placed: str) -> Artifact:
    return _compilation(placed).artifact(assemble=False)


def _run(artifact: Artifact, order: str) -> bool:
    """Return whether a run in the simulator has the right result."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, s).astype(np.float16) for s in ((128, 256), (256, 64)))
    c = np.zeros((128, 64), np.float32)
    done = runtime.run(artifact, [a, b, c], device=runtime.select("sim", order=order))
    (output,) = done.outputs.values()
    found = np.asarray(output).view(np.float32).reshape(c.shape)
    return bool((found == a.astype(np.float32) @ b.astype(np.float32)).all())


def test_the_groups_are_right_in_all_orders(artifact: Artifact) -> None:
    assert all(_run(artifact, order) for order in ORDERS)


PTX_MUTANTS = {
    "one group more may be on its way": (r"cp\.async\.wait_group\s+3;", "cp.async.wait_group 4;"),
    "no wait": (r"cp\.async\.wait_group\s+\d;", ""),
    "no barrier": (r"bar\.sync\s+0;|barrier\.sync\s+0;", ""),
    "no groups": (r"cp\.async\.commit_group;", ""),
}


@pytest.mark.parametrize("name", PTX_MUTANTS)
def test_the_simulator_finds(artifact: Artifact, name: str) -> None:
    assert is_caught(artifact, PTX_MUTANTS[name], _run, ORDERS)
