"""Which code of an artifact runs on which GPU."""

from __future__ import annotations

import pytest

from lego_mlir.artifact import Argument
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import TARGETS
from lego_mlir.runtime.compatibility import (
    check_alignment,
    check_shared,
    choose_code,
    cubin_fits,
    parse_target,
    ptx_fits,
)


def test_every_target_of_the_compiler_is_understood() -> None:
    for target in TARGETS.values():
        assert parse_target(target.name) == (target.capability, target.exact)


@pytest.mark.parametrize(
    ("target", "device", "cubin", "ptx"),
    [
        ("sm_90a", (9, 0), True, True),
        ("sm_90a", (8, 0), False, False),
        ("sm_90a", (10, 0), False, False),
        ("sm_90", (9, 0), True, True),
        ("sm_90", (10, 0), False, True),
        ("sm_80", (8, 9), True, True),
        ("sm_89", (8, 6), False, False),
        ("sm_80", (9, 0), False, True),
        ("sm_80", (8, 7), False, True),
        ("sm_87", (8, 9), False, True),
        ("sm_87", (8, 7), True, True),
        ("sm_100", (10, 3), True, True),
        ("sm_120", (12, 1), True, True),
        ("sm_100a", (10, 3), False, False),
    ],
)
def test_codes_fit_the_devices_of_their_target(
    target: str, device: tuple[int, int], cubin: bool, ptx: bool
) -> None:
    assert cubin_fits(target, device) is cubin
    assert ptx_fits(target, device) is ptx


def test_a_cubin_is_chosen_where_it_fits() -> None:
    assert choose_code("sm_90a", (9, 0), True) == "cubin"
    assert choose_code("sm_90a", (9, 0), False) == "ptx"
    assert choose_code("sm_80", (9, 0), True) == "ptx"
    assert choose_code("sm_90a", (9, 0), True, "ptx") == "ptx"
    assert choose_code("sm_90a", (9, 0), True, "cubin") == "cubin"


def test_error_names_target_and_device() -> None:
    with pytest.raises(LegoError, match=r"sm_90a.*8\.0") as caught:
        choose_code("sm_90a", (8, 0), True)
    assert caught.value.hint is not None
    assert "--target sm_80" in caught.value.hint
    with pytest.raises(LegoError, match=r"the cubin is for sm_80.*9\.0"):
        choose_code("sm_80", (9, 0), True, "cubin")
    with pytest.raises(LegoError, match="no cubin"):
        choose_code("sm_90a", (9, 0), False, "cubin")


@pytest.mark.parametrize("text", ["", "sm_", "sm_9", "compute_90", "sm_90b"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(LegoError, match="no GPU target"):
        parse_target(text)


def test_shared_memory_limit() -> None:
    check_shared("k", 232448, 232448, "H200")
    with pytest.raises(LegoError, match=r"'k' asks for 232449 bytes .* on H200 may have 232448"):
        check_shared("k", 232449, 232448, "H200")


def test_the_alignment_of_a_device_array() -> None:
    argument = Argument("a", "f32", (64,), alignment=16)
    check_alignment(argument, 0x7F0010)
    with pytest.raises(
        LegoError, match=r"'a' begins at a multiple of 16 bytes, .* 0x7f0018 does not"
    ):
        check_alignment(argument, 0x7F0018)
