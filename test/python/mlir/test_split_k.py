"""Split-K GEMMs over the CTAs of a cluster, in the simulator with its checks."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from wgmma_kernels import Array, WgmmaKernel, check

from lego_mlir import runtime
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source
from lego_mlir.runtime.simulator import Simulator

ORDERS = ("late", "early", "random")
TRANSPOSES = list(itertools.product((False, True), repeat=2))

SMALL = {"split_k": 2, "stages": 3}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("columns", TRANSPOSES)
def test_all_transposes(columns: tuple[bool, bool], order: str) -> None:
    artifact = check(WgmmaKernel(k=256, column_major=columns, parameters=SMALL), order)
    assert artifact.launches[0].grid == (8, 1, 1)
    assert ".explicitcluster\n.reqnctapercluster 2" in artifact.ptx


@pytest.mark.parametrize(
    ("order", "over_ring"), [("late", 1), ("early", 0), ("random", 0), ("random", 1)]
)
@pytest.mark.parametrize(
    ("split_k", "tile", "groups"),
    [
        *((2, (128, 128, 64), 2), (2, (128, 64, 64), 1), (4, (64, 64, 64), 1)),
        *((8, (64, 128, 32), 1), (3, (64, 96, 32), 1)),
    ],
)
def test_slices_of_several_sizes(
    split_k: int, tile: tuple[int, int, int], groups: int, order: str, over_ring: int
) -> None:
    """Several CTAs, warpgroups and blocks of rows, and slices of a single iteration."""
    bm, bn, bk = tile
    columns = (False, bn % 64 != 0)  # rows of B that no swizzling mode has
    parameters = {"split_k": split_k, "stages": 4, "over_ring": over_ring}
    problem = WgmmaKernel(
        bm,
        bn,
        split_k * bk * (1 + split_k % 2),
        tile,
        columns,
        consumers=groups,
        parameters=parameters,
    )
    artifact = check(problem, order)
    assert artifact.launches[0].grid == (split_k, 1, 1)


@pytest.mark.parametrize("pdl", [0, 1])
def test_partial_tiles(pdl: int) -> None:
    """Nothing is stored beyond the tensors, where loads give zeros."""
    parameters = {**SMALL, "pdl": pdl}
    check(WgmmaKernel(72, 136, 200, parameters=parameters), "random")
    check(WgmmaKernel(8, 8, 72, parameters=parameters), "random")  # a slice without elements


@pytest.mark.parametrize(("element", "promote"), [("bf16", 0), ("f8E4M3FN", 0), ("f8E4M3FN", 1)])
def test_other_element_types(element: str, promote: int) -> None:
    bytes_ = 2 if element == "bf16" else 1
    check(
        WgmmaKernel(
            *(128, 64, 512 // bytes_),
            (64, 64, 128 // bytes_),
            (False, True),
            element,
            "bf16" if bytes_ == 2 else "f16",
            parameters={**SMALL, "promote": promote},
        )
    )


def test_the_epilogue_computes_the_kept_columns() -> None:
    """Scalars, rows, columns and tiles that meet the accumulator are sliced like it."""
    epilogue = """
      %one = arith.constant dense<1.0> : vector<64x64xf32>
      %row = "lego.load"(%b, %n) {slice = array<i64: 1>,
          layout = #lego.layout<"OrderBy(Row(256 * 128)).TileBy([256 * 2], [64])">}
          : (memref<32768xf16>, index) -> vector<64xf16>
      %rows = vector.broadcast %row : vector<64xf16> to vector<64x64xf16>
      %column = "lego.load"(%a, %m, %c0) {slice = array<i64: 2, 3>,
          layout = #lego.layout<"OrderBy(Row(128, 256)).TileBy([2, 256], [64, 1])">}
          : (memref<32768xf16>, index, index) -> vector<64x1xf16>
      %columns = vector.broadcast %column : vector<64x1xf16> to vector<64x64xf16>
      %tile = "lego.load"(%a, %m, %n) {slice = array<i64: 2, 3>, layout = #A}
          : (memref<32768xf16>, index, index) -> vector<64x64xf16>
      %both = arith.addf %rows, %columns : vector<64x64xf16>
      %all = arith.addf %both, %tile : vector<64x64xf16>
      %wide = arith.extf %all : vector<64x64xf16> to vector<64x64xf32>
      %more = arith.addf %sum, %wide : vector<64x64xf32>
      %most = arith.addf %more, %one : vector<64x64xf32>
      %number = arith.constant 2.0 : f32
      %numbers = vector.broadcast %number : f32 to vector<64x64xf32>
      %twice = arith.mulf %most, %numbers fastmath<contract> : vector<64x64xf32>
      %result = arith.maximumf %twice, %zero : vector<64x64xf32>
    """
    problem = WgmmaKernel(k=256, out="f32", epilogue=epilogue, parameters=SMALL)
    random = np.random.default_rng(0)  # as `check` has it
    a, b = random.integers(-2, 3, (128, 256)), random.integers(-2, 3, (256, 128))

    def expected(sums: Array) -> Array:
        found: Array = (2 * (sums + b[0] + a[:, :1] + a[:, :128] + 1)).clip(0)
        return found

    check(problem, "random", expected=expected)


def test_the_reduction_over_a_cluster_has_no_bank_conflicts() -> None:
    """Threads access 16 bytes, with as few wavefronts as possible."""
    artifact = WgmmaKernel(64, 64, 256, parameters=SMALL).artifact()
    (costs,) = runtime.run(artifact, [], Simulator(costs=True), seed=0).costs
    moved = [c for c in costs.memory if "v4" in c.instruction.opcode and c.space == "shared"]
    assert sum(c.bytes for c in moved) == 2 * 2 * 64 * 32 * 4  # blocks; sent and read; half a tile
    assert all(c.wavefronts == c.least_wavefronts for c in moved)


# The positions of barrier.cluster instructions in the PTX: first those of the producer, then those
# of the consumers.
@pytest.mark.parametrize(
    ("over_ring", "without"),
    [(0, (2, 3, 5, 6)), (1, (0, 1, 4, 5)), (1, (2, 3, 6, 7))],
    ids=["read too early", "written over tiles", "read too early, over tiles"],
)
@pytest.mark.parametrize("order", ORDERS)
def test_every_barrier_is_needed(over_ring: int, without: tuple[int, ...], order: str) -> None:
    parameters = {"split_k": 2, "stages": 2, "over_ring": over_ring}
    artifact = WgmmaKernel(64, 64, 256, parameters=parameters).artifact()
    lines = artifact.ptx.splitlines()
    barriers = [k for k, line in enumerate(lines) if "barrier.cluster" in line]
    assert len(barriers) == (8 if over_ring else 7)
    dropped = {barriers[k] for k in without}
    left = "\n".join(line for k, line in enumerate(lines) if k not in dropped) + "\n"
    with pytest.raises(
        LegoError, match=r"data race|which nothing has written|may not have started"
    ):
        runtime.run(replace(artifact, ptx=left), [], Simulator(order=(order, 0)), seed=0)


@pytest.mark.parametrize(("over_ring", "stages"), [(0, 5), (1, 6)])
def test_it_assembles_at_full_speed(over_ring: int, stages: int) -> None:
    """As many stages as fit, with the reduction in its own memory and in the ring's."""
    parameters = {"split_k": 2, "stages": stages, "over_ring": over_ring}
    problem = WgmmaKernel(128, 7168, 16384, (128, 128, 64), consumers=2, parameters=parameters)
    cubin = problem.compilation().cubin
    assert cubin.warnings == ()
    assert cubin.resources[0].spill_store_bytes == 0


ROUNDS = "%result = arith.truncf %sum : vector<64x64xf32> to vector<64x64xf16>"


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            WgmmaKernel(k=64, parameters=SMALL),
            "1 iterations of the K loop leave none for the last of 2",
        ),
        (
            WgmmaKernel(
                *(64, 128, 256),
                (64, 128, 32),
                parameters={"split_k": 8, "stages": 3, "over_ring": 1},
            ),
            "needs 28672 bytes, the ring buffer's larger operand has 24576",
        ),
        (
            WgmmaKernel(
                epilogue=f"{ROUNDS}\n%id = gpu.block_id x",
                parameters=SMALL,
            ),
            "'gpu.block_id' would also count the CTAs of a cluster",
        ),
        (
            WgmmaKernel(parameters={"split_k": 9}),
            "split_k is 9, but a cluster has 1 to 8 CTAs",
        ),
        (
            WgmmaKernel(parameters={"split_k": 0}),
            "split_k is 0, no number of slices",
        ),
        (
            WgmmaKernel(tile=(64, 8, 64), column_major=(False, True), parameters=SMALL),
            "8 columns of the output tile do not divide into 2 slices of fragments",
        ),
        (
            WgmmaKernel(
                epilogue="%other = vector.transpose %sum, [1, 0] : "
                f"vector<64x64xf32> to vector<64x64xf32>\n{ROUNDS}",
                parameters=SMALL,
            ),
            "'vector.transpose' cannot be computed for a slice of the columns",
        ),
        (
            WgmmaKernel(
                epilogue=f"""{ROUNDS}
                %yes = arith.constant true
                scf.if %yes {{
                  "lego.store"(%result, %c, %m, %n) {{layout = #C, slice = array<i64: 2, 3>}}
                      : (vector<64x64xf16>, memref<16384xf16>, index, index) -> ()
                }}""",
                parameters=SMALL,
            ),
            "'lego.store' cannot be computed for a slice of the columns",
        ),
    ],
)
def test_kernels_whose_k_cannot_be_split(problem: WgmmaKernel, message: str) -> None:
    with pytest.raises(LegoError, match=message) as caught:
        problem.artifact()
    assert caught.value.location is not None


@pytest.mark.parametrize(
    ("slices", "kept", "cluster", "message"),
    [
        ("OrderBy(Row(2, 16))", 16, 2, "do not divide the columns of"),
        ("OrderBy(Row(M, 32))", 32, 2, "do not divide the columns of"),
        ("OrderBy(RegP([32, 2], [1, 0])).GroupBy([2, 32])", 32, 2, "divide fragments of 8"),
        ("OrderBy(Row(2, 32))", 32, 4, "among 2 CTAs, but a cluster has 4"),
    ],
)
def test_reductions_with_unsupported_slices(
    slices: str, kept: int, cluster: int, message: str
) -> None:
    epilogue = f"""{ROUNDS}
      %own = "lego.reduce_scatter_columns"(%sum, %c0) {{layout = #lego.layout<"{slices}">}}
          : (vector<64x64xf32>, index) -> vector<64x{kept}xf32>
    """
    text = WgmmaKernel(k=256, epilogue=epilogue).text()
    head, launch, rest = text.partition("gpu.terminator\n    }")
    text = f"{head}{launch} {{lego.cluster = {cluster} : i64}}{rest}"
    with pytest.raises(LegoError, match=message):
        Compilation(Source("product.mlir", text), Options(schedule="wgmma")).artifact()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dense<0.0> : vector<64x64xf32>", "dense<1.0> : vector<64x64xf32>", "a constant zero"),
        ("%k = %c0 to", "%k = %c1 to", "from 0 to a constant by steps of 1, found 1 to 2 by 1"),
    ],
)
def test_loops_that_cannot_be_split(old: str, new: str, message: str) -> None:
    text = WgmmaKernel(parameters=SMALL).text()
    assert old in text
    options = Options(schedule="wgmma", parameters=SMALL)
    with pytest.raises(LegoError, match=message):
        Compilation(Source("product.mlir", text.replace(old, new)), options).artifact()
