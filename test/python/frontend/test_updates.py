"""Updates of elements, `t[i] += v`: right where the element is one thread's own, else an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError

N = 1024
FLAT = lg.OrderBy(lg.Row(N))
TILES = lg.OrderBy(lg.Row(32, 32)).TileBy([4, 4], [8, 8])
SWIZZLED = lg.OrderBy(lg.GenP([32, 32], lg.swizzle(1, 1, 32)))
SMALL = lg.OrderBy(lg.Row(64))


def compiled(body: Any, layout: Any = FLAT, grid: Any = 4, block: Any = 256, **options: Any) -> Any:
    def kernel(h: Any, x: Any) -> None:
        body(h, x)

    types = {"h": lg.TensorType("i32", layout), "x": lg.TensorType("i32", FLAT)}
    return lg.kernel(grid=grid, block=block, parameters=types, **options)(kernel)


def line(h: Any, x: Any) -> None:
    h[lg.block_id() * 256 + lg.thread_id()] += 1


def applied(h: Any, x: Any) -> None:
    h[lg.OrderBy(lg.Row(4, 256)).apply(lg.block_id(), lg.thread_id())] += 1


def by_inverses(h: Any, x: Any) -> None:
    m, n = lg.OrderBy(lg.Row(4, 4)).inv(lg.block_id())
    i, j = lg.OrderBy(lg.Row(8, 8)).inv(lg.thread_id())
    h[m, n, i, j] = h[m, n, i, j] * 2 + x[lg.thread_id()]


def slices(h: Any, x: Any) -> None:
    m, n = lg.OrderBy(lg.Row(4, 4)).inv(lg.block_id())
    h[m, n, lg.thread_id(), :] += 1


def strided_loop(h: Any, x: Any) -> None:
    start = lg.block_id() * 64 + lg.thread_id()
    for i in lg.loop(N, start=start, step=128):
        h[i] += 1


def unrolled_beside_a_loop(h: Any, x: Any) -> None:
    for k in lg.loop(4):
        h[lg.thread_id() * 4 + k] += 1


def xor_of_ids(h: Any, x: Any) -> None:
    i, j = SWIZZLED.inv(lg.block_id() * 256 + lg.thread_id())
    h[SWIZZLED.apply(j, i)] += 1


def tree(h: Any, x: Any) -> None:
    own = lg.shared("i32", SMALL)
    t = lg.thread_id()
    own[t] = x[t]
    for width in (16, 8, 4, 2, 1):
        lg.barrier()
        own[t] = own[t] + own[lg.minimum(t + width, 31)]
    h[lg.block_id() * 32 + t] = own[t]


def loop_with_barriers(h: Any, x: Any) -> None:
    own = lg.shared("i32", SMALL)
    for k in lg.loop(32):
        own[(lg.thread_id() + k) % 32] += 1
        lg.barrier()


def own_row(h: Any, x: Any) -> None:
    rows = h.view(lg.OrderBy(lg.Row(64, 16)))
    rows[lg.thread_id(), x[lg.thread_id()].below(16)] += 1


def first_case_only(h: Any, x: Any) -> None:
    def store() -> None:
        h[lg.block_id()] += 1

    lg.choose(lg.minimum(lg.thread_id(), 1) * -1 + 1, [lambda: None, store])


def one_thread(h: Any, x: Any) -> None:
    h[x[0].below(64)] += 1


def shifted_by_the_host(h: Any, x: Any) -> None:
    h[lg.thread_id()] -= x[lg.thread_id()]


ALLOWED: dict[str, Any] = {
    "line": (line, {}),
    "a line of many": (line, {"grid": 1 << 22, "layout": lg.OrderBy(lg.Row(1 << 30))}),
    "applied": (applied, {}),
    "inverses": (by_inverses, {"layout": TILES, "grid": 16, "block": 64}),
    "slices": (slices, {"layout": TILES, "grid": 16, "block": 8}),
    "strided loop": (strided_loop, {"grid": 2, "block": 64}),
    "loop within": (unrolled_beside_a_loop, {"grid": 1}),
    "xor": (xor_of_ids, {}),
    "tree": (tree, {"grid": 2, "block": 32}),
    "barriers": (loop_with_barriers, {"grid": 2, "block": 32}),
    "own row": (own_row, {"grid": 1, "block": 64}),
    "case": (first_case_only, {"grid": 4, "block": 32}),
    "one thread": (one_thread, {"grid": 1, "block": 1}),
    "difference": (shifted_by_the_host, {"grid": 1}),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_an_element_of_ones_own(name: str) -> None:
    body, options = ALLOWED[name]
    assert ".store" in compiled(body, **options).compilation().text("index")


def constant(h: Any, x: Any) -> None:
    h[0] += 1


def of_the_block(h: Any, x: Any) -> None:
    h[lg.block_id()] += x[lg.thread_id()]


def of_the_thread(h: Any, x: Any) -> None:
    h[lg.thread_id()] = x[lg.block_id()] + h[lg.thread_id()]


def halved(h: Any, x: Any) -> None:
    h[(lg.block_id() * 256 + lg.thread_id()) // 2] += 1


def written_out(h: Any, x: Any) -> None:
    i = lg.thread_id() % 16
    h[i] = lg.maximum(h[lg.thread_id() % 16], 3)


def loop_without_barriers(h: Any, x: Any) -> None:
    own = lg.shared("i32", SMALL)
    for k in lg.loop(32):
        own[(lg.thread_id() + k) % 32] += 1


def through_a_loop(h: Any, x: Any) -> None:
    @lg.fold(4, h[0])
    def total(k: Any, total: Any) -> Any:
        return total + x[k]

    h[0] = total


@pytest.mark.parametrize(
    ("body", "block", "update"),
    [
        (constant, 256, "add"),
        (of_the_block, 256, "add"),
        (of_the_thread, 256, "add"),
        (halved, 256, "add"),
        (written_out, 256, "max"),
        (loop_without_barriers, 32, "add"),
        (through_a_loop, 32, "add"),
    ],
    ids=lambda x: x.__name__ if callable(x) else str(x),
)
def test_an_element_of_several_threads(body: Any, block: int, update: str) -> None:
    with pytest.raises(LegoError, match="several threads update the same element") as e:
        compiled(body, block=block).compilation().text("index")
    assert e.value.location is not None
    assert e.value.location.file.endswith("test_updates.py")
    name = "tensor" if body is loop_without_barriers else "h"
    assert f"lg.atomic_{update}({name}, index, value)" in str(e.value.hint)


def histogram(h: Any, x: Any) -> None:
    h[x[lg.block_id() * 256 + lg.thread_id()].below(64)] += 1


def data_twice(h: Any, x: Any) -> None:
    i = lg.block_id() * 256 + lg.thread_id()
    h[x[i].below(64)] = h[x[i].below(64)] + 1


@pytest.mark.parametrize("body", [histogram, data_twice])
def test_an_index_out_of_memory(body: Any) -> None:
    with pytest.raises(LegoError, match="'h' is updated here depends on loaded data") as e:
        compiled(body).compilation().text("index")
    assert "lg.atomic_add(h, index, value)" in str(e.value.hint)


def test_an_index_too_costly_to_evaluate_is_an_error() -> None:
    def squares(h: Any, x: Any) -> None:
        i = lg.block_id() * 256 + lg.thread_id()
        h[i * i % N] += 1

    with pytest.raises(LegoError, match="it is not known whether each element of tensor 'h'"):
        compiled(squares, grid=1 << 16).compilation().text("index")


def test_a_promise_is_believed() -> None:
    def scattered(h: Any, x: Any) -> None:
        h.exclusive()[x[lg.thread_id()].below(N)] += 1

    kernel = compiled(scattered, grid=1)
    x = np.random.default_rng(0).permutation(N).astype(np.int32)
    h = np.zeros(N, np.int32)
    kernel(h, x, device="sim")
    np.testing.assert_array_equal(h[x[:256]], 1)
    assert h.sum() == 256


def test_what_is_read_elsewhere_is_no_update() -> None:
    def moved(h: Any, x: Any) -> None:
        h[lg.thread_id() // 2] = h[lg.thread_id() + 512]

    assert compiled(moved, grid=1).compilation().text("index")


def test_a_schedule_owns_no_elements() -> None:
    def counted(h: Any, x: Any) -> None:
        h[lg.block_id()] += 1

    with pytest.raises(LegoError, match="several threads update the same element of tensor 'h'"):
        compiled(counted, grid=4, schedule="unroll").compilation().text("index")


def test_one_thread_of_a_cta_stores_what_is_no_tile() -> None:
    def sums(h: Any, x: Any) -> None:
        h[lg.block_id()] = h[lg.block_id()] + lg.sum(x.tile(256)[lg.block_id()])

    h, x = np.arange(N, dtype=np.int32), np.ones(N, np.int32)
    compiled(sums, block=None, warps=2)(h, x, device="sim")
    assert list(h[:5]) == [256, 257, 258, 259, 4]
