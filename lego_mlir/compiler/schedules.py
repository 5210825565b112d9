"""Schedules: transform-dialect scripts that map a module to the hardware.

A schedule is a `.mlir` file whose module has `transform.with_named_sequence` and a named sequence
`@__transform_main`. Those that ship with the package go by their name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lego_mlir import data
from lego_mlir.diagnostics import LegoError, Place
from lego_mlir.mlir.bindings import transform_interpreter
from lego_mlir.mlir.context import Source, mlir_errors, parse

_ENTRY = "__transform_main"


def names() -> list[str]:
    """The schedules that ship with the package."""
    return sorted(path.stem for path in data.transforms().glob("*.mlir"))


def read(schedule: str) -> Source:
    """The text of a schedule, by its name or by a file's path.

    Raises:
        LegoError: there is none.
    """
    shipped = data.transforms() / f"{schedule}.mlir"
    path = shipped if schedule in names() else Path(schedule)
    try:
        return Source(str(path), path.read_text())
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is no text"
        raise LegoError(
            f"there is no schedule '{schedule}': {reason}",
            place=Place(str(path)),
            hint=f"give a file, or one of: {', '.join(names())}",
        ) from None


def apply(module: Any, source: Source, schedule: str) -> None:
    """Run a schedule on a module, in place.

    Raises:
        LegoError: it does not parse, has no `@__transform_main`, or a step of it fails.
    """
    script = read(schedule)
    library = parse(script, module.context)
    with module.context:
        entry = _entry(library, script)
        with mlir_errors(source, f"the schedule '{schedule}' failed", script):
            transform_interpreter().apply_named_sequence(module.operation, entry, library.operation)


def _entry(library: Any, script: Source) -> Any:
    for op in library.body.operations:
        if op.operation.name == "transform.named_sequence":
            name = op.operation.attributes["sym_name"].value
            if name == _ENTRY:
                return op.operation
    raise LegoError(
        f"the schedule has no named sequence @{_ENTRY}",
        place=Place(script.file, 1, 1),
        source=script.text,
        hint=f"transform.named_sequence @{_ENTRY}(%module: !transform.any_op {{...}})",
    )
