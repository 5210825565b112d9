"""docs/schedules.md lists the steps and parameters of each schedule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lego_mlir import data

PAGE = Path(__file__).resolve().parents[3] / "docs" / "schedules.md"


NAMES = ["pipelined", "overlapped", "persistent", "attention", "cp_async", "streamed", "refilled"]


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_every_step_and_parameter_in_order(name: str) -> None:
    script = (data.transforms() / f"{name}.mlir").read_text()
    used = re.findall(r'"transform_lego\.(\w+)"\(', script)
    steps = [step for step in used if step != "parameter"]
    parameters = set(re.findall(r'transform_lego\.parameter"\(\)\s+\{name = "(\w+)"', script))
    (section,) = re.findall(rf"^## `{name}`.*?(?=^## )", PAGE.read_text(), re.M | re.S)
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", section, re.M)
    assert [step for step, _ in rows] == steps
    listed = {word for _, given in rows for word in re.findall(r"`(\w+)`", given)}
    assert listed == parameters
