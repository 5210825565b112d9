"""The simulator's reference is complete."""

from __future__ import annotations

from pathlib import Path

from lego_mlir.sim.ptx.table import NOT_MODELLED

REFERENCE = Path(__file__).resolve().parents[3] / "docs" / "simulator-reference.md"


def test_the_reference_lists_what_is_not_supported() -> None:
    text = REFERENCE.read_text()
    assert [name for name in NOT_MODELLED if f"`{name}`" not in text] == []
