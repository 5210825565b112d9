"""Kernels and parameters as a PTX text declares them."""

from __future__ import annotations

import time

import pytest

from lego_mlir.artifact.ptx import kernel_parameter_sizes
from lego_mlir.diagnostics import LegoError


def test_comments_and_texts_declare_nothing() -> None:
    ptx = """
    // .entry a(.param .u64 x)
    /* .entry b() { /* */
    .file 1 ".entry c()"
    .entry d(.param .u64 x /* , .param .u64 y */) { ret; }
    /* .entry e() """
    assert kernel_parameter_sizes(ptx) == {"d": (8,)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (".entry k() {} .entry k(.param .u64 x) {}", "two kernels 'k'"),
        (".entry k(.param .u64 x", "parameters of kernel 'k' have no end"),
        (".entry k(.param .b8 x[0x80])", "not understood"),
        (".entry k(.param .b8 x[2][64])", "not understood"),
        (".entry k(.param .b8 x[99999999999])", "not understood"),
        (".entry k(.param .pred x)", "not understood"),
        (".entry k(x)", "not understood"),
        (".entry k(.param .u64 x,)", "not understood"),
    ],
)
def test_what_is_not_understood_in_full_is_an_error(text: str, says: str) -> None:
    with pytest.raises(LegoError, match=says):
        kernel_parameter_sizes(text)


def test_reading_takes_time_in_proportion_to_the_text() -> None:
    start = time.perf_counter()
    for text in (
        "".join(f".entry a{n}(\n" for n in range(40_000)),
        ".entry k(.param" + " " * 500_000 + ")",
        "/*" * 250_000,
        '"' * 500_001,
        ".entry k(" + ".param .u64 .ptr .global .align 16 x, " * 20_000 + ")",
    ):
        try:
            kernel_parameter_sizes(text)
        except LegoError:
            continue
    assert time.perf_counter() - start < 5
