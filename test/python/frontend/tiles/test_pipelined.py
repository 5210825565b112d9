"""Kernels on tiles with a schedule: pipelines and roles, in the simulator against NumPy."""

from typing import Any

import numpy as np
import pytest
from tile_attention import attention, check_against_numpy

import lego_mlir as lg
from lego_mlir.diagnostics import LegoError
from lego_mlir.step_checks import check_each_step

REGISTERS = {"producer_registers": 24, "consumer_registers": 240}


@pytest.mark.parametrize(
    ("schedule", "stages", "shape", "causal"),
    [
        ("pipelined", 3, (2, 200, 64), False),  # the last blocks are padded
        ("pipelined", 2, (1, 128, 60), False),  # TMA takes no rows of 120 bytes
        ("attention", 1, (1, 192, 64), True),
        ("attention", 2, (1, 128, 60), True),
    ],
)
def test_attention_with_a_producer(
    schedule: str, stages: int, shape: tuple[int, int, int], causal: bool
) -> None:
    params = {"stages": stages, **REGISTERS}
    kernel = attention(shape, causal=causal, schedule=schedule, params=params)
    check_against_numpy(kernel, shape, causal=causal)


def test_attention_in_all_orders() -> None:
    lines = check_each_step(attention((1, 192, 64), schedule="attention").compilation())
    assert [line.partition(":")[0] for line in lines][-4:] == [
        "the schedule",
        *(f"lowering, run in the simulator ({order})" for order in ("late", "early", "random")),
    ]


def test_a_schedule_without_steps_for_tiles_is_refused() -> None:
    with pytest.raises(LegoError, match="which has no steps for kernels on tiles"):
        attention((1, 64, 64), schedule="unroll")


def multiplied(**options: Any) -> lg.Kernel:
    """C = A B by one CTA, whose loop loads both operands from memory."""
    matrix = lg.Tensor["f16", (64, 64)]

    def multiply(a: Any, b: Any, c: Any) -> None:
        @lg.fold(4, lg.zeros((64, 64), "f32"))
        def total(k: Any, total: Any) -> Any:
            return lg.dot(a.tile(64, 16)[0, k], b.tile(16, 64)[k, 0], total)

        c[:, :] = total.to("f16")

    parameters = dict.fromkeys("abc", matrix)
    return lg.kernel(grid=1, warps=4, parameters=parameters, **options)(multiply)


def test_rings_take_the_place_of_operands_that_are_waited_for_together() -> None:
    a, b = np.random.default_rng(2).integers(-3, 4, (2, 64, 64)).astype(np.float16)
    c = np.empty_like(a)
    multiplied(schedule="streamed")(a, b, c, device="sim")
    assert (c == a @ b).all()


@pytest.mark.parametrize("warps", [0, 33, 2**31])
def test_more_producer_warps_than_a_cta_has_are_refused(warps: int) -> None:
    with pytest.raises(LegoError, match=f"split_roles: producer_warps is {warps}"):
        multiplied(schedule="pipelined", params={"producer_warps": warps}).compilation().text("ptx")
