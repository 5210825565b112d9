"""The registered operators, against PyTorch's own on the same numbers."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir.torch import (
    Linear,
    grouped_matmul,
    linear,
    matmul,
    permute,
    ragged_matmul,
    transpose,
)
from lego_mlir.torch.tensors import alignment_of, dense, is_dense, layout_of


def halves(*shape: int, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=torch.float16, generator=generator)


def check(ours: Any, theirs: Any) -> None:
    """Check against a product in f32; the tensor cores' own errors are of the order of 1e-3."""
    torch.testing.assert_close(ours.float(), theirs.float(), rtol=2e-3, atol=2e-2)


# Layouts.
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_layout_of_a_tensor_is_where_its_elements_lie(
    shape: list[int], random: Any, has_gaps: bool
) -> None:
    order = random.sample(range(len(shape)), len(shape))
    x = torch.arange(torch.Size(shape).numel() * 2).view(*shape, 2)
    x = (x[..., 0] if has_gaps else x[..., 0].contiguous()).permute(order)
    offsets = [
        sum(i * s for i, s in zip(index, x.stride(), strict=True))
        for index in torch.cartesian_prod(*map(torch.arange, x.shape)).view(-1, x.dim()).tolist()
    ]
    assert is_dense(x) == (sorted(offsets) == list(range(x.numel())))
    if is_dense(x):
        layout = layout_of(x.shape, x.stride()) or lg.OrderBy(lg.Row(*x.shape))
        assert [int(n) for n in layout.offsets().reshape(-1)] == offsets
    assert is_dense(dense(x))
    assert torch.equal(dense(x), x)


def test_alignments() -> None:
    x = torch.zeros(64, dtype=torch.float16)
    start = x.data_ptr() // 2 % 8
    at = [x[(8 - start) % 8 + k :] for k in range(9)]
    assert [alignment_of(t) for t in at] == [16, 2, 4, 2, 8, 2, 4, 2, 16]
    assert alignment_of(at[4], at[8]) == 8


# GEMM.
MATRICES = [
    (halves(16, 24), halves(24, 32)),
    (halves(24, 16).t(), halves(32, 24).t()),
    (halves(16, 48)[:, :24], halves(48, 32)[::2]),
    (halves(17 * 24)[24:].view(16, 24), halves(24 * 8 + 1)[1:].view(24, 8)),
    (halves(2, 3, 24), halves(24, 8)),
    (halves(3, 24, 16).mT, halves(3, 24, 8)),
    (halves(2, 3, 16, 24), halves(2, 3, 24, 8)),
    (halves(1, 24).expand(16, 24), halves(24, 8)),
    (halves(5, 7), halves(7, 3)),
    (halves(0, 24), halves(24, 8)),
    (halves(8, 0), halves(0, 8)),
]


@pytest.mark.parametrize(("a", "b"), MATRICES)
def test_matmul(a: Any, b: Any) -> None:
    c = matmul(a, b)
    assert c.dtype == torch.float16
    assert c.is_contiguous()
    check(c, torch.matmul(a.float(), b.float()))


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        (torch.bfloat16, torch.bfloat16),
        (torch.float8_e4m3fn, torch.float16),
        (torch.int8, torch.int32),
    ],
)
def test_dtypes(dtype: Any, out: Any) -> None:
    a, b = (2 * halves(16, 32)).to(dtype), (2 * halves(8, 32)).to(dtype).t()
    found = matmul(a, b)
    assert found.dtype == out
    expected = a.float() @ b.float()
    torch.testing.assert_close(found.float(), expected, rtol=1e-2, atol=1e-2)
    wide = matmul(a, b, out_dtype=torch.float32)
    torch.testing.assert_close(wide, expected, rtol=1e-3, atol=1e-3)


def test_gradients_of_matmul() -> None:
    for a, b in MATRICES[:7]:
        a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
        ours, theirs = matmul(a, b), torch.matmul(a.float(), b.float())
        grad = halves(*ours.shape, seed=3)
        found = torch.autograd.grad(ours, (a, b), grad)
        expected = torch.autograd.grad(theirs, (a, b), grad.float())
        for x, y in zip(found, expected, strict=True):
            check(x, y)
    eighths = halves(16, 16).requires_grad_().to(torch.float8_e5m2)
    total = matmul(eighths, eighths.t()).sum()
    with pytest.raises(lg.LegoError, match=r"no gradient for matrices of torch.float8_e5m2"):
        total.backward()


def test_linear_layers() -> None:
    for bias in (True, False):
        theirs = torch.nn.Linear(24, 16, bias=bias).half()
        ours = Linear(24, 16, bias=bias).half()
        ours.load_state_dict(theirs.state_dict())
        for shape in [(8, 24), (2, 4, 24), (24,)]:
            x = halves(*shape)
            check(ours(x), theirs(x))


def test_operators_pass_pytorchs_own_checks() -> None:
    ops = torch.ops.lego
    a, b, bias = (x.requires_grad_() for x in (halves(16, 24), halves(24, 8), halves(8)))
    torch.library.opcheck(ops.matmul.default, (a, b), {"out_dtype": torch.float32})
    torch.library.opcheck(ops.linear.default, (a, b, bias))
    torch.library.opcheck(ops.permute.default, (a, [1, 0]))
    torch.library.opcheck(ops.transpose.default, (a,))


def test_the_other_operators_pass_pytorchs_own_checks() -> None:
    ops = torch.ops.lego
    a, b = (
        [halves(*s).requires_grad_() for s in x] for x in (((16, 8), (8, 8)), ((8, 8), (8, 16)))
    )
    torch.library.opcheck(ops.grouped_matmul.default, (a, b))
    offsets = torch.tensor([3, 16], dtype=torch.int32)
    torch.library.opcheck(ops.ragged_matmul.default, (a[0], halves(2, 8, 8), offsets))


def test_a_dynamic_number_of_rows() -> None:
    compiled = torch.compile(matmul, fullgraph=True, backend="aot_eager", dynamic=True)
    for m in (8, 16, 24):
        a, b = halves(m, 24), halves(24, 8)
        check(compiled(a, b), a.float() @ b.float())


# Permutations.
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bool, torch.float32, torch.int64, torch.float8_e4m3fn]
)
def test_permutations_move_bits(dtype: Any) -> None:
    x = (100 * halves(4, 3, 8)).to(dtype)
    for y in (x, x.transpose(0, 2), x[:, :2]):
        for dims in [(0, 1, 2), (2, 0, 1), (-1, 1, -3)]:
            ours, theirs = permute(y, dims), y.permute(dims).contiguous()
            assert ours.is_contiguous()
            assert ours.shape == theirs.shape
            assert torch.equal(ours.float(), theirs.float())
        assert torch.equal(transpose(y).float(), y.mT.float())


def test_permutations_of_nothing() -> None:
    assert permute(torch.tensor(3.0), ()) == 3
    assert permute(torch.zeros(0, 3), (1, 0)).shape == (3, 0)


def test_gradients_of_permutations() -> None:
    x = torch.randn(4, 3, 8, requires_grad=True)
    weight = torch.randn(8, 4, 3)
    (ours,) = torch.autograd.grad((permute(x, (2, 0, -2)) * weight).sum(), x)
    assert torch.equal(ours, weight.permute(1, 2, 0))
    (ours,) = torch.autograd.grad((transpose(x) * weight.permute(1, 0, 2)).sum(), x)
    assert torch.equal(ours, weight.permute(1, 2, 0))


# Several.
def test_grouped_matmul() -> None:
    shapes = [(16, 24, 32), (8, 40, 16), (0, 8, 8), (8, 0, 8)]
    for by_column in (False, True):
        a = [halves(k, m).t() if by_column else halves(m, k) for m, k, _ in shapes]
        b = [halves(k, n) for _, k, n in shapes]
        for x, y in zip((a[0], b[1]), (a[1], b[0]), strict=True):
            assert x.shape != y.shape
        for c, x, y in zip(grouped_matmul(a, b), a, b, strict=True):
            check(c, x.float() @ y.float())
    mixed = [halves(16, 24), halves(40, 8).t()]
    for c, x, y in zip(grouped_matmul(mixed, b[:2]), mixed, b[:2], strict=True):
        check(c, x.float() @ y.float())


def test_gradients_of_grouped_matmul() -> None:
    a = [halves(16, 24).requires_grad_(), halves(8, 40).requires_grad_()]
    b = [halves(24, 32).requires_grad_(), halves(40, 16).requires_grad_()]
    ours = torch.autograd.grad(sum(c.float().sum() for c in grouped_matmul(a, b)), (*a, *b))
    theirs = torch.autograd.grad(
        sum((x.float() @ y.float()).sum() for x, y in zip(a, b, strict=True)), (*a, *b)
    )
    for x, y in zip(ours, theirs, strict=True):
        check(x, y)


def by_groups(a: Any, b: Any, ends: list[int]) -> Any:
    """Return what `ragged_matmul` computes."""
    starts = [0, *ends[:-1]]
    rows = [a[i:j].float() @ matrix.float() for i, j, matrix in zip(starts, ends, b, strict=True)]
    rest = torch.zeros(len(a) - ends[-1], b.shape[2])
    return torch.cat([*rows, rest])


@pytest.mark.parametrize("ends", [[5, 5, 20], [0, 24, 24], [8, 16, 24]])
def test_ragged_matmul(ends: list[int]) -> None:
    a, b = halves(24, 16).requires_grad_(), halves(3, 32, 16).mT.requires_grad_()
    offsets = torch.tensor(ends, dtype=torch.int32)
    found = ragged_matmul(a, b, offsets)
    check(found, by_groups(a, b, ends))
    weights = halves(*found.shape).float()
    ours = torch.autograd.grad((found.float() * weights).sum(), (a, b))
    theirs = torch.autograd.grad((by_groups(a, b, ends) * weights).sum(), (a, b))
    for x, y in zip(ours, theirs, strict=True):
        check(x, y)


# Mistakes.
ERRORS = [
    (lambda: matmul(halves(8), halves(8, 8)), r"the shapes \[8\] and \[8, 8\] are not"),
    (lambda: matmul(halves(8, 8), halves(9, 8)), "a has 8 columns and b 9 rows"),
    (lambda: matmul(halves(2, 8, 8), halves(3, 8, 8)), "with the same leading dimensions"),
    (lambda: matmul(halves(8, 8), halves(8, 8).bfloat16()), "a holds torch.float16 and b torch.bf"),
    (lambda: matmul(halves(8, 8).float(), halves(8, 8).float()), "do not multiply 'f32'"),
    (lambda: matmul(halves(8, 8).cfloat(), halves(8, 8).cfloat()), "elements of torch.complex64"),
    (lambda: matmul(halves(8, 8), halves(8, 8).to("meta")), "devices: 'a' on cpu, 'b' on meta"),
    (lambda: matmul(halves(8, 8), halves(8, 8), out_dtype=torch.int8), "C of i8 from f32"),
    (lambda: linear(halves(8, 8), halves(8)), "x, weight and bias are"),
    (lambda: linear(halves(8, 8), halves(4, 8), halves(5)), r"the bias is \[4\] of torch.float16"),
    (lambda: permute(halves(8, 8), (0, 0)), r"\[0, 0\] is no permutation"),
    (lambda: permute(halves(8, 8).cfloat(), (1, 0)), "elements of torch.complex64"),
    (lambda: transpose(halves(8)), r"\[8\] is no matrix"),
    (lambda: grouped_matmul([halves(8, 8)], []), "1 matrices a for 0 matrices b"),
    (lambda: grouped_matmul([halves(8, 8)], [halves(9, 8)]), r"a\[0\] and b\[0\] are \[m, k\]"),
    (
        lambda: ragged_matmul(halves(8, 8), halves(2, 8, 8), torch.zeros(2, dtype=torch.int64)),
        r"the offsets are \[2\] of torch.int32, not \[2\] of torch.int64",
    ),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_mistakes(call: Any, message: str) -> None:
    with pytest.raises(lg.LegoError, match=message.replace("torch.bf", "torch.bfloat16")) as caught:
        call()
    assert "\n" not in caught.value.message


def test_nothing_else_imports_pytorch() -> None:
    program = (
        "import sys, numpy as np, lego_mlir as lg, lego_mlir.kernels as k, lego_mlir.cli\n"
        "x, y = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)\n"
        "k.transpose(8, 8)(x, y, device='sim')\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
