"""What kernels on long rows cost, by the assembler and the simulator."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from lego_mlir.artifact.ptx import cluster_sizes
from lego_mlir.compiler.options import Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import (
    RowsConfig,
    cross_entropy,
    layernorm,
    layernorm_backward,
    rmsnorm,
    rmsnorm_backward,
    rmsnorm_quantized,
    softmax,
    softmax_backward,
)

SM_90A = Options(target=Target.parse("sm_90a"))
ROWS = 4096
LONG = (1024, 4096, 8192, 16384, 32768, 65536, 131072)


def check(kernel: Any) -> None:
    """Check that no register of a kernel spills."""
    cubin = kernel.compilation(SM_90A).cubin
    for resources in cubin.resources:
        assert (resources.spill_store_bytes, resources.stack_bytes) == (0, 0)


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("columns", LONG)
@pytest.mark.parametrize("make", [softmax, rmsnorm, layernorm, cross_entropy, softmax_backward])
def test_rows_do_not_spill(make: Any, columns: int, dtype: str) -> None:
    check(make(ROWS, columns, dtype))


@pytest.mark.parametrize(
    ("make", "columns", "dtype", "most"),
    [
        (softmax_backward, 11008, "bf16", 64),  # two CTAs of 16 warps: 0.87 of the time on an H200
        (cross_entropy, 262144, "f32", 32),  # 8 of 8 warps: 0.75
        (rmsnorm, 32768, "bf16", 64),  # 4 of 8 warps: 0.89
    ],
)
def test_registers_are_spared_for_one_more_cta(
    make: Any, columns: int, dtype: str, most: int
) -> None:
    """They are by the assembler that sees a kernel as a whole."""
    (resources,) = make(ROWS, columns, dtype).compilation(SM_90A).cubin.resources
    assert resources.registers <= most


def test_no_registers_are_spared_for_ctas_that_are_not_there() -> None:
    sums, _ = rmsnorm(2670, 50257, "f32").compilation(SM_90A).cubin.resources
    assert sums.registers > 64


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("columns", LONG[:6])
@pytest.mark.parametrize("make", [rmsnorm_backward, layernorm_backward])
def test_gradients_of_norms_do_not_spill(make: Any, columns: int, dtype: str) -> None:
    check(make(ROWS, columns, dtype))


@pytest.mark.parametrize("columns", [16384, 32768])
def test_gradients_with_wide_weights_spill_few_registers(columns: int) -> None:
    kernel = layernorm_backward(ROWS, columns, "bf16", weight="f32")
    for resources in kernel.compilation(SM_90A).cubin.resources:
        assert resources.spill_store_bytes <= 24


@pytest.mark.parametrize("columns", [13824, 15360, 30720])
def test_gradients_of_rows_with_masks_spill_few_registers(columns: int) -> None:
    """Rows that vectors of all threads do not divide, in threads that have as many as they can."""
    kernel = layernorm_backward(ROWS, columns, "bf16")
    for resources in kernel.compilation(SM_90A).cubin.resources:
        assert resources.spill_store_bytes <= 32


@pytest.mark.parametrize("columns", [100000, 131072, 200000, 262144])
@pytest.mark.parametrize("make", [rmsnorm_backward, layernorm_backward])
def test_gradients_of_norms_hold_the_longest_rows(make: Any, columns: int) -> None:
    """In stages that are filled one by one, so that one kernel adds up columns beside."""
    kernel = make(ROWS, columns, "f32")
    assert len(kernel.calls) == 2
    check(kernel)


def test_rings_that_loops_fill_one_after_the_other_wait_for_the_tiles_that_are_next() -> None:
    """Copies of one input are further ahead than those of another, so two loops begin them."""
    ptx = rmsnorm_backward(ROWS, 200000, "f32").compilation(SM_90A).ptx
    waits = re.findall(r"cp\.async\.wait_group\s+(\d+)", ptx)
    assert min(map(int, waits)) >= 12


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("columns", [16384, 128256, 262144])
@pytest.mark.parametrize("make", [rmsnorm_backward, layernorm_backward])
def test_stages_have_room_for_the_residual(make: Any, columns: int, dtype: str) -> None:
    assert len(make(ROWS, columns, dtype, residual=dtype).compile("sm_90a").launches) == 2


@pytest.mark.parametrize("rows", [3, ROWS])
def test_rows_that_no_cluster_holds_are_read_in_pieces(rows: int) -> None:
    """The weights and the biases of a row that has no vectors would take all registers."""
    assert "1 row a CTA, in 42 pieces of 8192 columns" in layernorm(rows, 351338, "f32").explain()
    check(layernorm(rows, 351338, "f32"))


@pytest.mark.parametrize("residual", [None, "bf16"])
@pytest.mark.parametrize("per", ["row", "group"])
@pytest.mark.parametrize("columns", [2048, 7168, 12288, 16384, 24576, 32768])
def test_quantized_norms_spill_few_registers(columns: int, per: str, residual: str | None) -> None:
    """Three CTAs on a multiprocessor are worth six registers that are spilled once."""
    kernel = rmsnorm_quantized(ROWS, columns, "bf16", per=per, residual=residual)
    for resources in kernel.compilation(SM_90A).cubin.resources:
        assert resources.spill_store_bytes <= 24


@pytest.mark.parametrize(
    ("rows", "is_dependent", "most"), [(1 << 20, False, 0), (64, True, 0), (None, True, 8192)]
)
def test_launches_of_many_small_ctas_are_not_dependent(
    rows: int | None, is_dependent: bool, most: int
) -> None:
    (launch,) = softmax(rows, 64, config=RowsConfig(1, 1)).compile("sm_90a").launches
    assert (launch.pdl, launch.pdl_ctas) == (is_dependent, most)
    assert "pdl up to 8192 blocks" in str(launch) or rows is not None


def test_statistics_of_several_rows_take_one_round_trip() -> None:
    """The two sums of LayerNorm's gradient, of as many rows as are loaded ahead."""
    counts = []
    for ahead in (1, 2):
        config = RowsConfig(1, 4, ctas=2, ahead=ahead, together=ahead)
        ptx = layernorm_backward(64, 1024, "bf16", config=config).compile("sm_90a").ptx
        (sums,) = (x for x in ptx.split(".entry ") if "_sums(" in x.split("\n")[0])
        counts.append(sums.count("bar.sync"))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("make", [softmax, rmsnorm_backward])
def test_long_rows_need_no_clusters(make: Any) -> None:
    """Where the target has none, another config takes the place of the one that uses them."""
    kernel = make(64, 65536, "f32")
    assert cluster_sizes(kernel.compile("sm_90a").ptx)
    assert not cluster_sizes(kernel.compile("sm_80").ptx)


def test_a_given_config_with_clusters_needs_them() -> None:
    kernel = softmax(64, 65536, config=RowsConfig(1, 8, cluster=8))
    with pytest.raises(LegoError, match="sm_80 has no clusters"):
        kernel.compile("sm_80")


@pytest.mark.parametrize(
    ("rows", "columns", "config"),
    [(64, 256, None), (4, 1024, None), (2, 8192, RowsConfig(1, 16, 2, 4, held=True))],
)
def test_each_element_is_moved_once(rows: int, columns: int, config: RowsConfig | None) -> None:
    """In whole sectors, and without bank conflicts."""
    (costs,) = softmax(rows, columns, config=config).run(device="sim", costs=True).costs
    assert (costs.excess_sectors, costs.excess_wavefronts) == (0, 0)
    moved = sum(row.bytes for row in costs.memory if row.space == "global")
    assert moved == 2 * rows * columns * np.float32().itemsize


@pytest.mark.parametrize("columns", [8192, 11008, 16384, 32768, 65536])
def test_gradients_of_rows_whose_length_the_launch_knows_do_not_spill(columns: int) -> None:
    options = Options(target=Target.parse("sm_90a"))
    kernel = layernorm_backward(None, None, "bf16")
    for resources in kernel.compilation(options, {"M": ROWS, "N": columns}).cubin.resources:
        assert (resources.spill_store_bytes, resources.stack_bytes) == (0, 0)
