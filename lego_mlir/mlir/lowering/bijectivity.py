"""Check that layouts are bijections, with errors at the operations that use them.

A user's own permutation is a pair of functions in the module, `GenP([n, n], @f, @f_inv)`. A used
layout whose pair is shown to be wrong is an error. `lego.check {bijective}` requires a proof, so
there an unknown result is an error, too.
"""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.algebra.verification.verdict import Verdict
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source


def verified(layout: Layout, source: Source, location: Any) -> Verdict:
    """Verify a layout; return whether it is proven to be a bijection, or unknown.

    Raises:
        LegoError: it is not a bijection; with elements that show it.
    """
    try:
        verdict = layout.verify()
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
    """Refuse an unknown verdict.

    Raises:
        LegoError: the verdict is unknown; with what to do.
    """
    if verdict.holds is None:
        sizes = "give its sizes values, in lego.sizes or by --set, and every element is looked at"
        tiles = "split the tile: in blocks inside one another each is looked at by itself"
        raise source.error(
            f"'lego.check': {verdict.detail}", location, hint=sizes if layout.symbols else tiles
        )
