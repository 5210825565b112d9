"""Kernels on tiles with a schedule: pipelines and roles, in the simulator against NumPy."""

import pytest
from tile_attention import attention, check_against_numpy

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
