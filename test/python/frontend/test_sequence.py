"""Several kernels with shared arguments and workspaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lego_mlir.frontend as lg
from lego_mlir.algebra import Col, OrderBy, Row
from lego_mlir.algebra.sizes import size_symbol
from lego_mlir.artifact import Artifact, WorkspaceIndex
from lego_mlir.compiler.driver import Options
from lego_mlir.compiler.explanation import explain
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels import matmul
from lego_mlir.limits import Limits
from lego_mlir.runtime import launch, select

N = 256
F32 = lg.Tensor["f32", OrderBy(Row(N))]


@lg.kernel(grid=2, block=N // 2, pdl=True)
def double(x: F32, y: F32) -> None:  # type: ignore[valid-type]
    i = lg.block_id() * (N // 2) + lg.thread_id()
    y[i] = x[i] + x[i]


def doubled_twice(**options: Any) -> lg.KernelSequence:
    return lg.sequence(
        "twice",
        [double.on(y="once"), double.on(x="once")],
        parameters={"x": F32, "y": F32},
        workspaces={"once": lg.Workspace("f32", (N,))},
        **options,
    )


def test_a_kernel_reads_what_the_one_before_it_wrote() -> None:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    doubled_twice()(x, y, device="sim")
    np.testing.assert_array_equal(y, 4 * x)


def test_launches_name_the_workspace_and_the_kernels(tmp_path: Path) -> None:
    artifact = doubled_twice().compile("sm_90a")
    (workspace,) = artifact.workspaces
    assert (workspace.name, workspace.dtype, workspace.shape) == ("once", "f32", (N,))
    first, second = artifact.launches
    assert (first.kernel, second.kernel) == ("twice_double", "twice_double_0")
    assert first.parameters == (0, WorkspaceIndex(0))
    assert second.parameters == (WorkspaceIndex(0), 1)
    assert first.pdl
    artifact.save(tmp_path / "twice.lego")
    loaded = Artifact.load(tmp_path / "twice.lego")
    assert loaded == artifact
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    launch(loaded, x, y, device="sim")
    np.testing.assert_array_equal(y, 4 * x)


def test_a_kernel_with_pdl_waits_before_it_accesses_memory() -> None:
    """The launch before it may still write what it reads, or read what it writes."""
    for body in doubled_twice().compile("sm_90a").ptx.split(".entry")[1:]:
        wait = body.index("griddepcontrol.wait")
        assert wait < body.index("griddepcontrol.launch_dependents")
        assert wait < body.index("ld.global")


def test_a_kernel_says_when_the_next_launch_begins() -> None:
    @lg.kernel(grid=2, block=N // 2, pdl="wait")
    def doubled(x: F32, y: F32) -> None:  # type: ignore[valid-type]
        i = lg.block_id() * (N // 2) + lg.thread_id()
        value = x[i]
        lg.launch_dependents()
        y[i] = value + value

    artifact = doubled.compile("sm_90a")
    order = ("griddepcontrol.wait", "ld.global", "griddepcontrol.launch_dependents", "st.global")
    positions = [artifact.ptx.index(instruction) for instruction in order]
    assert positions == sorted(positions)
    assert "griddepcontrol" not in doubled.compile("sm_80").ptx
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    launch(artifact, x, y, device="sim")
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize(
    ("pdl", "told"), [(False, "waits for the end of this one"), (True, "begins as soon as")]
)
def test_a_kernel_that_says_it_in_vain_is_refused(pdl: bool, told: str) -> None:
    @lg.kernel(grid=1, block=1, pdl=pdl)
    def early(x: F32) -> None:  # type: ignore[valid-type]
        lg.launch_dependents()

    with pytest.raises(LegoError, match=told) as caught:
        early.compile("sm_90a")
    assert 'pdl="wait"' in caught.value.render()


def test_each_kernel_has_its_own_schedule_and_layouts() -> None:
    """A transposed copy without a schedule, then a GEMM by wgmma that reads the copy by TMA."""
    m = n = k = 64
    source, packed = OrderBy(Col(m, k)), OrderBy(Row(m, k))
    half = {"a": lg.Tensor["f16", source], "p": lg.Tensor["f16", packed]}

    @lg.kernel(grid=m, block=k, parameters=half)
    def pack(a: Any, p: Any) -> None:
        i, j = lg.block_id(), lg.thread_id()
        p[i, j] = a[i, j]

    gemm = matmul(m, n, k, target="sm_90a")
    assert gemm.schedule == "persistent"
    types = gemm.parameters()
    both = lg.sequence(
        "both",
        [pack.on(p="packed"), gemm.on(a="packed")],
        parameters={"a": half["a"], "b": types["b"], "c": types["c"]},
        workspaces={"packed": lg.Workspace("f16", (m * k,))},
    )
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 64)).astype(np.float16) for _ in range(2))
    for order in ("late", "early", "random:1"):
        c = np.zeros((m, n), np.float16)
        both(a.T.copy().reshape(-1), b, c, device=select("sim", order=order))
        np.testing.assert_array_equal(c, a @ b)
    text = explain(both.compilation(Options(target=Target.parse("sm_90a"))))
    assert "schedule   none\nworkspace  packed  f16 4096, 8192 bytes\nkernel     both_pack" in text
    assert "kernel     both_matmul" in text
    assert "\n  schedule   persistent\n" in text
    assert "workspace  packed: f16 4096" in both.explain()


def test_a_workspace_must_be_written_before_it_is_read() -> None:
    reads = lg.sequence(
        "reads",
        [double.on(x="w")],
        parameters={"y": F32},
        workspaces={"w": lg.Workspace("f32", (N,))},
    )
    with pytest.raises(LegoError, match=r"uninitialized: ld.global.* a workspace, before") as error:
        reads(np.zeros(N, np.float32), device="sim")
    assert error.value.location is not None
    assert error.value.location.file.endswith("test_sequence.py")


@pytest.mark.parametrize("leaves", [0, 7])
def test_a_zeroed_workspace_begins_and_ends_with_zeros(leaves: int) -> None:
    @lg.kernel(grid=1, block=N, parameters={"w": F32, "y": F32})
    def use(w: Any, y: Any) -> None:
        i = lg.thread_id()
        y[i] = w[i] + 1.0
        w[i] = y[i] * float(leaves)

    both = lg.sequence(
        "both",
        [use],
        parameters={"y": F32},
        workspaces={"w": lg.Workspace("f32", (N,), zeroed=True)},
    )
    y = np.zeros(N, np.float32)
    if leaves:
        with pytest.raises(LegoError, match=r"leaves its workspace 'w' .* at element 0"):
            both(y, device="sim")
    else:
        both(y, device="sim")
    assert (y == 1).all()


def test_workspaces_are_within_the_limit_of_memory() -> None:
    with (
        Limits(tensor_bytes=1000).applied(),
        pytest.raises(LegoError, match="the workspaces of 'twice' have 1024 bytes; the limit"),
    ):
        doubled_twice()(*np.zeros((2, N), np.float32), device="sim")


def of(*calls: Any, **workspaces: Any) -> lg.KernelSequence:
    return lg.sequence("s", calls, parameters={"x": F32, "y": F32}, workspaces=workspaces)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: of(double.on(y="z")), "'y' of kernel 'double' is 'z', and there is none"),
        (lambda: of(double.on(z="y")), "kernel 'double' has no parameter 'z'"),
        (lambda: of(double, x=lg.Workspace("f32", (N,))), "'x' is the name of two buffers"),
        (
            lambda: of(double.on(y="w"), w=lg.Workspace("f16", (N,))),
            "has 256 elements of f32, but 'w' has 256 of f16",
        ),
        (
            lambda: of(double.on(y="w"), w=lg.Workspace("f32", (N - 1,))),
            "has 256 elements of f32, but 'w' has 255 of f32",
        ),
        (lambda: lg.Workspace("f32", (0,)), r"the shape of a workspace is \(0,\)"),
        (lambda: lg.Workspace("f12", (1,)), "f12"),
        (
            lambda: lg.kernel(grid=1, block=1, pdl_ctas=8)(double.__wrapped__),
            "has pdl_ctas=8, and its launches are not dependent",
        ),
        (
            lambda: lg.kernel(grid=1, block=1, pdl=True, pdl_ctas=-8)(double.__wrapped__),
            "pdl_ctas is a number of CTAs from 0 on, not -8",
        ),
    ],
)
def test_mistakes(make: Any, told: str) -> None:
    with pytest.raises(LegoError, match=told):
        make()


def test_a_sequence_of_no_kernels_does_nothing(tmp_path: Path) -> None:
    nothing = lg.sequence("nothing", [], parameters={"x": lg.EmptyType("f32", (0, 3)), "y": F32})
    y = np.arange(N, dtype=np.float32)
    nothing(np.zeros((0, 3), np.float32), y, device="sim")
    assert (y == np.arange(N)).all()
    artifact = nothing.compile()
    artifact.save(tmp_path / "nothing.lego")
    assert Artifact.load(tmp_path / "nothing.lego") == artifact
    with pytest.raises(LegoError, match="shape"):
        nothing(np.zeros((1, 3), np.float32), y, device="sim")


def test_a_workspace_may_be_larger_than_what_a_kernel_uses() -> None:
    x, y = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    of(double.on(y="w"), double.on(x="w"), w=lg.Workspace("f32", (3, N)))(x, y, device="sim")
    np.testing.assert_array_equal(y, 4 * x)


def test_a_workspace_whose_size_the_launch_knows() -> None:
    m = size_symbol("M")
    line = lg.Tensor["f32", "M"]
    double = lg.kernel(grid=lambda x: x.shape[0], warps=1, parameters={"x": line, "y": line})(
        lambda x, y: y.__setitem__(lg.block_id(), x[lg.block_id()] * 2)
    )
    four = lg.sequence(
        "four",
        [double.on(y="twice"), double.on(x="twice")],
        parameters={"x": line, "y": line},
        workspaces={"twice": lg.Workspace("f32", (m,))},
    )
    for n in (3, 40):
        x, y = np.arange(n, dtype=np.float32), np.empty(n, np.float32)
        four(x, y, device="sim")
        assert (y == 4 * x).all()
