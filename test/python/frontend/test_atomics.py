"""Atomic updates: each kind on each element type, in both memories, run in the simulator."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

COUNT, SIZE = 128, 8
LINE = lg.OrderBy(lg.Row(SIZE))
INPUT = lg.OrderBy(lg.Row(COUNT))
DTYPES: dict[str, Any] = {
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
UPDATES: dict[str, Any] = {
    "add": (lg.atomic_add, np.add),
    "max": (lg.atomic_max, np.maximum),
    "min": (lg.atomic_min, np.minimum),
    "and": (lg.atomic_and, np.bitwise_and),
    "or": (lg.atomic_or, np.bitwise_or),
    "xor": (lg.atomic_xor, np.bitwise_xor),
}


def updated(kind: str, dtype: str, target: str) -> tuple[Any, Any]:
    """What threads of two blocks make of eight elements, and what NumPy makes of them."""
    function, reference = UPDATES[kind]

    def kernel(x: Any, out: Any) -> None:
        i = lg.block_id() * (COUNT // 2) + lg.thread_id()
        function(out, i % SIZE, x[i])

    types = {"x": lg.TensorType(dtype, INPUT), "out": lg.TensorType(dtype, LINE)}
    made = lg.kernel(grid=2, block=COUNT // 2, parameters=types)(kernel)
    numbers = np.random.default_rng(4).integers(-30, 30, COUNT).astype(DTYPES[dtype])
    out = np.full(SIZE, 3, DTYPES[dtype])
    want = np.full(SIZE, 3, DTYPES[dtype])
    reference.at(want, np.arange(COUNT) % SIZE, numbers)
    lg.launch(made.compile(target), numbers, out, device="sim")
    return out, want


@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for kind in UPDATES
        for dtype in DTYPES
        if kind in ("add", "max", "min") or dtype.startswith("i")
    ],
)
def test_every_update_counts(kind: str, dtype: str, target: str) -> None:
    out, want = updated(kind, dtype, target)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, "i16") for kind in [*UPDATES, "exchange"]),
        *((kind, "f16") for kind in ("add", "max", "min", "exchange")),
        *((kind, "bf16") for kind in ("add", "max", "min", "exchange")),
    ],
)
def test_an_update_of_two_bytes_touches_no_others(kind: str, dtype: str, target: str) -> None:
    """Neither those behind an odd number of elements, nor in shared memory those of a neighbour."""
    size = 7
    function = getattr(lg, f"atomic_{kind}")

    def kernel(x: Any, out: Any) -> None:
        own = lg.shared(dtype, lg.OrderBy(lg.Row(size)))
        t = lg.thread_id()
        own[t] = x[t]
        lg.barrier()
        function(own, t, x[t])
        lg.barrier()
        function(out, t, own[t])

    types = {name: lg.TensorType(dtype, lg.OrderBy(lg.Row(size))) for name in ("x", "out")}
    artifact = lg.kernel(grid=1, block=size, parameters=types)(kernel).compile(target)
    has_instruction = kind == "add" and (dtype == "f16" or (dtype == "bf16" and target == "sm_90a"))
    for memory in ("cta.shared", "gpu.global"):
        assert (f"atom.relaxed.{memory}.cas.b16" in artifact.ptx) != has_instruction
    assert "cas.b32" not in artifact.ptx
    numpy = ml_dtypes.bfloat16 if dtype == "bf16" else DTYPES[dtype]
    x = np.arange(-3, 4).astype(numpy)
    out = np.full(size, 3, numpy)
    lg.launch(artifact, x, out, device="sim")
    combine = UPDATES[kind][1] if kind in UPDATES else lambda _, new: new
    three = np.full(size, 3, numpy)
    np.testing.assert_array_equal(out, combine(three, combine(x, x)).astype(numpy))


def test_the_updates_are_relaxed_and_of_the_memory_that_threads_share() -> None:
    def kernel(x: Any, out: Any) -> None:
        own = lg.shared("i32", LINE)
        t = lg.thread_id()
        lg.atomic_add(own, t % SIZE, x[t])
        lg.atomic_add(out, t % SIZE, x[t])

    types = {"x": lg.TensorType("i32", INPUT), "out": lg.TensorType("i32", LINE)}
    ptx = lg.kernel(grid=1, block=COUNT, parameters=types)(kernel).compilation().text("ptx")
    assert "atom.relaxed.cta.shared.add.u32" in ptx
    assert "atom.relaxed.gpu.global.add.u32" in ptx


def test_a_histogram_by_shared_memory() -> None:
    def kernel(x: Any, out: Any) -> None:
        own = lg.shared("i32", LINE)
        t = lg.thread_id()
        for k in range(0, SIZE, 4):
            own[k + t % 4] = 0
        lg.barrier()
        lg.atomic_add(own, x[lg.block_id() * 4 + t].below(SIZE), 1)
        lg.barrier()
        for k in range(0, SIZE, 4):
            lg.atomic_add(out, k + t % 4, own[k + t % 4])

    types = {"x": lg.TensorType("i32", INPUT), "out": lg.TensorType("i32", LINE)}
    x = np.random.default_rng(6).integers(0, SIZE, COUNT).astype(np.int32)
    out = np.zeros(SIZE, np.int32)
    lg.kernel(grid=COUNT // 4, block=4, parameters=types)(kernel)(x, out, device="sim")
    np.testing.assert_array_equal(out, np.bincount(x, minlength=SIZE))


def test_the_value_before_is_a_ticket() -> None:
    def kernel(count: Any, out: Any) -> None:
        ticket = lg.atomic_add(count, 0, 1)
        out[ticket.below(COUNT)] = lg.thread_id().to("i32")

    one = lg.OrderBy(lg.Row(1))
    types = {"count": lg.TensorType("i32", one), "out": lg.TensorType("i32", INPUT)}
    count, out = np.zeros(1, np.int32), np.full(COUNT, -1, np.int32)
    lg.kernel(grid=1, block=COUNT, parameters=types)(kernel)(count, out, device="sim")
    assert count[0] == COUNT
    assert sorted(out) == list(range(COUNT))


def test_an_exchange_hands_every_value_on() -> None:
    def kernel(cell: Any, out: Any) -> None:
        out[lg.thread_id()] = lg.atomic_exchange(cell, 0, lg.thread_id().to("f32"))

    one = lg.OrderBy(lg.Row(1))
    types = {"cell": lg.TensorType("f32", one), "out": lg.TensorType("f32", INPUT)}
    cell, out = np.full(1, -1, np.float32), np.zeros(COUNT, np.float32)
    lg.kernel(grid=1, block=COUNT, parameters=types)(kernel)(cell, out, device="sim")
    assert sorted([*out, *cell]) == list(range(-1, COUNT))


def test_padding_is_not_updated() -> None:
    layout = lg.parse_layout("OrderBy(Row(10)).TileBy([3], [4])")

    def kernel(out: Any, old: Any) -> None:
        at = lg.block_id(), lg.thread_id()
        lg.atomic_add(old, at, lg.atomic_add(out, at, 5))

    types = {"out": lg.TensorType("i32", layout), "old": lg.TensorType("i32", layout)}
    out, old = np.full(10, 2, np.int32), np.full(10, 1, np.int32)
    lg.kernel(grid=3, block=4, parameters=types)(kernel)(out, old, device="sim")
    assert (out == 7).all()
    assert (old == 3).all()


@pytest.mark.parametrize(
    ("dtype", "update", "message", "hint"),
    [
        ("i8", lambda t: lg.atomic_add(t, 0, 1), "'t': an atomic update of i8", "of i32"),
        ("f8E5M2", lambda t: lg.atomic_max(t, 0, 1.0), "an atomic update of f8E5M2", "of i32"),
        ("f32", lambda t: lg.atomic_or(t, 0, 1.0), "the atomic update 'or' of f32", "add, max"),
        ("i32", lambda t: lg.atomic_add(t, slice(None), 1), "is of one element", "one by one"),
        ("i32", lambda t: lg.atomic_add(3, 0, 1), "atomic_add of 3, which is no tensor", "tensor,"),
        ("i32", lambda t: lg.atomic_add(t, 0, 1.5), "a value of type i32 is needed", ""),
    ],
)
def test_what_cannot_be_updated(dtype: str, update: Any, message: str, hint: str) -> None:
    def kernel(t: Any) -> None:
        update(t)

    types = {"t": lg.TensorType(dtype, LINE)}
    with pytest.raises(LegoError, match=message) as e:
        _ = lg.kernel(grid=1, block=1, parameters=types)(kernel).module
    assert hint in (e.value.hint or "")
