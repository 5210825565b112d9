"""Loading the transform_lego dialect, with its operations and their implementations."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lego_mlir import data
from lego_mlir.mlir.bindings import ir, load_irdl
from lego_mlir.mlir.schedule.transform_step import DIALECT, attach


def load_transform_dialect(context: Any) -> None:
    """Load the dialect into `context` unless it is there already."""
    if context.is_registered_operation(f"{DIALECT}.{operations()[0]}"):
        return
    with context:
        load_irdl(ir.Module.parse(_text()))
    for name in operations():
        attach(name, context)


@cache
def operations() -> tuple[str, ...]:
    """Return the names of the dialect's operations."""
    return tuple(re.findall(r"irdl\.operation @(\w+)", _text()))


@cache
def _text() -> str:
    return (data.dialects() / f"{DIALECT}.irdl.mlir").read_text()
