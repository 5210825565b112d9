"""`bench report`: results of an H200, and figures that must not be printed."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench_command import bench

from bench.permute.plot import bandwidth_figure, plotted
from bench.report.command import write_report
from bench.report.old_names import with_current_names
from bench.report.results import Quartiles, bandwidth, fastest_copy, ratio, read, time
from lego_mlir.diagnostics import LegoError

RECORDED = Path(__file__).with_name("recorded.jsonl")
SIZED = "transpose_f16_8192x8192"
FAILED = "transpose_f32_96x160"


def case(name: str) -> dict[str, Any]:
    return next(r for r in read(RECORDED) if r["case"] == name)


def permute_result(**changes: Any) -> dict[str, Any]:
    """Return a result whose figures are easy to follow."""
    result = {
        "case": "good",
        "commit": "c",
        "device": "d",
        "dtype": "f32",
        "variant": "",
        "reference": {"shape": [500, 1000], "axes": [1, 0], "source": "row", "target": "row"},
        "verified": {"ours": True, "memcpy": True, "copy kernel": True, "torch eager": True},
        "bytes": 4_000_000,
        "sets": 64,
        "us": {
            "ours": [2.0, 1.0, 4.0],
            "memcpy": [1.0, 1.0, 1.0],
            "copy kernel": [2.0, 2.0, 2.0],
            "torch eager": [6.0, 6.0, 6.0],
        },
        "call_us": {"ours": [4.0, 4.0, 4.0], "torch eager": [10.0, 8.0, 12.0]},
    }
    return result | changes


def result_file(folder: Path, *results: dict[str, Any]) -> Path:
    file = folder / "results.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    return file


def test_a_ratio_is_the_median_of_the_rounds_with_quartiles() -> None:
    assert ratio(permute_result(), "torch eager") == Quartiles(2.25, 3.0, 4.5)
    assert str(ratio(permute_result(), "torch eager", column="call_us")) == "2.50 (2.25–2.75)"
    assert fastest_copy(permute_result()) == "memcpy"
    assert time(permute_result(), "ours") == 2.0
    assert bandwidth(permute_result()) == 2.0


def test_the_tables_contain_the_medians(tmp_path: Path) -> None:
    text = write_report(result_file(tmp_path, permute_result()))
    assert "| case | correct | µs | TB/s | vs copy | vs torch eager |" in text
    assert "| good | yes | 2.00 | 2.00 | 0.50 (0.38–0.75) | 3.00 (2.25–4.50) |" in text
    assert "| good | 4.00 | 10.00 | 2.50 (2.25–2.75) |" in text
    assert "medians of 3 interleaved rounds" in text
    assert "at least 244 MiB of data" in text
    assert (tmp_path / "results.md").read_text() == text


@pytest.mark.parametrize("name", ["ours", "torch eager"])
@pytest.mark.parametrize("verified", [False, None])
def test_unverified_outputs_have_no_ratio(name: str, verified: bool | None) -> None:
    result = permute_result()
    result["verified"] = {**result["verified"], name: verified}
    with pytest.raises(LegoError, match=f"the output of '{name}' is not verified"):
        ratio(result, "torch eager")
    del result["verified"][name]
    with pytest.raises(LegoError, match=f"the output of '{name}' is not verified"):
        ratio(result, "torch eager")


def test_wrong_outputs_have_no_figures(tmp_path: Path) -> None:
    verdict = {"elements": 8, "differing": 3, "outside": 0}
    wrong = permute_result(case="bad", verified={"ours": False}, verdicts={"ours": verdict})
    peer = permute_result(case="peer")
    peer["verified"] = {**peer["verified"], "torch eager": False}
    text = write_report(result_file(tmp_path, permute_result(), wrong, peer))
    assert "| bad | **no** |  |  |  |  |" in text
    assert "- **bad**: 3 of 8 elements differ" in text
    assert "| peer | yes | 2.00 | 2.00 | 0.50 (0.38–0.75) | **wrong** |" in text
    assert "- peer: the output of torch eager is wrong" in text
    assert [r["case"] for r in plotted([permute_result(), wrong, peer])["f32"]] == ["good", "peer"]
    assert bandwidth(wrong) is None
    assert bandwidth(peer, "torch eager") is None


@pytest.mark.parametrize("key", ["commit", "device"])
def test_mixed_results_are_an_error_without_the_option(tmp_path: Path, key: str) -> None:
    file = result_file(tmp_path, permute_result(), permute_result(case="other", **{key: "e"}))
    done = bench("report", file)
    assert done.returncode == 2
    assert f"these results are of several {key}s: " in done.stderr
    assert "hint: measure again, or say --mixed" in done.stderr
    assert not file.with_suffix(".md").exists()
    done = bench("report", file, "--mixed")
    assert done.returncode == 0
    assert "| other | yes |" in done.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file holds no results"),
        ("{", "results.jsonl:1: error: this line is not the result"),
        ('{"case": "a"}\n', "results.jsonl:1: error: this line is not the result"),
        (
            json.dumps(permute_result()) + "\n" + json.dumps(permute_result()),
            "results.jsonl:2: error: the case good",
        ),
    ],
)
def test_files_that_hold_no_results_are_errors(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text)
    done = bench("report", file)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_report_of_an_h200_contains_its_medians(tmp_path: Path) -> None:
    file = tmp_path / "h200.jsonl"
    file.write_text(RECORDED.read_text())
    done = bench("report", file)
    assert done.returncode == 0, done.stderr
    result = case(SIZED)
    ours, theirs = result["us"]["ours"], result["us"]["torch.compile"]
    median = statistics.median(t / o for o, t in zip(ours, theirs, strict=True))
    row = next(line for line in done.stdout.splitlines() if line.startswith(f"| {SIZED} |"))
    assert f"| {statistics.median(ours):.2f} |" in row
    assert f"| {median:.2f} (" in row
    assert f"| {FAILED} | **no** |" in done.stdout
    assert f"- **{FAILED}**: no CUDA device can be used" in done.stdout
    assert "SM 1980 MHz" in done.stdout
    assert "triton 3.6.0" in done.stdout
    assert done.stdout == file.with_suffix(".md").read_text()


def test_the_figure_is_reproducible_svg() -> None:
    results = read(RECORDED)
    assert {dtype: [r["case"] for r in group] for dtype, group in plotted(results).items()} == {
        "f16": [SIZED],
        "i8": ["transpose_i8_96x160"],
    }
    figure = bandwidth_figure(results)
    assert figure is not None
    assert figure == bandwidth_figure(results)
    words = {e.text for e in ET.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")}
    assert words >= {"8192×8192", "96×160", "f16, TB/s", "lego-mlir", "torch.compile", "copy"}


def test_the_bars_are_as_high_as_the_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    heights: dict[str, list[float]] = {}
    draw = Axes.bar

    def record(ax: Axes, x: Any, height: Any, *args: Any, **options: Any) -> Any:
        heights[options["label"]] = height
        return draw(ax, x, height, *args, **options)

    monkeypatch.setattr(Axes, "bar", record)
    small = permute_result(case="small", bytes=2_000_000)
    bandwidth_figure([permute_result(), small])
    assert heights["lego-mlir"] == [1.0, 2.0]  # sorted by size
    assert heights["torch eager"] == pytest.approx([1 / 3, 2 / 3])
    assert "torch.compile" not in heights


def test_the_figure_distinguishes_permutations_of_one_shape() -> None:
    shape = {"shape": [2, 3, 4], "source": "row", "target": "row"}
    cases = [
        permute_result(case=str(axes), reference={**shape, "axes": axes})
        for axes in ([0, 2, 1], [2, 1, 0])
    ]
    figure = bandwidth_figure(cases)
    assert figure is not None
    assert "→ (0, 2, 1)" in figure
    assert "→ (2, 1, 0)" in figure


def test_without_correct_results_there_is_no_figure(tmp_path: Path) -> None:
    wrong = permute_result(verified={"ours": False}, error="e")
    assert bandwidth_figure([wrong]) is None
    assert "svg" not in write_report(result_file(tmp_path, wrong))
    assert not (tmp_path / "results.svg").exists()


def test_old_names_in_results_are_replaced() -> None:
    old = {
        "variant": "hmma",
        "case": "gemm_f16_4096_nn_hmma",
        "division": "tile 64×128×64, consumers 1, stages 8, group 4, 8 parts, alone, swap",
        "reference": {"kind": "groups", "rows": [8, 16]},
        "peers": ["cuBLAS", "cuBLAS, short sums"],
        "candidates": [{"schedule": "wgmma", "config": {"stages": 8, "parts": 8, "alone": True}}],
        "us": {"ours": [1.0], "tile 128×128×64, warps 2×2, stages 3, group 8": [2.0]},
    }
    assert with_current_names(old) == {
        "variant": "cp_async",
        "case": "gemm_f16_4096_nn_cp_async",
        "config": "tile 64×128×64, consumers 1, stages 8, raster group 4, split-K 8, "
        "one CTA per SM, swapped operands",
        "reference": {"kind": "grouped_gemm", "rows": [8, 16]},
        "peers": ["cuBLAS", "cuBLAS, fast accumulation"],
        "candidates": [
            {
                "schedule": "persistent",
                "config": {"stages": 8, "split_k": 8, "one_cta_per_sm": True},
            }
        ],
        "us": {"ours": [1.0], "tile 128×128×64, warps 2×2, stages 3, raster group 8": [2.0]},
    }
    assert with_current_names(with_current_names(old)) == with_current_names(old)
