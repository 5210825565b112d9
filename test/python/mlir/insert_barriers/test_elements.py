"""Which threads meet, against pairs of single accesses in Python."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lego_mlir.algebra import OrderBy, Row
from lego_mlir.index import Sym
from lego_mlir.mlir.tile_passes.insert_barriers.elements import (
    Elements,
    Meeting,
    Meetings,
    elements,
)

CTA, CTAS, COLUMNS = 64, 2, 5000
_THREAD = Sym("t", 0, CTA * CTAS - 1)

Access = tuple[int, int, int, int, int, int]
"""Stride and modulus of threads, count and stride of registers, origin, and first idle thread."""

_accesses = st.tuples(
    st.sampled_from((0, 1, 2, 3, 40)),
    st.sampled_from((1, 32, 64, 128)),
    st.integers(1, 3),
    st.sampled_from((1, 2, 64, 2000)),
    st.integers(-3, 70),
    st.sampled_from((0, 1, 40, 128)),
)


def _elements(access: Access, *, of_warps: bool, is_absolute: bool) -> Elements:
    step, modulus, count, stride, origin, idle = access
    threads = np.arange(CTA * CTAS)
    start = 0 if is_absolute else Sym("k", 0, 9) * 128
    found = elements(
        OrderBy(Row(1, COLUMNS)),
        4,
        0,
        (0, _THREAD % modulus * step + start + origin),
        (),
        ((1, count, stride),),
        {_THREAD: threads},
        threads < idle,
        of_warps=of_warps,
        cta_threads=CTA,
    )
    assert found is not None
    return found


def _touched(access: Access, *, is_absolute: bool) -> list[tuple[int, int]]:
    """Return each element that is accessed, with its thread."""
    step, modulus, count, stride, origin, idle = access
    pairs = product(range(idle), range(count))
    found = [(t % modulus * step + r * stride + origin, t) for t, r in pairs]
    return [(x, t) for x, t in found if not is_absolute or 0 <= x < COLUMNS]


@settings(deadline=None, max_examples=80)
@given(_accesses, _accesses, st.booleans(), st.booleans())
@example((1, 64, 1, 1, 64, 128), (1, 128, 1, 1, 0, 128), False, False)  # the last that write
@example((1, 64, 1, 1, 0, 128), (1, 128, 1, 1, 0, 64), False, False)  # the first
def test_threads_that_meet(a: Access, b: Access, of_warps: bool, is_absolute: bool) -> None:
    levels = [Meeting.NONE]
    others = _touched(b, is_absolute=is_absolute)
    for place, thread in _touched(a, is_absolute=is_absolute):
        for other in (t for x, t in others if x == place):
            if thread // CTA != other // CTA:
                levels.append(Meeting.CLUSTER)
            elif thread // 32 != other // 32:
                levels.append(Meeting.CTA)
            elif thread != other or of_warps:
                levels.append(Meeting.WARP)
    x, y = (_elements(n, of_warps=of_warps, is_absolute=is_absolute) for n in (a, b))
    assert Meetings().of(x, y, same_time=True) is max(levels)
