"""`bench report`: what was measured on an H200, and what may not be told."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from bench_command import bench

from bench.plots import drawing, shown
from bench.report import write
from bench.results import Quartiles, bandwidth, limit, ratio, read, time
from lego_mlir.diagnostics import LegoError

RECORDED = Path(__file__).with_name("recorded.jsonl")
SIZED = "transpose_f16_8192x8192"
FAILED = "transpose_f32_96x160"


def case(name: str) -> dict[str, Any]:
    return next(r for r in read(RECORDED) if r["case"] == name)


def made(**changes: Any) -> dict[str, Any]:
    """A result by hand, whose figures are easy to follow."""
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


def written(folder: Path, *results: dict[str, Any]) -> Path:
    file = folder / "results.jsonl"
    file.write_text("".join(json.dumps(r) + "\n" for r in results))
    return file


def test_a_ratio_is_the_median_of_the_rounds_with_quartiles() -> None:
    assert ratio(made(), "torch eager") == Quartiles(2.25, 3.0, 4.5)
    assert str(ratio(made(), "torch eager", column="call_us")) == "2.50 (2.25–2.75)"
    assert limit(made()) == "memcpy"
    assert time(made(), "ours") == 2.0
    assert bandwidth(made()) == 2.0


def test_the_tables_hold_these_figures(tmp_path: Path) -> None:
    text = write(written(tmp_path, made()))
    assert "| case | right | µs | TB/s | of copy | of torch eager |" in text
    assert "| good | yes | 2.00 | 2.00 | 0.50 (0.38–0.75) | 3.00 (2.25–4.50) |" in text
    assert "| good | 4.00 | 10.00 | 2.50 (2.25–2.75) |" in text
    assert "Medians of 3 interleaved rounds" in text
    assert "data of at least 244 MiB" in text
    assert (tmp_path / "results.md").read_text() == text


@pytest.mark.parametrize("who", ["ours", "torch eager"])
@pytest.mark.parametrize("verified", [False, None])
def test_no_ratio_from_what_is_not_verified(who: str, verified: bool | None) -> None:
    result = made()
    result["verified"] = {**result["verified"], who: verified}
    with pytest.raises(LegoError, match=f"the output of '{who}' is not verified"):
        ratio(result, "torch eager")
    del result["verified"][who]
    with pytest.raises(LegoError, match=f"the output of '{who}' is not verified"):
        ratio(result, "torch eager")


def test_what_is_wrong_has_no_figures(tmp_path: Path) -> None:
    verdict = {"elements": 8, "differing": 3, "outside": 0}
    wrong = made(case="bad", verified={"ours": False}, verdicts={"ours": verdict})
    peer = made(case="peer")
    peer["verified"] = {**peer["verified"], "torch eager": False}
    text = write(written(tmp_path, made(), wrong, peer))
    assert "| bad | **no** |  |  |  |  |" in text
    assert "- **bad**: 3 of 8 elements differ" in text
    assert "| peer | yes | 2.00 | 2.00 | 0.50 (0.38–0.75) | **wrong** |" in text
    assert "- peer: the output of torch eager is wrong" in text
    assert [r["case"] for r in shown([made(), wrong, peer])["f32"]] == ["good", "peer"]
    assert bandwidth(wrong) is None
    assert bandwidth(peer, "torch eager") is None


@pytest.mark.parametrize("what", ["commit", "device"])
def test_what_is_mixed_is_refused_unless_asked_for(tmp_path: Path, what: str) -> None:
    file = written(tmp_path, made(), made(case="other", **{what: "e"}))
    said = bench("report", file)
    assert said.returncode == 2
    assert f"these results are of several {what}s: " in said.stderr
    assert "hint: measure again, or say --mixed" in said.stderr
    assert not file.with_suffix(".md").exists()
    said = bench("report", file, "--mixed")
    assert said.returncode == 0
    assert "| other | yes |" in said.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no results"),
        ("{", "results.jsonl:1: error: this line is no result"),
        ('{"case": "a"}\n', "results.jsonl:1: error: this line is no result"),
        (json.dumps(made()) + "\n" + json.dumps(made()), "results.jsonl:2: error: the case good"),
    ],
)
def test_what_is_no_file_of_results_is_told(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text(text)
    said = bench("report", file)
    assert said.returncode == 2
    assert message in said.stderr


def test_a_measurement_of_an_h200(tmp_path: Path) -> None:
    file = tmp_path / "h200.jsonl"
    file.write_text(RECORDED.read_text())
    said = bench("report", file)
    assert said.returncode == 0, said.stderr
    result = case(SIZED)
    ours, theirs = result["us"]["ours"], result["us"]["torch.compile"]
    median = statistics.median(t / o for o, t in zip(ours, theirs, strict=True))
    row = next(line for line in said.stdout.splitlines() if line.startswith(f"| {SIZED} |"))
    assert f"| {statistics.median(ours):.2f} |" in row
    assert f"| {median:.2f} (" in row
    assert f"| {FAILED} | **no** |" in said.stdout
    assert f"- **{FAILED}**: no CUDA device can be used" in said.stdout
    assert "SM 1980 MHz" in said.stdout
    assert "triton 3.6.0" in said.stdout
    assert said.stdout == file.with_suffix(".md").read_text()


def test_the_figure_is_svg_and_always_the_same() -> None:
    results = read(RECORDED)
    assert {dtype: [r["case"] for r in group] for dtype, group in shown(results).items()} == {
        "f16": [SIZED],
        "i8": ["transpose_i8_96x160"],
    }
    figure = drawing(results)
    assert figure is not None
    assert figure == drawing(results)
    words = {e.text for e in ET.fromstring(figure).iter("{http://www.w3.org/2000/svg}text")}
    assert words >= {"8192×8192", "96×160", "f16, TB/s", "lego-mlir", "torch.compile", "copy"}


def test_the_bars_are_as_high_as_the_bandwidth(monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    heights: dict[str, list[float]] = {}
    draw = Axes.bar

    def seen(ax: Axes, x: Any, height: Any, *args: Any, **options: Any) -> Any:
        heights[options["label"]] = height
        return draw(ax, x, height, *args, **options)

    monkeypatch.setattr(Axes, "bar", seen)
    small = made(case="small", bytes=2_000_000)
    drawing([made(), small])
    assert heights["lego-mlir"] == [1.0, 2.0]  # by size
    assert heights["torch eager"] == pytest.approx([1 / 3, 2 / 3])
    assert "torch.compile" not in heights


def test_permutations_of_one_shape_are_told_apart() -> None:
    shape = {"shape": [2, 3, 4], "source": "row", "target": "row"}
    cases = [
        made(case=str(axes), reference={**shape, "axes": axes}) for axes in ([0, 2, 1], [2, 1, 0])
    ]
    figure = drawing(cases)
    assert figure is not None
    assert "→ (0, 2, 1)" in figure
    assert "→ (2, 1, 0)" in figure


def test_without_right_results_there_is_no_figure(tmp_path: Path) -> None:
    wrong = made(verified={"ours": False}, error="e")
    assert drawing([wrong]) is None
    assert "svg" not in write(written(tmp_path, wrong))
    assert not (tmp_path / "results.svg").exists()
