"""Products by Hopper's schedule, in the simulator: every element, with all of its checks."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest
from wgmma_kernels import Array, WgmmaKernel, check

from lego_mlir.algebra import OrderBy, RegP
from lego_mlir.artifact import Artifact, TensorMapParameter
from lego_mlir.diagnostics import LegoError

ORDERS = ("late", "early", "random")
TRANSPOSES = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("columns", TRANSPOSES)
def test_all_transposes(columns: tuple[bool, bool], order: str) -> None:
    check(WgmmaKernel(column_major=columns), order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("overlap_epilogue", [0, 1])
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("persistent_ctas", [2, 132])
def test_how_it_is_scheduled(
    order: str, persistent_ctas: int, cluster: int, overlap_epilogue: int
) -> None:
    """Blocks that stay or not, in clusters or not, whose results leave at once or later."""
    parameters = {
        "persistent_ctas": persistent_ctas,
        "cluster": cluster,
        "overlap_epilogue": overlap_epilogue,
        "stages": 3,
    }
    artifact = check(WgmmaKernel(k=192, parameters=parameters), order)
    assert artifact.launches[0].grid == (min(persistent_ctas, 4), 1, 1)
    assert (f".explicitcluster\n.reqnctapercluster {cluster}" in artifact.ptx) == (cluster > 1)
    assert artifact.ptx.count("multicast::cluster") == (1 if cluster > 1 else 0)


@pytest.mark.parametrize("stages", [2, 7])
def test_rings_of_any_length(stages: int) -> None:
    """Shorter and longer than the loop over k."""
    check(WgmmaKernel(k=256, parameters={"stages": stages, "persistent_ctas": 3}), "random")


@pytest.mark.parametrize("columns", TRANSPOSES)
@pytest.mark.parametrize("persistent_ctas", [2, 132])
def test_partial_tiles(columns: tuple[bool, bool], persistent_ctas: int) -> None:
    check(
        WgmmaKernel(
            72, 136, 88, column_major=columns, parameters={"persistent_ctas": persistent_ctas}
        ),
        "random",
    )


@pytest.mark.parametrize("size", [(8, 8, 8), (64, 8, 16), (1, 64, 64), (3, 16, 200)])
def test_less_than_a_tile(size: tuple[int, int, int]) -> None:
    check(WgmmaKernel(*size))


@pytest.mark.parametrize(
    ("tile", "groups"),
    [
        *(((64, 8, 64), 1), ((64, 24, 64), 1), ((64, 128, 32), 1), ((64, 256, 16), 1)),
        *(((128, 64, 64), 1), ((128, 128, 64), 2)),
    ],
)
def test_tiles_of_every_shape_are_correct(tile: tuple[int, int, int], groups: int) -> None:
    """Narrow ones, wide ones in panels, several instructions below one another, warpgroups."""
    bm, bn, bk = tile
    columns = (False, bn in (8, 24))  # rows of B that no swizzling mode has
    problem = WgmmaKernel(bm + 8, bn + 8, 2 * bk, tile, columns, consumers=groups)
    artifact = check(problem, "random")
    assert artifact.launches[0].block == (128 * (groups + 1), 1, 1)


def test_three_warpgroups_and_their_registers() -> None:
    registers = {"producer_registers": 32, "consumer_registers": 160}
    check(WgmmaKernel(192, 64, 128, (192, 64, 64), consumers=3, parameters=registers))
    with pytest.raises(LegoError, match="94208 registers") as caught:
        WgmmaKernel(192, 64, 128, (192, 64, 64), consumers=3).artifact()
    assert caught.value.hint == "--param consumer_registers=152"


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
@pytest.mark.parametrize("cluster", [1, 2])
def test_fp8(element: str, cluster: int) -> None:
    check(
        WgmmaKernel(
            k=256,
            tile=(64, 64, 128),
            column_major=(False, True),
            element=element,
            parameters={"cluster": cluster},
        )
    )


@pytest.mark.parametrize("columns", TRANSPOSES)
def test_bf16(columns: tuple[bool, bool]) -> None:
    check(WgmmaKernel(column_major=columns, element="bf16", out="bf16"))


def test_what_becomes_of_the_sums() -> None:
    """Computed by the threads that hold them, and stored in f32."""
    epilogue = """
      %one = arith.constant dense<1.0> : vector<64x64xf32>
      %more = arith.addf %sum, %one : vector<64x64xf32>
      %result = arith.maximumf %more, %zero : vector<64x64xf32>
    """

    def expected(sums: Array) -> Array:
        return (sums + 1).clip(0)

    check(WgmmaKernel(out="f32", epilogue=epilogue), "random", expected=expected)


def test_the_tile_that_a_cluster_shares_follows_from_the_layout_of_the_blocks() -> None:
    """Neighbours in a row of tiles have A in common, neighbours in a column B."""
    down = str(OrderBy(RegP([2, 2], [1, 0])))
    for rasterization, common in ((None, "a"), (down, "b")):
        problem = WgmmaKernel(rasterization=rasterization, parameters={"cluster": 2})
        artifact = check(problem, "random")
        boxes = {p.argument: p.box for p in maps_of(artifact)}
        # The common tile's box is half a tile, which each of the two blocks fetches.
        assert boxes["ab".index(common)] == (64, 32)
        assert boxes["ba".index(common)] == (64, 64)


def test_blocks_that_share_nothing_fetch_nothing_together() -> None:
    """The two blocks of a cluster have neither row nor column in common."""
    rasterization = "OrderBy(Col(2, 2)).OrderBy(GenP([2, 2], swizzle(1, 1, 2)))"
    artifact = check(WgmmaKernel(rasterization=rasterization, parameters={"cluster": 2}), "random")
    assert "multicast::cluster" not in artifact.ptx


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_a_square_of_blocks_shares_rows_and_columns(order: str) -> None:
    rasterization = "OrderBy(GenP([2, 2], antidiagonal))"
    problem = WgmmaKernel(rasterization=rasterization, parameters={"cluster": 4})
    artifact = check(problem, order)
    assert {p.argument: p.box for p in maps_of(artifact)}[0] == (64, 32)
    assert artifact.ptx.count("multicast::cluster [") == 2


@pytest.mark.parametrize("pdl", [0, 1])
def test_a_launch_that_waits_by_itself(pdl: int) -> None:
    artifact = check(WgmmaKernel(parameters={"pdl": pdl}), "random")
    (launch,) = artifact.launches
    assert launch.pdl == bool(pdl)
    for instruction in ("griddepcontrol.wait", "griddepcontrol.launch_dependents"):
        assert artifact.ptx.count(instruction) == pdl


def test_the_launch_and_its_tensor_maps(tmp_path: Path) -> None:
    problem = WgmmaKernel(136, 72, 200, column_major=(True, False))
    artifact = problem.artifact()
    a, b, c = maps_of(artifact)
    assert (a.argument, b.argument, c.argument) == (0, 1, 2)
    assert (a.shape, a.strides, a.box, a.swizzle) == ((136, 200), (272,), (64, 64), 128)
    assert (b.shape, b.strides, b.box, b.swizzle) == ((72, 200), (144,), (64, 64), 128)
    assert (c.shape, c.strides, c.box, c.swizzle) == ((72, 136), (144,), (64, 64), 128)
    assert artifact.ptx.count(".param .align 64 .b8") == 3
    assert [x.access for x in artifact.arguments] == ["read", "read", "write"]
    artifact.save(tmp_path / "k.lego")
    assert Artifact.load(tmp_path / "k.lego") == artifact


def test_it_assembles_at_full_speed() -> None:
    compilation = WgmmaKernel().compilation()
    assert compilation.cubin.warnings == ()
    assert compilation.cubin.resources[0].spill_store_bytes == 0


def random_problem(seed: int) -> WgmmaKernel:
    """Any sizes, tile, transposes and parameters that go together."""
    draw = random.Random(seed).choice
    element = draw(["f16", "bf16", "f8E4M3FN"])
    unit = 8 if element != "f8E4M3FN" else 16  # elements of 16 bytes
    groups = draw([1, 2])
    bm, bn, bk = 64 * groups * draw([1, 2]), draw([16, 32, 64, 128]), draw([2, 4, 8]) * unit
    cluster, steps = draw([1, 2, 4]), draw([1, 3, 5])
    across, down = cluster * draw([1, 2]), draw([1, 2])
    columns = (draw([False, True]), draw([False, True])) if unit == 8 else (False, True)
    chunks = bm // 64 // groups * max(1, bn // 64)
    return WgmmaKernel(
        down * bm - draw([0, unit]),
        across * bn - draw([0, 8]) if unit == 8 else across * bn,
        steps * bk - draw([0, unit]),
        (bm, bn, bk),
        columns,
        element,
        "bf16" if element == "bf16" else "f16",
        groups,
        parameters={
            "cluster": cluster,
            "persistent_ctas": draw([cluster, 2 * cluster, 132]),
            "stages": draw([2, 3, 4]),
            "overlap_epilogue": int(chunks <= steps and draw([False, True])),
            "pdl": draw([0, 1]),
        },
    )


@pytest.mark.parametrize("seed", range(10))
def test_random_gemms_are_correct(seed: int) -> None:
    check(random_problem(seed), ORDERS[seed % 3], seed)


def maps_of(artifact: Artifact) -> list[TensorMapParameter]:
    (launch,) = artifact.launches
    found = [p for p in launch.parameters if isinstance(p, TensorMapParameter)]
    assert len(found) == len(launch.parameters)
    return sorted(found, key=lambda p: p.argument)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (WgmmaKernel(k=100), "a row of .* has 200 bytes, no multiple of 16"),
        (WgmmaKernel(parameters={"stages": 40}), "shared memory"),
        (WgmmaKernel(parameters={"stages": 1}), "stages is 1, but a ring buffer needs 2"),
        (WgmmaKernel(parameters={"producer_registers": 20}), "20 registers"),
        (WgmmaKernel(parameters={"cluster": 3}), "4 CTAs are no multiple of a cluster's 3"),
        (
            WgmmaKernel(m=192, n=64, parameters={"cluster": 2, "persistent_ctas": 2}),
            "3 tiles are no multiple of a cluster's 2 CTAs",
        ),
        (
            WgmmaKernel(
                tile=(64, 128, 64), parameters={"persistent_ctas": 1, "overlap_epilogue": 1}, k=64
            ),
            "the 2 chunks of the output tile need as many iterations",
        ),
        (WgmmaKernel(consumers=2), "the tile has 64 rows, no multiple of 128"),
        (
            WgmmaKernel(tile=(64, 64, 128), element="f8E4M3FN"),
            "elements of 1 bytes only along k",
        ),
    ],
)
def test_what_the_hardware_cannot_do(problem: WgmmaKernel, message: str) -> None:
    with pytest.raises(LegoError, match=message) as caught:
        problem.artifact()
    assert caught.value.location is not None
