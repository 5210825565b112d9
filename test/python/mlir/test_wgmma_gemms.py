"""Products by Hopper's schedule, in the simulator: every element, with all of its checks."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from wgmma_kernels import Array, WgmmaKernel, check

from lego_mlir.artifact import Artifact, TensorMapParameter
from lego_mlir.diagnostics import LegoError

ORDERS = ("late", "early", "random")
TRANSPOSES = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("columns", TRANSPOSES)
def test_all_transposes(columns: tuple[bool, bool], order: str) -> None:
    check(WgmmaKernel(column_major=columns), order)


@pytest.mark.parametrize("stages", [2, 7])
def test_rings_of_any_length(stages: int) -> None:
    """Shorter and longer than the loop over k."""
    check(WgmmaKernel(k=256, parameters={"stages": stages}), "random")


@pytest.mark.parametrize("columns", TRANSPOSES)
def test_partial_tiles(columns: tuple[bool, bool]) -> None:
    check(WgmmaKernel(72, 136, 88, column_major=columns), "random")


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
def test_fp8(element: str) -> None:
    check(WgmmaKernel(k=256, tile=(64, 64, 128), column_major=(False, True), element=element))


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
