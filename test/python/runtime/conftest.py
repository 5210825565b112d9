"""Artifacts written by hand: what a compiler would make, without one."""

from __future__ import annotations

import pytest

from lego_mlir.artifact import Argument, Artifact, Computed, Constant, Fact, KernelLaunch

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


ROWS_PTX = """.version 8.3
.target sm_90a
.address_size 64

.visible .entry double_rows(
    .param .u64 .ptr .align 4 double_rows_param_0,
    .param .u64 .ptr .align 4 double_rows_param_1,
    .param .u32 double_rows_param_2,
    .param .u64 double_rows_param_3,
    .param .u64 double_rows_param_4
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<7>;
    .reg .b64 %rd<12>;
    .reg .f32 %f<2>;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    ld.param.b32 %r3, [double_rows_param_2];
    mad.lo.s32 %r4, %r1, 8, 0;
    add.s32 %r4, %r4, %r2;
    setp.ge.s32 %p1, %r4, %r3;
    @%p1 bra $L_end;
    mov.u32 %r5, %ctaid.y;
    cvt.u64.u32 %rd1, %r5;
    cvt.u64.u32 %rd2, %r4;
    ld.param.b64 %rd3, [double_rows_param_3];
    ld.param.b64 %rd4, [double_rows_param_4];
    mad.lo.s64 %rd5, %rd1, %rd3, %rd2;
    mad.lo.s64 %rd6, %rd1, %rd4, %rd2;
    shl.b64 %rd5, %rd5, 2;
    shl.b64 %rd6, %rd6, 2;
    ld.param.b64 %rd7, [double_rows_param_0];
    ld.param.b64 %rd8, [double_rows_param_1];
    add.s64 %rd9, %rd7, %rd5;
    add.s64 %rd10, %rd8, %rd6;
    ld.global.f32 %f1, [%rd9];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd10], %f1;
$L_end:
    ret;
}
"""


@pytest.fixture
def rows() -> Artifact:
    """Doubles f32 tensors of any numbers of rows and columns, whose rows lie anywhere."""
    parameters = (
        0,
        1,
        Computed("i32", "a0.d1"),
        Computed("i64", "a0.s0"),
        Computed("i64", "a1.s0"),
    )
    return Artifact(
        name="rows",
        target="sm_90a",
        arguments=(
            Argument("x", "f32", (None, None), access="read", strides=(None, 1)),
            Argument("y", "f32", (None, None), access="write", strides=(None, 1)),
        ),
        launches=(
            KernelLaunch("double_rows", ("a0.d1 7 + 8 //", "a0.d0", 1), (8, 1, 1), parameters),
        ),
        ptx=ROWS_PTX,
        facts=(
            Fact("a1.d0 a0.d0 ==", "a1.d0", "not M, the size of 'x' along dimension 0"),
            Fact("a1.d1 a0.d1 ==", "a1.d1", "not N, the size of 'x' along dimension 1"),
            Fact("a0.d1 4 % 0 ==", "a0.d1", "no multiple of 4, which N{4} promises"),
        ),
    )
