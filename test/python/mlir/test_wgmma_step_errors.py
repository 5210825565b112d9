"""Errors of the wgmma schedule's steps on payloads that they do not support."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from wgmma_kernels import WgmmaKernel

from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.context import Source

TEXT = WgmmaKernel().text()


def failure(text: str, schedule: str = "wgmma") -> LegoError:
    """The error of compiling a module; it points to one of the module's lines."""
    with pytest.raises(LegoError) as caught:
        _ = Compilation(Source("t.mlir", text), Options(schedule=schedule)).index
    error = caught.value
    assert error.location is not None
    assert error.location.file == "t.mlir"
    return error


def line_of(error: LegoError, text: str) -> str:
    assert error.location is not None
    return text.splitlines()[error.location.line - 1]


def replaced(old: str, new: str, text: str = TEXT) -> str:
    assert old in text
    return text.replace(old, new)


def without_contraction() -> str:
    found = re.sub(r"%next = vector\.contract(.|\n)*?xf32>\n", "", TEXT)
    return replaced("scf.yield %next", "scf.yield %acc", found)


def with_two_contractions() -> str:
    (contraction,) = re.findall(r"%next = vector\.contract(?:.|\n)*?xf32>\n", TEXT)
    again = contraction.replace("%next", "%more").replace("%acc", "%next")
    return replaced("scf.yield %next", f"{again} scf.yield %more")


def without_a_loop() -> str:
    found = re.sub(r"%sum = scf\.for(?:.|\n)*?\{\n", "", TEXT)
    found = re.sub(r"scf\.yield.*\n\s*\}", "", found)
    return (
        found.replace("%k)", "%c0)")
        .replace("%k,", "%c0,")
        .replace("%acc", "%zero")
        .replace("%next", "%sum")
    )


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        (without_contraction(), "found no vector.contract", "gpu.launch"),
        (with_two_contractions(), "found 2 vector.contract", "gpu.launch"),
        (without_a_loop(), "found it in a 'gpu.launch'", "vector.contract"),
        (
            replaced("OrderBy(Row(4, 1))", "OrderBy(Row(2, 1))"),
            "2 warps are no multiple of a warpgroup's 4",
            "vector.contract",
        ),
    ],
)
def test_payloads_without_a_main_loop(text: str, message: str, at: str) -> None:
    error = failure(text)
    assert error.message.startswith("specialize_warps: ")
    assert message in error.message
    assert at in line_of(error, text)


def test_the_error_describes_a_main_loop() -> None:
    assert (
        "a loop over k that loads a tile of A and one of B"
        in failure(without_contraction()).message
    )


def test_layouts_that_are_left_open_are_derived() -> None:
    texts = TEXT, replaced(", shared = #shared_A", "")
    options = Options(schedule="wgmma")
    given, derived = (Compilation(Source("t.mlir", x), options).text("ptx") for x in texts)
    assert derived == given


def test_the_hint_names_the_parameter_of_derived_warps() -> None:
    error = failure(replaced(", lego.warps = #warps", ""))
    assert "the tile has 64 rows, no multiple of 128" in error.message
    assert error.hint is not None
    assert "--param warpgroups=1" in error.hint


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        (
            replaced("OrderBy(GenP([64, 64], tma_swizzle(128, 2)))", "OrderBy(Row(64, 64))"),
            "wgmma cannot read",
            "vector.contract",
        ),
        (
            replaced("OrderBy(Row(128, 128)).TileBy", "OrderBy(GenP([128, 128], hilbert)).TileBy"),
            "TMA addresses a tensor by strides",
            "lego.load",
        ),
        (
            replaced(
                '#shared_A = #lego.layout<"OrderBy(', '#shared_A = #lego.layout<"OrderBy(Row(1), '
            ),
            "the tile is [64, 64], but its shared-memory layout",
            "lego.load",
        ),
        (
            re.sub(r"(#shared_A = .*)tma_swizzle\(128, 2\)", r"\1swizzle(8, 2, 4)", TEXT),
            "TMA cannot write",
            "lego.load",
        ),
        (
            replaced("OrderBy(Row(4, 1))", "OrderBy(Row(2, 2))"),
            "wgmma takes 64 rows a warpgroup",
            "vector.contract",
        ),
        (
            re.sub(r"(#shared_C = .*)\[64, 64\]", r"\1[32, 64]", TEXT),
            "a chunk of it in shared memory",
            "lego.store",
        ),
    ],
)
def test_layouts_and_sizes_that_the_hardware_does_not_support(
    text: str, message: str, at: str
) -> None:
    error = failure(text)
    assert message in error.message
    assert at in line_of(error, text)
    assert error.hint is not None


def schedule(folder: Path, step: str, handle: str = "gpu.launch") -> str:
    """The file of a schedule with one step."""
    path = folder / "s.mlir"
    path.write_text(f"""
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_tiles(%module: !transform.any_op) {{
    %ops = transform.structured.match ops{{["{handle}"]}} in %module
        : (!transform.any_op) -> !transform.any_op
    "transform_lego.{step}"(%ops) : (!transform.any_op) -> ()
    transform.yield
  }}
}}
""")
    return str(path)


def test_tma_copies_need_a_barrier(tmp_path: Path) -> None:
    """TMA signals its completion only to a barrier."""
    alloc = """%s = "lego.alloc"() {layout = #shared_A}
        : () -> memref<?xf16, #gpu.address_space<workgroup>>"""
    copy = """"lego.store"(%x, %s) {layout = #shared_A, slice = array<i64: 0, 1>}
        : (vector<64x64xf16>, memref<?xf16, #gpu.address_space<workgroup>>) -> ()"""
    text = replaced("%m, %n =", f"{alloc}\n %m, %n =", without_contraction())
    text = replaced("scf.yield", f"{copy}\n scf.yield", text)
    error = failure(text, schedule(tmp_path, "copies_to_tma"))
    assert "looked for the barrier that this copy completes" in error.message
    assert error.hint is not None
    assert "specialize_warps" in error.hint
    assert '"lego.store"' in line_of(error, text)
