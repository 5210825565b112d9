"""Gradients along rows in the simulator, compared with PyTorch's autograd in f64."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from lego_mlir import runtime
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import (
    RowArgument,
    RowsConfig,
    cross_entropy,
    cross_entropy_backward,
    layernorm_backward,
    log_softmax_backward,
    rmsnorm_backward,
    rows,
    softmax_backward,
)

torch = pytest.importorskip("torch")

CASES = [
    (9, 64, None),
    (37, 1000, None),
    (5, 33, None),
    (2, 1, None),
    (40, 256, RowsConfig(2, 2, ctas=3)),
    (11, 640, RowsConfig(1, 5, ctas=3, ahead=2, together=2)),
    (10, 1024, RowsConfig(1, 2, cluster=2, ctas=3, ahead=3, together=2)),
    (7, 1000, RowsConfig(1, 2, 1, 4, cluster=2, ctas=2, stages=3)),
    (5, 300, RowsConfig(1, 2, 1, 4, ctas=2, stages=2, masked=True)),
    (7, 1000, RowsConfig(1, 2, 1, 4, cluster=2, ctas=2, stages=3, ring_bytes=6000)),
    (5, 300, RowsConfig(1, 2, 1, 4, ctas=2, stages=2, masked=True, ring_bytes=5000)),
    (9, 1300, RowsConfig(1, 4, 2, 4)),
    (9, 1300, RowsConfig(1, 4, 2, 4, held=True)),
    (3, 1300, RowsConfig(1, 2, cluster=4)),
]
"""Rows, columns, config."""


def random(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def poisoned(*shape: int) -> Any:
    return np.full(shape, np.nan, np.float32)


def leaf(x: Any) -> Any:
    """Return an array as a tensor of f64 that has a gradient."""
    return torch.from_numpy(x).double().requires_grad_()


def backward(y: Any, dy: Any) -> None:
    y.backward(torch.from_numpy(dy).double().reshape(y.shape))


def short(tensor: Any) -> Any:
    return tensor.detach().numpy().astype(np.float32)


@pytest.mark.parametrize(("m", "n", "config"), CASES)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str, m: int, n: int, config: RowsConfig | None) -> None:
    x, dy, dx = leaf(random(m, n)), random(m, n, seed=1), poisoned(m, n)
    y = getattr(x, name)(-1)
    backward(y, dy)
    make = {"softmax": softmax_backward, "log_softmax": log_softmax_backward}[name]
    make(m, n, config=config)(short(y), dy, dx, device="sim")
    np.testing.assert_allclose(dx, x.grad, atol=2e-6)


@pytest.mark.parametrize(("m", "n", "config"), CASES)
def test_rmsnorm(m: int, n: int, config: RowsConfig | None) -> None:
    x, w, dy, dprenorm = random(m, n), random(n), random(m, n, seed=1), random(m, n, seed=2)
    a, b = leaf(x), leaf(w)
    backward(torch.nn.functional.rms_norm(a, (n,), b + 1, 0.1), dy)
    rstd = (1 / np.sqrt((x.astype(np.float64) ** 2).mean(axis=1) + 0.1)).astype(np.float32)
    dx, dw = poisoned(m, n), poisoned(n)
    kernel = rmsnorm_backward(m, n, offset=1.0, residual="f32", config=config)
    kernel(x, w, dy, rstd, dx, dw, dprenorm, device="sim")
    np.testing.assert_allclose(dx, a.grad.numpy() + dprenorm, atol=1e-5)
    np.testing.assert_allclose(dw, b.grad, atol=1e-5)


@pytest.mark.parametrize(("m", "n", "config"), CASES)
def test_layernorm(m: int, n: int, config: RowsConfig | None) -> None:
    x, w, dy = random(m, n), random(n), random(m, n, seed=1)
    a, b, c = leaf(x), leaf(w), leaf(random(n, seed=2))
    backward(torch.nn.functional.layer_norm(a, (n,), b, c, 0.1), dy)
    mean = x.mean(axis=1)
    rstd = (1 / np.sqrt(x.astype(np.float64).var(axis=1) + 0.1)).astype(np.float32)
    dx, dw, db = poisoned(m, n), poisoned(n), poisoned(n)
    layernorm_backward(m, n, config=config)(x, w, dy, mean, rstd, dx, dw, db, device="sim")
    np.testing.assert_allclose(dx, a.grad, atol=1e-5)
    np.testing.assert_allclose(dw, b.grad, atol=1e-5)
    np.testing.assert_allclose(db, c.grad, atol=1e-5)


def test_sums_of_columns_are_the_same_every_time() -> None:
    m, n = 64, 256
    x, w, dy, rstd = random(m, n), random(n), random(m, n, seed=1), abs(random(m))
    found = []
    for order in ("late", "early", "random"):
        dx, dw = poisoned(m, n), poisoned(n)
        rmsnorm_backward(m, n)(x, w, dy, rstd, dx, dw, device=runtime.select("sim", order=order))
        found.append((dx.tobytes(), dw.tobytes()))
    assert len(set(found)) == 1


@pytest.mark.parametrize("config", [None, *(case[2] for case in CASES[-3:])])
def test_in_place(config: RowsConfig | None) -> None:
    """Columns are added up of what is read before it is overwritten."""
    m, n = 5, 1300
    x, w, dy, rstd = random(m, n), random(n), random(m, n, seed=1), abs(random(m))
    want, found = dy.copy(), dy.copy()
    dw = poisoned(2, n)
    rmsnorm_backward(m, n, config=config)(x, w, dy, rstd, want, dw[0], device="sim")
    kernel = rmsnorm_backward(m, n, config=config, in_place=True)
    kernel(x, w, found, rstd, found, dw[1], device="sim")
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(dw[0], dw[1])


def test_bf16() -> None:
    m, n = 6, 300
    x, w, dy = (a.astype(ml_dtypes.bfloat16) for a in (random(m, n), random(n), random(m, n)))
    wide = [a.astype(np.float32) for a in (x, w, dy)]
    a, b = leaf(wide[0]), leaf(wide[1])
    backward(torch.nn.functional.rms_norm(a, (n,), b, 1e-6), wide[2])
    rstd = (1 / np.sqrt((wide[0].astype(np.float64) ** 2).mean(axis=1) + 1e-6)).astype(np.float32)
    dx, dw = poisoned(m, n).astype(x.dtype), poisoned(n).astype(x.dtype)
    rmsnorm_backward(m, n, "bf16")(x, w, dy, rstd, dx, dw, device="sim")
    np.testing.assert_allclose(dx.astype(np.float64), a.grad, rtol=2**-8, atol=1e-6)
    np.testing.assert_allclose(dw.astype(np.float64), b.grad, rtol=2**-8, atol=1e-6)


@pytest.mark.parametrize(("ring_bytes", "short"), [(0, False), (0, True), (5000, True)])
def test_rows_of_two_bytes_in_stages_are_read_by_whole_vectors(
    ring_bytes: int, *, short: bool
) -> None:
    """Sums of f32, which are stored after the loop, do not make the loop's vectors shorter."""
    m, n = 5, 1000
    x, dy = (random(m, n, seed=k).astype(ml_dtypes.bfloat16) for k in range(2))
    w = random(n, seed=2).astype(ml_dtypes.bfloat16)
    normal = torch.nn.functional.layer_norm(a := leaf(x.astype(np.float32)), (n,), eps=0.0)
    backward(normal * torch.from_numpy(w.astype(np.float64)), dy.astype(np.float32))
    wide = x.astype(np.float64)
    mean, rstd = wide.mean(axis=1), 1 / wide.std(axis=1)
    dx, dw, db = np.empty_like(x), np.empty_like(w), np.empty_like(w)
    config = RowsConfig(1, 2, 1, 8, ctas=2, stages=2, ring_bytes=ring_bytes, short=short)
    kernel = layernorm_backward(m, n, "bf16", config=config)
    saved = (s.astype(np.float32) for s in (mean, rstd))
    kernel(x, w, dy, *saved, dx, dw, db, device="sim")
    np.testing.assert_allclose(dx.astype(np.float32), a.grad, atol=0.04)
    slope = dy.astype(np.float64)
    np.testing.assert_allclose(db.astype(np.float64), slope.sum(axis=0), atol=0.04)
    normals = (wide - mean[:, None]) * rstd[:, None]
    np.testing.assert_allclose(dw.astype(np.float64), (slope * normals).sum(axis=0), atol=0.06)
    first = kernel.calls[0].kernel.compilation()
    assert "register  8 along dim 2" in "\n".join(first.explain_tiles()[0])
    kept = re.search(r"begin inline asm\n.*\n\s+mov\.b32", kernel.compile("sm_90a").ptx)
    assert (kept is not None) == short


def test_threads_that_read_what_they_copy_wait_for_no_others() -> None:
    """Without the reduction's barriers there would be none in the loop."""
    counts = {}
    for ring_bytes in (0, 6000):
        config = RowsConfig(1, 2, 1, 4, ctas=2, stages=2, ring_bytes=ring_bytes)
        ptx = rmsnorm_backward(7, 600, config=config).compile("sm_90a").ptx
        (sums,) = (x for x in ptx.split(".entry ") if "_sums(" in x.split("\n")[0])
        counts[ring_bytes] = sums.count("bar.sync"), sums.count("cp.async.wait_group")
    assert counts == {0: (2, 1), 6000: (2, 6)}


OPTIONS: list[dict[str, Any]] = [
    {},
    {"reduction": "mean", "label_smoothing": 0.1, "ignore_index": 3, "labels": "i64"},
    {"reduction": "sum", "label_smoothing": 0.1, "z_loss": 1e-3, "labels": "i64"},
    {"reduction": "mean", "soft_cap": 30.0},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("m", "n", "config"),
    [(9, 64, None), (3, 1301, None), CASES[-2], (3, 1301, RowsConfig(1, 4, 2, 1, held=True))],
)
def test_cross_entropy(m: int, n: int, config: RowsConfig | None, options: Any) -> None:
    x = random(m, n) * 3
    labels = np.random.default_rng(3).integers(0, n, m)
    labels = labels.astype({"i32": np.int32, "i64": np.int64}[options.get("labels", "i32")])
    labels[1] = options.get("ignore_index", -100)
    loss, cap = _loss(a := leaf(x), labels, **options)
    dloss = random(loss.numel(), seed=4)
    backward(loss, dloss)
    found, lse, dx = poisoned(loss.numel()), poisoned(m), poisoned(m, n)
    kernel = cross_entropy(m, n, save=True, config=config, **options)
    kernel(x, labels, found, lse, device="sim")
    np.testing.assert_allclose(found, loss.detach().reshape(-1), rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(lse, cap.logsumexp(-1).detach(), rtol=1e-6)
    kernel = cross_entropy_backward(m, n, config=config, **options)
    kernel(x, labels, lse, dloss, dx, device="sim")
    np.testing.assert_allclose(dx, a.grad, atol=1e-6)


def _loss(x: Any, numbers: Any, **options: Any) -> tuple[Any, Any]:
    """Return the loss in PyTorch, and the logits that it is of."""
    targets = torch.from_numpy(numbers).long()
    ignored, soft_cap = options.get("ignore_index", -100), options.get("soft_cap")
    cap = x if soft_cap is None else soft_cap * torch.tanh(x / soft_cap)
    smoothing = options.get("label_smoothing", 0.0)
    loss = torch.nn.functional.cross_entropy(
        cap, targets, reduction="none", ignore_index=ignored, label_smoothing=smoothing
    )
    loss = loss + options.get("z_loss", 0.0) * cap.logsumexp(-1) ** 2 * (targets != ignored)
    reduction = options.get("reduction", "none")
    count = (targets != ignored).sum() if reduction == "mean" else 1
    return (loss if reduction == "none" else loss.sum() / count), cap


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_labels_outside_of_the_classes_give_nan(dtype: str) -> None:
    """Nothing out of bounds is read: the simulator would report it."""
    m, n = 6, 100
    x, loss, lse, dx = random(m, n), poisoned(m), poisoned(m), np.zeros((m, n), np.float32)
    kind = {"i32": np.int32, "i64": np.int64}[dtype]
    labels = np.array([0, n, -1, np.iinfo(kind).max, -100, n - 1], kind)
    cross_entropy(m, n, labels=dtype, save=True)(x, labels, loss, lse, device="sim")
    kernel = cross_entropy_backward(m, n, labels=dtype)
    kernel(x, labels, lse, np.ones(m, np.float32), dx, device="sim")
    assert np.isnan(loss).tolist() == [False, True, True, True, False, False]
    assert np.isnan(dx).any(axis=1).tolist() == np.isnan(loss).tolist()
    assert loss[4] == 0
    assert not dx[4].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "max"}, "no reduction 'max'"),
        ({"labels": "f32"}, "i32 or i64"),
        ({"label_smoothing": 1.5}, "from 0 to 1"),
        ({"soft_cap": 0.0}, "soft_cap is positive"),
    ],
)
def test_wrong_options_are_errors(options: Any, message: str) -> None:
    with pytest.raises(LegoError, match=message):
        cross_entropy(4, 4, **options)


def test_sums_of_columns_take_no_statistics() -> None:
    with pytest.raises(LegoError, match="statistic 'total'"):
        rows(
            (4, 4),
            name="wrong",
            arguments={"x": RowArgument("f32"), "s": RowArgument("f32", "column")},
            load=lambda x: x,
            stats={"total": (lambda row: row, "sum")},
            columns={"s": lambda row, total: row * total},
        )
