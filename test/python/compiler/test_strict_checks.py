"""What the machine code of our own kernels must not have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lego_mlir as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.compiler import driver
from lego_mlir.compiler.backend.assembly import Cubin, Resources
from lego_mlir.compiler.backend.codegen import assemble
from lego_mlir.compiler.backend.strict_checks import check_strict
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul, permute, transpose

CLEAN = Resources("gemm", 168, 0, 0, 0, 0)
SERIALIZED = (
    "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "non wgmma instructions defining accumulator registers in the function 'gemm'."
)


def made(*kernels: Resources, warnings: tuple[str, ...] = ()) -> Cubin:
    return Cubin(b"", kernels, warnings, "")


def test_clean_code_passes() -> None:
    check_strict(made(CLEAN))
    check_strict(made(CLEAN, warnings=("an option is deprecated", "(C7002) something else")))


@pytest.mark.parametrize("code", ["C7504", "C7508", "C7510", "C7515", "C7600"])
def test_a_lost_instruction(code: str) -> None:
    message = SERIALIZED.replace("C7510", code)
    with pytest.raises(LegoError, match=f"slows kernel 'gemm' down: .{code}. .*serialized"):
        check_strict(made(replace(CLEAN, kernel="other"), CLEAN, warnings=(message,)))


def test_the_hint_names_what_is_called() -> None:
    message = (
        "(C7509) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
        "the presence of Extern calls in the function 'gemm'."
    )
    with pytest.raises(LegoError, match="C7509") as e:
        check_strict(made(CLEAN, warnings=(message,)))
    assert "'/' of f64" in str(e.value.hint)


def test_a_message_that_names_no_kernel() -> None:
    message = "(C7504) Potential Performance Loss: 'setmaxnreg' ignored."
    both = made(CLEAN, replace(CLEAN, kernel="other"), warnings=(message,))
    with pytest.raises(LegoError, match="kernels 'gemm', 'other' down"):
        check_strict(both)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (replace(CLEAN, spill_store_bytes=8), "kernel 'gemm' spills 8 bytes .* it has 168"),
        (replace(CLEAN, spill_load_bytes=4, stack_bytes=4), "spills 4 bytes"),
        (replace(CLEAN, stack_bytes=32), "'gemm' has 32 bytes of local memory"),
    ],
)
def test_local_memory_is_refused(kernel: Resources, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        check_strict(made(replace(CLEAN, kernel="first"), kernel))


def test_local_memory_is_a_warning_of_the_assembler() -> None:
    ptx = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .local .align 4 .b8 frame[64];
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u64 %rd2, frame;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    st.local.b32 [%rd3], %r1;
    ld.local.b32 %r2, [frame + 4];
    st.global.b32 [%rd1], %r2;
    ret;
}
"""
    cubin = assemble(ptx, Target.parse("sm_90a"))
    assert cubin.warnings == ("k has 64 bytes of local memory a thread",)
    with pytest.raises(LegoError, match="64 bytes of local memory"):
        check_strict(cubin)


def test_only_our_own_kernels_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = made(CLEAN, warnings=(SERIALIZED,))
    monkeypatch.setattr(driver.codegen, "assemble", lambda ptx, target: slow)
    for own in (transpose(32, 32), permute((4, 8, 16), (0, 2, 1)), matmul(64, 64, 64)):
        with pytest.raises(LegoError, match=r"\(C7510\)"):
            own.compile()

    vector = lg.Tensor["f32", OrderBy(Row(32))]

    @lg.kernel(grid=1, block=32, parameters={"a": vector, "b": vector})
    def copy(a: Any, b: Any) -> None:
        b[lg.thread_id()] = a[lg.thread_id()]

    assert copy.compile().cubin == b""
