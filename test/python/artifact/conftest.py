"""An artifact written by hand, with every kind of parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lego_mlir.artifact import (
    Argument,
    Artifact,
    Computed,
    Constant,
    Fact,
    KernelLaunch,
    TensorMapParameter,
    TensorMapParameters,
    Workspace,
    WorkspaceIndex,
)

PTX = """.version 8.3
.target sm_90a
.address_size 64
// .visible .entry k(.param .u64 a) is not declared by a comment,
/* and .entry k() not by this one */
.visible .entry k(
    .param .u64 .ptr .global .align 16 k_param_0, // , .param .u64 aside
    .param .align 64 .b8 k_param_1[128],
    .param .u32 k_param_2,
    .param .align 64 .b8 k_param_3[256],
    .param .f32 k_param_4,
    .param .u32 k_param_5
)
.maxntid 32, 1, 1
{ ret; }
"""


@pytest.fixture
def whole() -> Artifact:
    tiles = TensorMapParameter(1, (4, 3, 2), (16, 48), (4, 1, 1), 32)
    parameters = (
        0,
        tiles,
        Constant("i32", -3),
        TensorMapParameters((tiles, replace(tiles, argument=WorkspaceIndex(1)))),
        Constant("f32", 0.5),
        2,
    )
    return Artifact(
        name="host",
        target="sm_90a",
        arguments=(
            Argument("a", "f16", (4, 6), access="read", alignment=16),
            Argument("b.1", "f32", (24,), "OrderBy(Col(6, 4))", "write"),
            Argument("n", "index", None, None, "read"),
        ),
        launches=(KernelLaunch("k", (2, 1, 1), (32, 1, 1), parameters, 1024, pdl=True),) * 2,
        ptx=PTX,
        cubin=b"\x7fELF\0\xff",
        reference="permute(1, 0)",
        workspaces=(Workspace("count", "i32", (1,), 4, zeroed=True), Workspace("w", "f32", (24,))),
    )


SIZED_PTX = """.version 8.3
.target sm_90a
.address_size 64
.visible .entry k(
    .param .u64 .ptr .global .align 16 k_param_0,
    .param .align 64 .b8 k_param_1[128],
    .param .u32 k_param_2,
    .param .u64 k_param_3,
    .param .u64 .ptr .global .align 256 k_param_4
)
{ ret; }
"""


@pytest.fixture
def sized() -> Artifact:
    """An artifact whose sizes the launch knows."""
    tiles = TensorMapParameter(1, (64, "a1.d0"), ("a1.s0 4 *",), (32, 8), 128)
    parameters = (
        0,
        tiles,
        Computed("i32", "a0.d0"),
        Computed("index", "a0.d0 a0.d1 *"),
        WorkspaceIndex(0),
    )
    return Artifact(
        name="host",
        target="sm_90a",
        arguments=(
            Argument(
                "a",
                "f16",
                (None, None),
                "OrderBy(Col(M, N))",
                "read",
                16,
                symbols=(("M", "a0.d0"), ("N", "a0.d1")),
            ),
            Argument("b", "f32", (None, 64), access="write", strides=(None, 1)),
        ),
        launches=(KernelLaunch("k", ("a0.d0 127 + 128 //", 1, 1), (32, 1, 1), parameters),),
        ptx=SIZED_PTX,
        facts=(Fact("a1.d0 a0.d0 ==", "a1.d0", "not M, the size of 'a' along dimension 0"),),
        workspaces=(Workspace("w", "f32", ("a0.d0", 64)),),
    )
