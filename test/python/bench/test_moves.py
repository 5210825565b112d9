"""The movements of the bench: their cases, and the table of results."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import pytest

from bench.moves.build import worst_cases
from bench.moves.case import BYTES, OURS
from bench.moves.cases import cases
from bench.moves.permutations import random_cases
from bench.moves.report import report
from lego_mlir.diagnostics import LegoError

CASES = cases(19)


def test_names_are_different() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


def test_random_permutations_depend_on_the_seed_alone() -> None:
    names = [case.name for case in random_cases(20, 19)]
    assert names == [case.name for case in random_cases(30, 19)[:20]]
    assert names != [case.name for case in random_cases(20, 20)]


def test_the_worst_permutations_of_earlier_results(tmp_path: Path) -> None:
    """Of any seed, by their names; a case that was not measured is none of them."""
    names = [case.name for case in random_cases(3, 20)]
    rounds = [{OURS: [10.0], "memcpy": [copy]} for copy in (5.0, 9.0, 2.0)]
    lines = [
        {"case": name, "us": {k: v[0] for k, v in each.items()}, "rounds": each}
        for name, each in zip(names, rounds, strict=True)
    ]
    lines += [{**lines[0], "case": "flip_f32_64x64_1"}, {"case": names[0], "error": "memory"}]
    results = tmp_path / "moves.jsonl"
    results.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found, drawn = worst_cases(results, 2), random_cases(3, 20)
    assert [(c.name, c.inputs, c.outputs) for c in found] == [
        (drawn[k].name, drawn[k].inputs, drawn[k].outputs) for k in (2, 0)
    ]
    with pytest.raises(LegoError, match="is no file of results"):
        worst_cases(tmp_path / "other.jsonl", 2)


def test_traffic_is_at_least_what_is_written() -> None:
    for case in CASES:
        written = sum(prod(t.shape) * BYTES[t.dtype] for t in case.outputs)
        assert written < case.moved <= 1 << 31


def test_pytorch_writes_what_is_expected_of_a_case() -> None:
    """Every case's own reference has the shapes of its tensors; small ones are computed."""
    torch = pytest.importorskip("torch")
    kinds = {"i8": "int8", "f16": "float16", "f32": "float32", "f64": "float64", "i32": "int32"}
    for case in CASES:
        if case.moved > 1 << 24:
            continue
        inputs, outputs = (
            [torch.zeros(t.shape, dtype=getattr(torch, kinds[t.dtype])) for t in tensors]
            for tensors in (case.inputs, case.outputs)
        )
        case.by_torch(torch, inputs, outputs)


def test_a_report(tmp_path: Path) -> None:
    rounds = {OURS: [10.0, 12.0], "memcpy": [9.0, 12.0], "copy kernel": [20.0, 20.0]}
    line = {
        "case": "random19_000_f32_4x4_10",
        "commit": "abc",
        "device": "a GPU",
        "bytes": 1 << 20,
        "us": {name: sum(each) / 2 for name, each in rounds.items()},
        "rounds": rounds,
        "wrong": {},
        "absent": {},
    }
    failed = {"case": "pad_f32", "commit": "abc", "error": "out of memory"}
    results = tmp_path / "moves.jsonl"
    results.write_text("".join(json.dumps(each) + "\n" for each in (line, failed)))
    text = report(results)
    assert (tmp_path / "moves.md").read_text() == text
    assert "random19: 1 cases, median 0.95 of a copy, least 0.95, 0 below 0.8" in text
    assert "out of memory" in text
