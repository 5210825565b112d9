"""Equal expressions are one object, whichever threads make them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from lego_mlir.index import Sym
from lego_mlir.index.nodes import Int


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_share_nodes(hasty: None) -> None:
    threads = 4
    together = Barrier(threads)

    def make(_: int) -> list[Int]:
        together.wait()
        return [(Sym(f"x{k}", 0, 99) * 7 + Sym("y", 0, k)) // 12 for k in range(300)]

    with ThreadPoolExecutor(threads) as pool:
        first, *others = pool.map(make, range(threads))
    for other in others:
        assert all(a is b for a, b in zip(first, other, strict=True))
