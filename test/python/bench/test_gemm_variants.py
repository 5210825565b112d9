"""GEMM variants: which alternatives are compiled, and the report of all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import build as build_module
from bench.build import build, read_manifest
from bench.case import Case
from bench.gemm.references import GemmReference
from bench.gemm.variants import CASES, promotion_case, split_k_case
from bench.report.command import write_report
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import matmul

PEERS = ("cuBLAS", "cuBLAS, fast accumulation")


def variant_result(case: str = "promote_e4m3_1000_nt", **changes: Any) -> dict[str, Any]:
    """Return a result of 2 GFLOP: ours takes 4 µs, cuBLAS 3, one alternative 2; one is wrong."""
    reference = GemmReference(1000, 1000, 1000, "f8E4M3FN", "f16", "row", "col")
    names = ("ours", "promote 1", "promote 4", PEERS[0])
    return {
        "case": case,
        "commit": "c",
        "device": "d",
        "variant": "",
        "config": "tile 64",
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


def test_every_contender_has_a_line(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    file.write_text(json.dumps(variant_result()) + "\n")
    text = write_report(file)
    assert "## Promotion of fp8 accumulators" in text
    ours, wrong, four, cublas = rows(text)
    assert ours[1:7] == ["ours: tile 64", "yes", "2.0e-04", "4.00", "500.0", ""]
    assert ours[7] == "0.75 (0.75–0.75)"
    assert wrong[1:4] == ["promote 1", "**no**", "4.0e-04"]
    assert four[1:7] == ["**promote 4**", "yes", "6.0e-04", "2.00", "1000.0", "2.00 (2.00–2.00)"]
    assert cublas[1:7] == ["cuBLAS", "yes", "8.0e-04", "3.00", "666.7", "1.33 (1.33–1.33)"]
    assert not file.with_suffix(".svg").exists()


def test_each_kind_of_variant_has_its_own_table(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    results = [variant_result(), variant_result("split_e4m3_1000_nt", peers=["cuBLAS"])]
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    heads = [line for line in write_report(file).splitlines() if line.startswith("| case ")]
    assert [head.count("vs cuBLAS") for head in heads] == [2, 1]


def test_failed_cases_are_in_the_remarks(tmp_path: Path) -> None:
    file = tmp_path / "variants.jsonl"
    failed = variant_result("split_x", verified={"ours": False}, error="stopped after 3 s")
    failed = {key: value for key, value in failed.items() if key not in ("us", "verdicts")}
    file.write_text(json.dumps(variant_result()) + "\n" + json.dumps(failed) + "\n")
    assert "- **split_x**: stopped after 3 s" in write_report(file)


def test_split_k_cases_have_two_configs_for_each_split() -> None:
    case = split_k_case(128, 128, 16384)
    assert case.name == "split_f16_128x128x16384_nn"
    assert case.alternatives is not None
    splits = [kernel.cluster for kernel in case.alternatives("sm_90a").values()]
    assert [splits.count(n) for n in (2, 4, 8)] == [2, 2, 2]


def test_promotion_cases_set_promote() -> None:
    case = promotion_case(1024)
    assert case.alternatives is not None
    kernels = case.alternatives("sm_90a")
    assert list(kernels) == ["promote 1", "promote 4"]
    assert [kernel.params["promote"] for kernel in kernels.values()] == [1, 4]
    assert case.make("sm_90a").params["promote"] == 0


def test_alternatives_that_do_not_compile_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class FailingKernel:
        def compile(self, target: str) -> None:
            raise LegoError("no such kernel")

    def alternatives(target: str) -> dict[str, Any]:
        return {"good": matmul(64, 64, 64, target=target), "bad": FailingKernel()}

    case = Case(
        "a",
        lambda target: matmul(64, 64, 64, target=target),
        "f16",
        GemmReference(64, 64, 64, "f16", "f16"),
        alternatives=alternatives,
    )
    monkeypatch.setattr(build_module, "CASES", (case,))
    assert build(tmp_path, [], "sm_90a") == 1
    assert "error: no such kernel" in capsys.readouterr().out
    entry = read_manifest(tmp_path)["cases"]["a"]
    assert entry["candidates"] == [{"name": "good", "file": "a.0.lego"}]
    assert entry["config"].startswith("tile ")
    assert (tmp_path / "a.0.lego").exists()


def test_names_begin_with_the_kind_of_variant() -> None:
    words = {case.name.partition("_")[0] for case in CASES}
    assert words == {"split", "promote", "grouped"}
