"""CTAs of a cluster that run programs of their own, and add up their tiles."""

import re
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import lego_mlir as lg
from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError

ORDERS = ("late", "early", "random:1")
UFUNCS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}


def run(kernel: lg.Kernel, *arrays: Any) -> list[Any]:
    """Launch in all orders, which must leave the same bits, and return what the arrays become."""
    artifact = kernel.compile()
    found = []
    for order in ORDERS:
        copies = [np.copy(a) for a in arrays]
        runtime.launch(artifact, *copies, device=runtime.select("sim", order=order))
        found.append(copies)
    for copies in found[1:]:
        for one, other in zip(found[0], copies, strict=True):
            np.testing.assert_array_equal(one, other)
    return found[0]


def drawn(dtype: str, *shape: int) -> Any:
    numbers = np.random.default_rng(0).standard_normal(shape)
    return (8 * numbers).astype(dtype) if dtype == "int32" else numbers.astype(dtype)


def expected(x: Any, axis: int, by: str) -> Any:
    """Combine the tiles of a cluster, each slice beginning with that of the CTA that gets it."""
    count = len(x)
    slices = [np.split(tile, count, axis) for tile in x]
    own = [
        reduce(UFUNCS[by], [slices[(rank + k) % count][rank] for k in range(count)])
        for rank in range(count)
    ]
    return np.concatenate(own, axis)


@pytest.mark.parametrize(
    ("ctas", "axis", "dtype", "by"),
    [
        (2, -1, "float32", "sum"),
        (3, 0, "float32", "prod"),
        (4, 1, "float16", "max"),
        (8, 1, "int32", "sum"),
        (16, 0, "int32", "min"),
    ],
)
def test_each_cta_gets_its_slice(ctas: int, axis: int, dtype: str, by: str) -> None:
    """The bits are those of one order of the CTAs, whichever comes first."""
    shape, kind = (
        (48 if ctas == 3 else 16, 64),
        {"float32": "f32", "float16": "f16", "int32": "i32"}[dtype],
    )
    part = tuple(n // ctas if d == axis % 2 else n for d, n in enumerate(shape))
    given = lg.Tensor[kind, (2 * ctas, *shape)]
    result = lg.Tensor[kind, (2, *shape)]

    @lg.kernel(grid=2 * ctas, warps=2, cluster=ctas, own_programs=True)
    def total(x: given, y: result):  # type: ignore[valid-type]
        own = lg.reduce_scatter(x[lg.block_id(), :, :], axis, by=by)
        at = (lg.cta_rank(), 0) if axis == 0 else (0, lg.cta_rank())
        y.tile(*part)[lg.block_id() // ctas, *at] = own

    x = drawn(dtype, 2 * ctas, *shape)
    _, y = run(total, x, np.zeros((2, *shape), dtype))
    for cluster, found in enumerate(y):
        want = expected(x[cluster * ctas : (cluster + 1) * ctas], axis, by)
        np.testing.assert_array_equal(found, want)


F_4x8x64 = lg.Tensor["f32", (4, 8, 64)]
F_8x64 = lg.Tensor["f32", (8, 64)]


def test_what_needs_two_exchanges_waits_for_both() -> None:
    """Both send before either waits, and what is computed of both stays behind both."""

    @lg.kernel(grid=4, warps=1, cluster=4, own_programs=True)
    def means(x: F_4x8x64, y: F_8x64):
        tile = x[lg.block_id(), :, :]
        every = lg.broadcast_to(lg.sum(lg.abs(tile), axis=1, keepdims=True), (8, 4))
        scale, own = lg.reduce_scatter(every), lg.reduce_scatter(tile)
        y.tile(8, 16)[0, lg.cta_rank()] = own * (1.0 / scale)

    x = drawn("float32", 4, 8, 64)
    _, y = run(means, x, np.zeros((8, 64), np.float32))
    np.testing.assert_allclose(y, x.sum(0) / np.abs(x).sum((0, 2))[:, None], rtol=1e-5, atol=1e-6)
    text = means.compilation().text("index")
    *_, last = (m.start() for m in re.finditer("st.async", text))
    assert last < text.index("mbarrier.try_wait")


F_6x2x100 = lg.Tensor["f32", (6, 2, 100)]
F_6x100 = lg.Tensor["f32", (6, 100)]


@pytest.fixture(scope="module")
def rows() -> lg.Kernel:
    """Return a kernel whose programs add up rows in a loop, past the end of both tensors."""

    @lg.kernel(grid=2, warps=1, cluster=2, own_programs=True)
    def rows(x: F_6x2x100, y: F_6x100):
        rank = lg.cta_rank()
        for i in lg.loop(6):
            row = x.tile(1, 1, 128)[i, rank, 0].reshape(1, 128)
            y.tile(1, 64)[i, rank] = lg.exp(lg.reduce_scatter(row))

    return rows


def test_in_a_loop_it_alternates_between_two_rooms(rows: lg.Kernel) -> None:
    x = drawn("float32", 6, 2, 100)
    _, y = run(rows, x, np.zeros((6, 100), np.float32))
    np.testing.assert_allclose(y, np.exp(x.sum(axis=1)), rtol=1e-5)
    text = rows.compilation().text("index")
    assert text.count("nvvm.cluster.wait") == 1  # none between iterations


def test_the_interpreter_runs_the_ctas_of_a_cluster_beside_each_other(rows: lg.Kernel) -> None:
    lines = rows.check_each_step(drawn("float32", 6, 2, 100), np.zeros((6, 100), np.float32))
    assert any(line.startswith("assign_layouts: every element is the same") for line in lines)


def kernel(body: Callable[..., None], ctas: int = 2, *, own: bool = True) -> lg.Kernel:
    kinds = {"x": lg.TensorType("f32", lg.OrderBy(lg.Row(4, 64)))}
    return lg.kernel(grid=4, warps=1, cluster=ctas, own_programs=own, parameters=kinds)(body)


def test_clusters_need_programs_of_their_own() -> None:
    def shared(x: Any) -> None:
        x[0, :] = lg.reduce_scatter(x[0, :])

    with pytest.raises(LegoError, match="without clusters whose CTAs run programs") as error:
        kernel(shared, own=False).compile()
    assert "own_programs=True" in str(error.value.hint)


def test_the_cluster_divides_the_dimension() -> None:
    def uneven(x: Any) -> None:
        x.tile(1, 64)[0, 0] = lg.reduce_scatter(x[lg.block_id(), :][None, :], 0)

    with pytest.raises(LegoError, match="1 elements is not divided among the 2 CTAs"):
        kernel(uneven).compile()


def test_all_ctas_take_part() -> None:
    def some(x: Any) -> None:
        @lg.if_(lg.cta_rank() == 0)
        def first() -> None:
            x.tile(1, 32)[0, 0] = lg.reduce_scatter(x.tile(1, 64)[0, 0])

    with pytest.raises(LegoError, match=r"inside of 'scf.if'.* may not execute alike") as error:
        kernel(some).compile()
    assert error.value.location is not None


def test_restricted_tiles_are_restricted_afterwards() -> None:
    def restricted(x: Any) -> None:
        tile = x.tile(1, 64)[lg.block_id(), 0]
        x.tile(1, 32)[0, lg.cta_rank()] = lg.reduce_scatter(lg.restrict(tile, tile > 0.0))

    with pytest.raises(LegoError, match=r"valid where a lego\.restrict or control flow says so"):
        kernel(restricted).compile()


def test_an_explanation_says_what_is_sent(rows: lg.Kernel) -> None:
    assert "256 bytes from every other CTA of the cluster" in rows.explain()


def test_roles_of_ctas_that_meet_in_a_loop() -> None:
    """Rings run on while consumers of two CTAs exchange what they have multiplied."""
    m, n, k = 128, 64, 256
    kinds = lg.Tensor["f16", (m, k), 16], lg.Tensor["f16", (k, n), 16], lg.Tensor["f16", (m, n), 16]
    a_kind, b_kind, c_kind = kinds
    params = {"ctas": 0, "stages": 2, "overlap_epilogue": 0}

    @lg.kernel(grid=2, warps=4, cluster=2, own_programs=True, schedule="persistent", params=params)
    def gemm(a: a_kind, b: b_kind, c: c_kind):  # type: ignore[valid-type]
        rank = lg.cta_rank()
        for i in lg.loop(m // 64):

            @lg.fold(2, lg.zeros((64, n), "f32"))
            def part(step, part):  # type: ignore[no-untyped-def]
                x, y = a.tile(64, 64)[i, rank * 2 + step], b.tile(64, n)[rank * 2 + step, 0]  # noqa: B023
                return lg.dot(x, y, part)

            c.tile(64, n // 2)[i, rank] = lg.reduce_scatter(part).to("f16")

    a, b = drawn("float16", m, k), drawn("float16", k, n)
    lines = gemm.check_each_step(a, b, np.zeros((m, n), np.float16))
    assert "the schedule: every element is the same" in lines
    *_, c = run(gemm, a, b, np.zeros((m, n), np.float16))
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(c.astype(np.float32), expected, atol=5e-2)
