"""Artifacts written by hand: what a compiler would make, without one."""

from __future__ import annotations

import pytest

from lego_mlir.artifact import Argument, Artifact, Constant, KernelLaunch

COPY_PTX = """.version 8.3
.target sm_90a
.address_size 64

.visible .entry copy_kernel(
    .param .u64 .ptr .align 1 copy_kernel_param_0,
    .param .u64 .ptr .align 1 copy_kernel_param_1,
    .param .u32 copy_kernel_param_2
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<7>;
    .reg .b64 %rd<8>;
    ld.param.b64 %rd1, [copy_kernel_param_0];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.b64 %rd3, [copy_kernel_param_1];
    cvta.to.global.u64 %rd4, %rd3;
    ld.param.b32 %r1, [copy_kernel_param_2];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra $L_end;
    mul.wide.u32 %rd5, %r5, 4;
    add.s64 %rd6, %rd2, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.b32 %r6, [%rd6];
    st.global.b32 [%rd7], %r6;
$L_end:
    ret;
}
"""


@pytest.fixture
def copy() -> Artifact:
    """Copies a 4x6 f32 tensor; one constant parameter."""
    return Artifact(
        name="copy",
        target="sm_90a",
        arguments=(
            Argument("a", "f32", (4, 6), access="read"),
            Argument("b", "f32", (4, 6), access="write"),
        ),
        launches=(KernelLaunch("copy_kernel", (3, 1, 1), (8, 1, 1), (0, 1, Constant("i32", 24))),),
        ptx=COPY_PTX,
        reference="copy",
    )


@pytest.fixture
def transpose(copy: Artifact) -> Artifact:
    """The same kernel as a transpose: the output's layout is column-major."""
    a, _ = copy.arguments
    b = Argument("b", "f32", (24,), layout="OrderBy(Col(6, 4))", access="write")
    return Artifact(
        name="transpose",
        target="sm_90a",
        arguments=(a, b),
        launches=copy.launches,
        ptx=COPY_PTX,
        reference="transpose",
    )
