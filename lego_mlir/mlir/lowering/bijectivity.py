"""Check that layouts are bijections, with errors at the operations that use them.

A user's own permutation is a pair of functions in the module, `GenP([n, n], @f, @f_inv)`. A used
layout whose pair is shown to be wrong is an error. Of a window that goes for the layout that it
looks at; to store through it, each index needs an element of its own. `lego.check {bijective}` and
`{injective}` require a proof, so there an unknown result is an error, too.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.verification.verdict import Verdict
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source


def verified(layout: Layout, source: Source, location: Any) -> Verdict:
    """Verify a layout, or what a window looks at; return whether it is a bijection, or unknown.

    Raises:
        LegoError: it is not a bijection; with elements that show it.
    """
    try:
        verdict = layout.base.verify()
    except LegoError as e:
        raise (e if e.location else source.error(e.message, location, hint=e.hint)) from None
    if verdict.holds is False:
        raise source.error(
            verdict.detail,
            location,
            hint="each element goes to a position of its own, 0 to size - 1, and comes back",
        )
    return verdict


def check_known(verdict: Verdict, layout: Layout, source: Source, location: Any) -> None:
    """Refuse a verdict that does not hold, or is unknown.

    Raises:
        LegoError: it is such a verdict; with what to do.
    """
    if verdict.holds is False:
        raise source.error(
            f"'lego.check': {verdict.detail}",
            location,
            hint="a window may be injective all the same: {layout = #L, injective} asks for that"
            if verdict.counterexample is None
            else None,
        )
    if verdict.holds is None:
        sizes = "give its sizes values, in lego.sizes or by --set, and every element is looked at"
        tiles = "split the tile: in blocks inside one another each is looked at by itself"
        raise source.error(
            f"'lego.check': {verdict.detail}", location, hint=sizes if layout.symbols else tiles
        )


def check_stored(op: Any, layout: Layout, source: Source) -> None:
    """Refuse to store through a window in which several indices may have one element.

    Raises:
        LegoError: it is not proven that each index has an element of its own.
    """
    if layout.window is None:
        return
    wrong = why_not_stored(layout)
    if wrong is not None:
        raise source.error(
            f"'{op.name}' stores through a window: {wrong[0]}", op.location, wrong[1]
        )


def why_not_stored(layout: Layout) -> tuple[str, str] | None:
    """Return why nothing can be stored through a window, and a hint; `None` if it can."""
    verdict = layout.verify_injective()
    if verdict.holds is True:
        return None
    return (
        verdict.detail,
        "store through the layout that the window looks at: windows that repeat "
        "elements are for loads",
    )
