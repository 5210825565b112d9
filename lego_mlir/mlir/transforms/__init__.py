"""Transform operations of our own: the steps that schedules of `transforms/` are made of.

Each works on tiles that are read and written through layouts, and leaves layouts behind: where a
thread's elements lie, which of them an instruction moves, is again derived, by `lower_lego`.
"""

from __future__ import annotations

from typing import Any

from lego_mlir import data
from lego_mlir.mlir.bindings import ir, irdl
from lego_mlir.mlir.transforms import (
    contract_to_mma,
    contract_to_wgmma,
    copies_to_tma,
    distribute_copies,
    pack_shared,
    parameter,
    persist,
    pipeline_copies,
    prefetch_fragments,
    specialize_warps,
    stage_in_shared,
)
from lego_mlir.mlir.transforms.operation import Machine, Setting, attach, run_in

__all__ = ["Machine", "Setting", "load", "run_in"]

_OPERATIONS = (
    contract_to_mma,
    contract_to_wgmma,
    copies_to_tma,
    distribute_copies,
    pack_shared,
    parameter,
    persist,
    pipeline_copies,
    prefetch_fragments,
    specialize_warps,
    stage_in_shared,
)
"""The modules whose import makes their operations known."""


def load(context: Any) -> None:
    """Make the transform_lego dialect known to a context, where it is not yet."""
    if "transform_lego" in _loaded(context):
        return
    text = (data.dialects() / "transform_lego.irdl.mlir").read_text()
    with context:
        irdl.load_dialects(ir.Module.parse(text))
    attach(context)


def _loaded(context: Any) -> list[str]:
    return [] if not context.is_registered_operation("transform_lego.keep") else ["transform_lego"]
