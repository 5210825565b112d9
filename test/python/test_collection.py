"""Garbage collection waits while a kernel is compiled, and goes on as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from lego_mlir.collection import collected_later
from lego_mlir.compiler.options import Options
from lego_mlir.kernels import RowArgument, rows


@pytest.fixture(autouse=True)
def enabled() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_collection_waits_until_the_outermost_work_is_done() -> None:
    with collected_later():
        with collected_later():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


@collected_later()
def fails() -> None:
    raise ZeroDivisionError


def test_collection_goes_on_after_an_error() -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            fails()
        assert gc.isenabled()


def test_a_process_that_collects_nothing_stays_so() -> None:
    gc.disable()
    with collected_later():
        pass
    assert not gc.isenabled()


def test_no_cycles_are_sought_while_a_kernel_is_traced() -> None:
    seen = []

    def load(x: Any) -> Any:
        seen.append(gc.isenabled())
        return x.to("f32")

    arguments = {"x": RowArgument("f32"), "y": RowArgument("f32")}
    copy = rows((8, 64), name="copy", arguments=arguments, load=load, finish=lambda row: {"y": row})
    assert copy.compilation(Options()).placed is not None
    assert seen
    assert not any(seen)
    assert gc.isenabled()
