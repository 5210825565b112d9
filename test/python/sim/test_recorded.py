"""Small programs of every instruction family, against the results of a GPU.

`test/support/recorded` has the programs, the answers of an H200, and how they were recorded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded
from recorded.compare import difference
from recorded.program import Program, TensorMap
from recorded.programs import PROGRAMS

from lego_mlir import sim

FOLDER = Path(recorded.__file__).parent / "answers"
ANSWERS = np.load(FOLDER / "answers.npz")
ASYNCHRONOUS = [n for n, p in PROGRAMS.items() if "async" in p.text or "mbarrier" in p.text]


def launched(program: Program, **options: Any) -> list[Any]:
    arguments = program.made()
    values = [_tensor_map(a, arguments) if isinstance(a, TensorMap) else a for a in arguments]
    if program.cluster is not None:
        options["cluster"] = program.cluster
    sim.launch(program.text, "k", program.grid, program.block, values, **options)
    return arguments


def _tensor_map(map_: TensorMap, arguments: list[Any]) -> sim.TensorMap:
    return sim.TensorMap(
        arguments[map_.argument],
        map_.box,
        shape=map_.dims,
        strides=map_.strides,
        swizzle=f"{map_.swizzle}B" if map_.swizzle else "none",
    )


def check(name: str, **options: Any) -> None:
    program = PROGRAMS[name]
    arguments = launched(program, **options)
    for place in program.outputs:
        gpu = ANSWERS[f"{name}.{place}"]
        found = difference(arguments[place], gpu, program.accuracy.get(place))
        assert found is None, f"output {place}: {found}"


def test_every_program_has_an_answer_of_a_gpu() -> None:
    expected = {f"{name}.{place}" for name, p in PROGRAMS.items() for place in p.outputs}
    assert expected == set(ANSWERS.files)
    device = json.loads((FOLDER / "device.json").read_text())
    assert device["compute_capability"] == "9.0"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_simulator_answers_as_the_gpu(name: str) -> None:
    check(name)


@pytest.mark.parametrize("order", ["early", "random"])
@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_in_every_order(name: str, order: str) -> None:
    check(name, order=order, seed=5)


def test_a_wrong_answer_is_seen() -> None:
    """The comparison has teeth, exact and within an accuracy."""
    for name in ("integer32", "float32", "half", "bf16", "wgmma_f16_sw128"):
        program = PROGRAMS[name]
        answer = ANSWERS[f"{name}.0"].copy()
        accuracy = program.accuracy.get(0)
        assert difference(answer, ANSWERS[f"{name}.0"], accuracy) is None
        answer.reshape(-1)[7] ^= np.asarray(1 << 8 * answer.itemsize - 4).astype(answer.dtype)
        assert difference(answer, ANSWERS[f"{name}.0"], accuracy) is not None
