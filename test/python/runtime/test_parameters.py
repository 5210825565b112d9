"""Kernel parameters, read from the PTX and packed for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Constant,
    KernelLaunch,
    TensorMapParameter,
    TensorMapParameters,
)
from lego_mlir.artifact.ptx import kernel_parameter_sizes, parameter_sizes
from lego_mlir.diagnostics import LegoError
from lego_mlir.runtime.parameters import resolve as resolve_with

SEVERAL = """
.visible .entry plain(.param .u64 a, .param .f32 b){ ret; }
.visible .entry none { ret; }
.visible .entry nothing() { ret; }
.entry k$0(
    .param .u64 .ptr .align 1 k_param_0,
    .param .u64 .ptr .global .align 16 k_param_1,
    .param .u64 .ptr k_param_2,
    .param .align 64 .b8 k_param_3[128],
    .param .b16 k_param_4,
    .param .u8 k_param_5
)
.maxntid 256, 1, 1
{ ret; }
"""


def mapped(found: TensorMapParameter, argument: Argument, value: Any) -> Any:
    """What stands for a tensor map here: all that it is made of."""
    return found, argument.name, value


def resolve(launch: KernelLaunch, arguments: Any, values: Any, sizes: Any) -> tuple[Any, ...]:
    return resolve_with(launch, arguments, values, sizes, mapped)


def test_parameter_sizes() -> None:
    assert tuple(kernel_parameter_sizes(SEVERAL)) == ("plain", "none", "nothing", "k$0")
    assert parameter_sizes(SEVERAL, "plain") == (8, 4)
    assert parameter_sizes(SEVERAL, "none") == ()
    assert parameter_sizes(SEVERAL, "nothing") == ()
    assert parameter_sizes(SEVERAL, "k$0") == (8, 8, 8, 128, 2, 1)


def test_unknown_kernel() -> None:
    with pytest.raises(LegoError, match="no kernel 'no'") as caught:
        parameter_sizes(SEVERAL, "no")
    assert caught.value.hint == "it has plain, none, nothing, k$0"


def test_resolve(copy: Artifact) -> None:
    x, y = np.zeros(3), np.ones(3)
    values = resolve(copy.launches[0], copy.arguments, (x, y), (8, 8, 4))
    assert values[0] is x
    assert values[1] is y
    assert values[2] == 24
    assert values[2].dtype == np.int32


def test_arguments_may_come_in_any_order_and_twice(copy: Artifact) -> None:
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (1, 0, 1))
    assert resolve(launch, copy.arguments, (10, 20), (8, 8, 8)) == (20, 10, 20)


def test_index_takes_the_kernels_width() -> None:
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (Constant("index", 7), 0))
    arguments = (Argument("n", "index", None),)
    narrow, wide = resolve(launch, arguments, (np.int64(5),), (4, 8))
    assert (narrow.dtype, wide.dtype) == (np.int32, np.int64)
    assert (narrow, wide) == (7, 5)
    with pytest.raises(LegoError, match="no value of type i32"):
        resolve(launch, arguments, (np.int64(1 << 40),), (4, 4))


def test_a_tensor_map_is_made_of_its_argument(copy: Artifact) -> None:
    found = TensorMapParameter(1, (6, 4), (24,), (6, 4), 0)
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (found, 0))
    assert resolve(launch, copy.arguments, (10, 20), (128, 8)) == ((found, "b", 20), 10)
    with pytest.raises(LegoError, match=r"parameter 0 .* has 8 bytes, the artifact passes 128"):
        resolve(launch, copy.arguments, (10, 20), (8, 8))


def test_tensor_maps_are_one_parameter(copy: Artifact) -> None:
    first, second = (TensorMapParameter(number, (6, 4), (24,), (6, 4), 0) for number in (1, 0))
    launch = KernelLaunch("k", (1, 1, 1), (1, 1, 1), (TensorMapParameters((first, second)),))
    (found,) = resolve(launch, copy.arguments, (10, 20), (256,))
    assert found == ((first, "b", 20), (second, "a", 10))
    with pytest.raises(LegoError, match=r"parameter 0 .* has 128 bytes, the artifact passes 256"):
        resolve(launch, copy.arguments, (10, 20), (128,))


def test_a_wrong_number_of_parameters_is_an_error(copy: Artifact) -> None:
    with pytest.raises(LegoError, match="takes 2 parameters, the artifact passes 3"):
        resolve(copy.launches[0], copy.arguments, (1, 2), (8, 8))


def test_a_wrong_parameter_size_is_an_error(copy: Artifact) -> None:
    with pytest.raises(LegoError, match=r"parameter 2 .* has 8 bytes, the artifact passes 4"):
        resolve(copy.launches[0], copy.arguments, (1, 2), (8, 8, 8))
    with pytest.raises(LegoError, match=r"parameter 0 .* has 4 bytes, the artifact passes 8"):
        resolve(copy.launches[0], copy.arguments, (1, 2), (4, 8, 4))
