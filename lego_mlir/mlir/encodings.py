"""The two encodings of tiles, `#lego.layout` and `#lego.shared`, told apart without their text."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir

LAYOUT_PREFIX = "#lego.layout<"
SHARED_PREFIX = "#lego.shared<"

_is_of_shared: dict[Any, bool] = {}
"""Whether encodings of a kind are those of tiles in shared memory, by the kind's id."""


def note_kinds() -> None:
    """Note the ids that the two encodings have in the current context, which is new.

    A context that is gone may have had the same ids for other kinds, so both are noted.
    """
    for prefix in (LAYOUT_PREFIX, SHARED_PREFIX):
        _is_of_shared[ir.Attribute.parse(f'{prefix}"">').typeid] = prefix == SHARED_PREFIX


def is_shared(attribute: Any) -> bool:
    """Return whether an encoding is that of tiles in shared memory."""
    return _is_of_shared.get(attribute.typeid, False)


def layout_text(attribute: Any) -> str:
    """Return the text of a layout, of either encoding."""
    prefix = SHARED_PREFIX if is_shared(attribute) else LAYOUT_PREFIX
    literal = str(attribute)[len(prefix) : -1]  # as MLIR prints it
    if "\\" not in literal:
        return literal[1:-1]
    return ir.StringAttr(ir.Attribute.parse(literal, context=attribute.context)).value  # type: ignore[no-any-return]
