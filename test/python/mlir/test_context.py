"""Contexts that modules of a thread share."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from lego_mlir.compiler.driver import Compilation
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import context
from lego_mlir.mlir.context import Source, shared_context

MODULE = """\
func.func @f(%x: memref<64xf32>) {
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %g = %c1)
             threads(%t, %u, %v) in (%w = %c64, %y = %c1, %z = %c1) {
    %n = arith.constant NUMBER : f32
    memref.store %n, %x[%t] : memref<64xf32>
    gpu.terminator
  }
  return
}
"""


def test_a_thread_keeps_its_context_for_some_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_MOST_USES", 3)

    def contexts() -> list[object]:
        return [shared_context() for _ in range(7)]

    with ThreadPoolExecutor(1) as other:  # a thread that has no context yet
        found = other.submit(contexts).result()
    assert [a is b for a, b in itertools.pairwise(found)] == [1, 1, 0, 1, 1, 0]
    assert shared_context() not in found


def test_modules_of_one_context_are_compiled_each_for_itself() -> None:
    """Stages of several modules alternate, and one of the modules is wrong."""
    one, two = (Compilation(Source("m.mlir", MODULE.replace("NUMBER", n))) for n in ("1.5", "2.5"))
    first = one.index
    with pytest.raises(LegoError, match="expected"):
        Compilation(Source("m.mlir", MODULE.replace("NUMBER", "nothing")))
    assert str(0x40200000) in two.ptx
    assert one.index is first
    assert str(0x3FC00000) in one.ptx
    again = Compilation(Source("m.mlir", MODULE.replace("NUMBER", "1.5")))
    assert again.ptx == one.ptx
