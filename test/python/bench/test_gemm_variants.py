"""Variants beside each other: what is compiled, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import build as building
from bench.build import build, read_manifest
from bench.cases import Case
from bench.gemm.product import Product
from bench.gemm.variants import CASES, divided, promoted
from bench.report import write
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul

PEERS = ("cuBLAS", "cuBLAS, short sums")


def made(case: str = "promote_e4m3_1000_nt", **changes: Any) -> dict[str, Any]:
    """2 GFLOP: ours takes 4 µs, an alternative 2, another is wrong, cuBLAS takes 3."""
    reference = Product(1000, 1000, 1000, "f8E4M3FN", "f16", "row", "col")
    names = ("ours", "promote 1", "promote 4", PEERS[0])
    return {
        "case": case,
        "commit": "c",
        "device": "d",
        "variant": "",
        "division": "tile 64",
        "reference": {x: getattr(reference, x) for x in reference.__dataclass_fields__},
        "candidates": [{"name": name, "file": ""} for name in names[1:3]],
        "peers": list(PEERS),
        "verified": dict.fromkeys(names, True) | {"promote 1": False},
        "verdicts": {name: {"deviation": 2e-4 * (1 + k)} for k, name in enumerate(names)},
        "bytes": 6_000_000,
        "sets": 40,
        "us": {"ours": [4.0] * 3, "promote 4": [2.0] * 3, PEERS[0]: [3.0] * 3},
    } | changes


def rows(text: str) -> list[list[str]]:
    return [line.strip("| ").split(" | ") for line in text.splitlines() if "_nt |" in line]


def test_everybody_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    file.write_text(json.dumps(made()) + "\n")
    text = write(file)
    assert "## Sums of 8-bit floats that are promoted" in text
    ours, wrong, four, cublas = rows(text)
    assert ours[1:7] == ["ours: tile 64", "yes", "2.0e-04", "4.00", "500.0", ""]
    assert ours[7] == "0.75 (0.75–0.75)"
    assert wrong[1:4] == ["promote 1", "**no**", "4.0e-04"]
    assert four[1:7] == ["**promote 4**", "yes", "6.0e-04", "2.00", "1000.0", "2.00 (2.00–2.00)"]
    assert cublas[1:7] == ["cuBLAS", "yes", "8.0e-04", "3.00", "666.7", "1.33 (1.33–1.33)"]
    assert not file.with_suffix(".svg").exists()


def test_kinds_have_tables_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    results = [made(), made("split_e4m3_1000_nt", peers=["cuBLAS"])]
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    heads = [line for line in write(file).splitlines() if line.startswith("| case ")]
    assert [head.count("of cuBLAS") for head in heads] == [2, 1]


def test_a_case_that_failed_has_a_remark(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    failed = made("split_x", verified={"ours": False}, error="stopped after 3 s")
    failed = {key: value for key, value in failed.items() if key not in ("us", "verdicts")}
    file.write_text(json.dumps(made()) + "\n" + json.dumps(failed) + "\n")
    assert "- **split_x**: stopped after 3 s" in write(file)


def test_divisions_of_every_number_of_parts() -> None:
    case = divided(128, 128, 16384)
    assert case.name == "split_f16_128x128x16384_nn"
    assert case.alternatives is not None
    names = list(case.alternatives("sm_90a"))
    assert [sum(f"split-K {n}" in name for name in names) for n in (2, 4, 8)] == [2, 2, 2]


def test_promotion_is_asked_for() -> None:
    case = promoted(1024)
    assert case.alternatives is not None
    kernels = case.alternatives("sm_90a")
    assert list(kernels) == ["promote 1", "promote 4"]
    assert all(kernel.params["promote"] == int(name[-1]) for name, kernel in kernels.items())
    assert case.make("sm_90a").params["promote"] == 0


def test_alternatives_that_do_not_compile_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refused:
        def compile(self, target: str) -> None:
            raise LegoError("no such kernel")

    def alternatives(target: str) -> dict[str, Any]:
        return {"good": matmul(64, 64, 64, target=target), "bad": Refused()}

    case = Case(
        "a",
        lambda target: matmul(64, 64, 64, target=target),
        "f16",
        Product(64, 64, 64, "f16", "f16"),
        alternatives=alternatives,
    )
    monkeypatch.setattr(building, "CASES", (case,))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: no such kernel" in capsys.readouterr().out
    entry = read_manifest(tmp_path)["cases"]["a"]
    assert entry["candidates"] == [{"name": "good", "file": "a.0.lego"}]
    assert entry["division"].startswith("tile ")
    assert (tmp_path / "a.0.lego").exists()


def test_names_say_what_is_compared() -> None:
    words = {case.name.partition("_")[0] for case in CASES}
    assert words == {"split", "promote", "grouped"}
