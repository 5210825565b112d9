"""Targets and compiled code in a module: legoc removes the former and rejects the latter.

A `gpu.module` may name its targets, as what `--emit=nvvm` prints does. legoc compiles for the
target of `--target`, so those names go. A target that says more, such as files to link with
(`#nvvm.target<link = ["a.bc"]>`), would have MLIR read files or start programs that the user did
not name, and is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lego_mlir.mlir.context import Source

_PLAIN = re.compile(r"#nvvm\.target(<((O|chip|features|triple) = (\d+|\"[\w+,.-]*\")(, )?)*>)?")


def drop_targets(operations: Iterable[Any], source: Source) -> None:
    """Remove the targets of gpu.modules, in place.

    Args:
        operations: those of a module.
        source: the module's text.

    Raises:
        LegoError: a target says more than a chip, or an operation holds compiled code.
    """
    for op in operations:
        if op.name == "gpu.binary":
            raise source.error(
                "a gpu.binary holds code that is compiled already; legoc compiles gpu.modules",
                op.location,
                hint="leave it out, or give the gpu.module that it was made from",
            )
        if op.name != "gpu.module" or "targets" not in op.attributes:
            continue
        for target in op.attributes["targets"]:
            if not _PLAIN.fullmatch(str(target)):
                raise source.error(
                    f"a gpu.module's target may say the chip and no more, not {target}",
                    op.location,
                    hint="leave it out: --target says what kernels are compiled for",
                )
        del op.attributes["targets"]
