"""The report of products: rates, ratios, and what may not be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench_command import bench

from bench.gemm.cases import CASES, CUBLAS, FAST, name_of
from bench.gemm.plots import drawing, shown
from bench.gemm.product import Product
from bench.gemm.report import code_table, elsewhere, summary_table
from bench.report import write
from bench.results import rate


def made(n: int = 1000, dtype: str = "f16", variant: str = "", **changes: Any) -> dict[str, Any]:
    """A result by hand: 2 TFLOP in 4 ms, at n = 1000 in 4 µs; cuBLAS takes 3 and 5."""
    reference = Product(n, n, n, dtype, "f16", "row", "col")
    us = 4e-9 * n**3
    verdict = {"elements": 8, "differing": 0, "outside": 0, "deviation": 2e-4, "allowed": 3e-4}
    result = {
        "case": name_of(reference, variant),
        "commit": "c",
        "device": "d",
        "dtype": dtype,
        "variant": variant,
        "reference": {x: getattr(reference, x) for x in reference.__dataclass_fields__},
        "verified": {"ours": True, CUBLAS: True},
        "verdicts": {"ours": verdict},
        "bytes": 6_000_000,
        "sets": 40,
        "us": {"ours": [us] * 3, CUBLAS: [us * 3 / 4, us * 5 / 4, us * 5 / 4]},
    }
    return result | changes


def written(folder: Path, *results: dict[str, Any]) -> Path:
    file = folder / "gemm.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    return file


def test_the_table_holds_rates_and_ratios(tmp_path: Path) -> None:
    assert rate(made()) == pytest.approx(500)
    text = write(written(tmp_path, made(), made(2000)))
    row = next(x for x in text.splitlines() if x.startswith("| gemm_f16_1000_nt |"))
    assert row.split(" | ")[1:] == [
        "yes",
        "2.0e-04",
        "4.00",
        "500.0",
        "400.0",
        "1.25 (1.00–1.25) |",
    ]
    assert "| f16, squares | cuBLAS | 2 of 2 | 2 | 1.250 | 1.25 (gemm_f16_1000_nt) |" in text
    assert "QuACK" not in text
    assert (tmp_path / "gemm.svg").exists()


def test_peers_of_other_runs_are_marked_as_such(tmp_path: Path) -> None:
    nn = made(1024)
    nn["reference"] |= {"b": "row"}
    text = write(written(tmp_path, nn | {"case": "gemm_f16_1024_nn"}))
    assert "In brackets, not of this run: QuACK" in text
    row = next(x for x in text.splitlines() if x.startswith("| gemm_f16_1024_nn | yes"))
    assert "| (QuACK of cuBLAS) |" in text
    assert "| 0.78 |" in row
    known = {case.name for case in CASES}
    assert all(told["cases"].keys() <= known for told in elsewhere().values())


def test_short_sums_are_a_peer_of_their_own(tmp_path: Path) -> None:
    eight = made(dtype="f8E4M3FN")
    eight["verified"] = {**eight["verified"], FAST: True}
    eight["us"] = {**eight["us"], FAST: [2.0] * 3}
    text = write(written(tmp_path, eight))
    assert "| gemm_e4m3_1000_nt | yes |" in text
    assert "| 1000.0 | 0.50 (0.50–0.50) |" in text
    assert f"| f8E4M3FN, squares | {FAST} | 1 of 1 | 0 | 0.500 |" in text


def test_what_is_wrong_has_no_figures(tmp_path: Path) -> None:
    bad = made(2000, verified={"ours": False, CUBLAS: True})
    bad["verdicts"] = {"ours": {"elements": 8, "differing": 3, "outside": 0, "deviation": 1.0}}
    peer = made(3000, verified={"ours": True, CUBLAS: False})
    text = write(written(tmp_path, made(), bad, peer))
    assert "| gemm_f16_2000_nt | **no** |  |  |  | " in text
    assert "- **gemm_f16_2000_nt**: 3 of 8 elements differ" in text
    assert "| gemm_f16_3000_nt | yes | 2.0e-04 | 108.00 | 500.0 |  | **wrong** |" in text
    assert "1 of 3 | 1 | 1.250" in text
    lines = shown([made(), made(4000), bad, peer])["f16"]["NT"]
    assert [r["reference"]["m"] for r in lines] == [1000, 3000, 4000]


def test_a_case_that_failed_stands_in_the_report(tmp_path: Path) -> None:
    failed = {k: v for k, v in made(2000).items() if k not in ("us", "verdicts", "device")}
    failed |= {"verified": {"ours": False}, "error": "stopped after 3 s"}
    text = write(written(tmp_path, made(), failed))
    assert "- **gemm_f16_2000_nt**: stopped after 3 s" in text
    assert "| f16, squares | cuBLAS | 1 of 2 |" in text


def test_products_and_movements_do_not_mix(tmp_path: Path) -> None:
    move = made(2000) | {"reference": {"shape": [2, 2], "axes": [1, 0]}}
    said = bench("report", written(tmp_path, made(), move))
    assert said.returncode == 2
    assert "these results are of products and of movements" in said.stderr
    assert "Traceback" not in said.stderr


def test_the_code_is_told_where_it_is_known() -> None:
    assert code_table([made()]) == ""
    resources = {"gemm": {"registers": 168, "local": 0, "static": 1024, "dynamic": 195584}}
    loop = {"HGMMA": 8, "SYNCS": 6, "MOV": 3, "BRA": 7}
    copies = {"UTMALDG": 2, "SYNCS": 1}
    sass = {"gemm": {"loop": loop, "copies": copies, "kernel": {"STL": 2, "LDL": 1}}}
    text = code_table([made(resources=resources, sass=sass), made(2000, resources=resources)])
    head, _, first, second = text.splitlines()
    assert head == (
        "| case | registers | local | shared | HGMMA | UTMALDG | SYNCS | other | local accesses |"
    )
    assert first == "| gemm_f16_1000_nt | 168 | 0 | 192.0 | 8 | 2 | 6 | 10 | 3 |"
    assert second == "| gemm_f16_2000_nt | 168 | 0 | 192.0 |  |  |  |  |  |"


def test_the_summary_keeps_schedules_and_shapes_apart() -> None:
    thin = made(1000, variant="hmma")
    thin["reference"] |= {"m": 16}
    text = summary_table([made(), made(variant="hmma"), thin])
    rows = [line.split(" | ")[0][2:] for line in text.splitlines()[2:]]
    assert rows == ["f16, squares", "f16, squares, hmma", "f16, other shapes, hmma"]


def test_the_figure_is_svg_and_always_the_same() -> None:
    results = [made(n) for n in (512, 1024)] + [made(n, variant="hmma") for n in (512, 1024)]
    figure = drawing(results)
    assert figure is not None
    assert figure == drawing(results)
    words = {e.text for e in ET.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")}
    assert words >= {"512", "1024", "f16", "f16, hmma", "NT", CUBLAS, "TFLOP/s"}
    assert drawing([made()]) is None  # one size is no line
