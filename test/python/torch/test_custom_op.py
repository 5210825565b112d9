"""Kernels and bundles as operators, against PyTorch's own."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

import lego_mlir as lg
from lego_mlir import Col, OrderBy, Row
from lego_mlir.torch import custom_op

M, N = 8, 16
DENSE = OrderBy(Row(M, N))
KIND = lg.Tensor["f32", DENSE]
COLUMNS = lg.Tensor["f32", OrderBy(Col(M, N))]
NUMBER = lg.Scalar["f32"]
_numbers = itertools.count()


def fresh(name: str) -> str:
    """Return a name that no other test registered."""
    return f"lego_test::{name}{next(_numbers)}"


def scaled(layout: lg.Layout = DENSE) -> Any:
    """Return a kernel y = alpha x, where x has a layout and y is row-major."""
    laid_out = lg.Tensor["f32", layout]

    @lg.kernel(grid=M, block=N)
    def scale(
        x: laid_out,
        y: KIND,
        alpha: NUMBER,
    ) -> None:
        i, j = lg.block_id(), lg.thread_id()
        y[i, j] = x[i, j] * alpha

    return scale


def products() -> tuple[Any, Any]:
    """Return the kernels of z = x y and of its gradients."""

    @lg.kernel(grid=M, block=N)
    def multiply(x: KIND, y: KIND, z: KIND) -> None:
        i, j = lg.block_id(), lg.thread_id()
        z[i, j] = x[i, j] * y[i, j]

    @lg.kernel(grid=M, block=N)
    def gradients(grad_z: KIND, x: KIND, y: KIND, grad_x: KIND, grad_y: KIND) -> None:
        i, j = lg.block_id(), lg.thread_id()
        grad_x[i, j] = grad_z[i, j] * y[i, j]
        grad_y[i, j] = grad_z[i, j] * x[i, j]

    return multiply, gradients


def test_results_are_what_the_kernel_only_writes() -> None:
    scale = custom_op(fresh("scale"), scaled())
    x = torch.randn(M, N)
    assert torch.equal(scale(x, 0.5), x * 0.5)
    torch.library.opcheck(scale, (x, 0.5))


@pytest.mark.parametrize("is_bundle", [True, False])
def test_a_bundle(tmp_path: Path, is_bundle: bool) -> None:
    artifact = scaled().compile()
    path = tmp_path / "scale.lego"
    artifact.save(path)
    scale = custom_op(fresh("scale"), path if is_bundle else artifact)
    x = torch.randn(M, N)
    assert torch.equal(scale(x, -2.0), x * -2)


def test_strides_of_the_layout_are_taken_as_they_are() -> None:
    scale = custom_op(fresh("scale"), scaled(OrderBy(Col(M, N))))
    x = torch.randn(N, M).t()
    assert torch.equal(scale(x, 2.0), x * 2)


def test_a_result_has_the_strides_of_its_layout() -> None:
    @lg.kernel(grid=M, block=N)
    def copied(x: KIND, y: COLUMNS) -> None:
        i, j = lg.block_id(), lg.thread_id()
        y[i, j] = x[i, j]

    operator = custom_op(fresh("copied"), copied)
    x = torch.randn(M, N)
    y = operator(x)
    assert (y.shape, y.stride()) == ((M, N), (1, M))
    assert torch.equal(y, x)
    torch.library.opcheck(operator, (x,))


def test_what_is_read_and_written_is_changed_in_place() -> None:
    @lg.kernel(grid=M, block=N)
    def doubled(x: KIND) -> None:
        i, j = lg.block_id(), lg.thread_id()
        x[i, j] = x[i, j] + x[i, j]

    operator = custom_op(fresh("doubled"), doubled)
    x = torch.randn(M, N)
    before = x.clone()
    assert operator(x) is None
    assert torch.equal(x, before * 2)
    compiled = torch.compile(lambda x: (operator(x), x + 1)[1], fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), before * 4 + 1)
    assert torch.equal(x, before * 4)


def test_memory_of_the_caller() -> None:
    scale = custom_op(fresh("scale"), scaled(), mutates=["y"])
    x, y = torch.randn(M, N), torch.zeros(M, N)
    assert scale(x, y, 3.0) is None
    assert torch.equal(y, x * 3)


def test_gradients_are_those_of_pytorch() -> None:
    multiply, gradients = products()
    operator = custom_op(fresh("multiply"), multiply, backward=gradients)
    x, y = (torch.randn(M, N, requires_grad=True) for _ in range(2))
    for grad in (torch.randn(M, N), torch.randn(N, M).t(), torch.ones(1, 1).expand(M, N)):
        ours = torch.autograd.grad(operator(x, y), (x, y), grad)
        theirs = torch.autograd.grad(x * y, (x, y), grad)
        assert all(map(torch.equal, ours, theirs))
    torch.library.opcheck(operator, (x, y))
    (only,) = torch.autograd.grad(operator(x, y.detach()).sum(), (x,))
    assert torch.equal(only, y.detach())


def test_in_a_graph_with_other_operators() -> None:
    multiply, gradients = products()
    operator = custom_op(fresh("multiply"), multiply, backward=gradients)

    def f(x: Any, y: Any) -> Any:
        return operator(torch.sin(x), y).relu().sum()

    def g(x: Any, y: Any) -> Any:
        return (torch.sin(x) * y).relu().sum()

    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    x, y = (torch.randn(M, N, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(compiled(x, y), g(x, y))
    ours, theirs = (torch.autograd.grad(h(x, y), (x, y)) for h in (compiled, g))
    torch.testing.assert_close(ours, theirs)


def test_an_input_that_no_backward_kernel_is_for() -> None:
    multiply, _ = products()

    @lg.kernel(grid=M, block=N)
    def of_x(grad_z: KIND, y: KIND, grad_x: KIND) -> None:
        i, j = lg.block_id(), lg.thread_id()
        grad_x[i, j] = grad_z[i, j] * y[i, j]

    operator = custom_op(fresh("multiply"), multiply, backward=[of_x])
    x, y = (torch.randn(M, N, requires_grad=True) for _ in range(2))
    with pytest.raises(lg.LegoError, match="no backward kernel writes 'grad_y'"):
        operator(x, y).sum().backward()


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (
            torch.zeros(M, N, dtype=torch.float64),
            "'x' holds torch.float32, the tensor",
        ),
        (torch.zeros(M, N + 1), r"'x' has the shape \[8, 16\], the tensor \[8, 17\]"),
        (torch.zeros(N, M).t(), r"'x' has the strides \[16, 1\], the tensor \[1, 8\]"),
        (torch.zeros(M, 2 * N)[:, ::2], r"'x' has the strides \[16, 1\], the tensor \[32, 2\]"),
    ],
)
def test_tensors_that_do_not_fit(x: Any, message: str) -> None:
    scale = custom_op(fresh("scale"), scaled())
    with pytest.raises(lg.LegoError, match=message) as caught:
        scale(x, 1.0)
    assert "\n" not in caught.value.message


def test_tensors_on_different_devices() -> None:
    multiply, _ = products()
    operator = custom_op(fresh("multiply"), multiply)
    with pytest.raises(lg.LegoError, match="devices: 'x' on cpu, 'y' on meta") as caught:
        operator(torch.zeros(M, N), torch.zeros(M, N, device="meta"))
    assert "\n" not in caught.value.message


def test_what_cannot_be_an_operator() -> None:
    multiply, gradients = products()

    @lg.kernel(grid=M, block=N)
    def ones(y: KIND) -> None:
        y[lg.block_id(), lg.thread_id()] = 1.0

    name = fresh("taken")
    custom_op(name, multiply)
    for arguments, message in [
        (("multiply", multiply), "'multiply' is not a name of an operator"),
        ((fresh("f"), print), "is neither a kernel nor a bundle"),
        ((fresh("f"), ones), "has no tensor as input"),
        ((name, multiply), "there is an operator"),
    ]:
        with pytest.raises(lg.LegoError, match=message):
            custom_op(*arguments)
    with pytest.raises(lg.LegoError, match="the kernel has no argument 'w'"):
        custom_op(fresh("f"), multiply, mutates=["w"])
    with pytest.raises(lg.LegoError, match="changes z, and has no gradient therefore"):
        custom_op(fresh("f"), multiply, mutates=["z"], backward=gradients)
    with pytest.raises(lg.LegoError, match=r"'grad_z' is neither one of .* nor the gradient of a"):
        custom_op(fresh("f"), scaled(), backward=gradients)
    with pytest.raises(lg.LegoError, match="it writes 'z', which is not the gradient of an input"):
        custom_op(fresh("f"), multiply, backward=multiply)


ROWS = lg.Tensor["f32", "M, N"]


def of_any_size() -> tuple[Any, Any]:
    """Return the kernels of z = x w and of its gradients, for any number of rows."""
    line = lg.Tensor["f32", "N"]

    @lg.kernel(grid=lambda x: x.shape[0], block=32)
    def multiply(x: ROWS, w: line, z: ROWS) -> None:
        for j in lg.loop(x.shape[1], start=lg.thread_id(), step=32):
            z[lg.block_id(), j] = x[lg.block_id(), j] * w[j]

    @lg.kernel(grid=lambda x: x.shape[0], block=32)
    def gradient(grad_z: ROWS, x: ROWS, w: line, grad_x: ROWS) -> None:
        for j in lg.loop(x.shape[1], start=lg.thread_id(), step=32):
            grad_x[lg.block_id(), j] = grad_z[lg.block_id(), j] * w[j]

    return multiply, gradient


def test_sizes_that_the_launch_knows() -> None:
    forward, backward = of_any_size()
    multiply = custom_op(fresh("any"), forward, backward=backward)
    compiled = torch.compile(
        lambda x, w: multiply(x.sin(), w).cos(), fullgraph=True, dynamic=True, backend="eager"
    )
    for m, n in ((3, 40), (8, 64), (1, 5)):
        x, w = torch.randn(m, n, requires_grad=True), torch.randn(n)
        assert torch.equal(multiply(x.detach(), w), x.detach() * w)
        torch.testing.assert_close(compiled(x, w), (x.sin() * w).cos())
        (found,) = torch.autograd.grad(multiply(x, w).sum(), x)
        torch.testing.assert_close(found, w.expand(m, n))
    torch.library.opcheck(multiply, (torch.randn(4, 24), torch.randn(24)))
    assert len(forward.classes()) <= 3


def test_sizes_that_do_not_follow_or_fit() -> None:
    line, other = lg.Tensor["f32", "N"], lg.Tensor["f32", "K"]

    @lg.kernel(grid=1, block=32)
    def made(x: line, y: other) -> None:
        y[0] = x[0]

    with pytest.raises(lg.LegoError, match="nothing that is given tells its size") as info:
        custom_op(fresh("made"), made)(torch.zeros(4))
    assert info.value.hint == "make it an input: mutates=[...]"
    multiply = custom_op(fresh("any"), of_any_size()[0])
    with pytest.raises(lg.LegoError, match=r"'x' has the shape \[\?, \?\], the tensor \[4\]"):
        multiply(torch.zeros(4), torch.zeros(4))
    with pytest.raises(lg.LegoError, match="'x' is row-major, the tensor has the strides") as info:
        multiply(torch.zeros(4, 5).t(), torch.zeros(4))
    with pytest.raises(lg.LegoError, match=r"'w'.* dimension 0 is 6"):
        multiply(torch.zeros(4, 5), torch.zeros(6))
