"""The Triton figures: matmul in four orders and in 8 bits, grouped GEMM, softmax, LayerNorm."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.contenders.case import BY_HAND, OURS, PRINTED, Built, ContenderCase, Contenders

_MATMUL = {"BM": 128, "BN": 256, "BK": 64, "GM": 8}
_WARPS, _STAGES = 8, 3
_GROUPED = {"BM": 128, "BN": 128, "BK": 64}
_GROUPS = 4
_ROWS = 4096
_BACKWARD = {"BM": 32, "BN": 128}
_EPSILON = 1e-5


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for size in (1024, 4096, 8192):
        for a in ("row", "col"):
            for b in ("row", "col"):
                yield _matmul_case(size, a, b, "f16", "LEGO 12a")
        yield _matmul_case(size, "row", "col", "f8E4M3FN", "LEGO 12b")
    for size in (1024, 4096, 8192):
        yield _grouped_case(size)
    for columns in (1024, 4096, 8192):
        yield _softmax_case(columns)
        yield _layernorm_forward_case(columns)
        yield _layernorm_backward_case(columns)


def _module(path: Path) -> Any:
    """Import a printed file, whose kernels Triton compiles from its text."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _by_hand() -> Any:
    from bench.figures.by_hand import triton_kernels

    return triton_kernels


def _matmul_case(size: int, a: str, b: str, dtype: str, figure: str) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        from lego_mlir import Col, OrderBy, Row
        from lego_mlir.kernels import matmul

        left, right = (OrderBy((Row if order == "row" else Col)(size, size)) for order in (a, b))
        kernel = matmul(size, size, size, dtype, out="f16", a=left, b=right, target="sm_90a")
        return {OURS: kernel}

    return ContenderCase(
        name=f"matmul {dtype} {a} {b} {size}",
        figure=figure,
        printed={"printed.py": ("matmul.py.j2", {**_MATMUL, "A": a, "B": b})},
        kernels=kernels,
        contenders=partial(_matmul_contenders, size=size, a=a, b=b, dtype=dtype),
        work=2.0 * size**3,
        unit="TFLOP/s",
    )


def _matmul_contenders(built: Built, size: int, a: str, b: str, dtype: str) -> Contenders:
    torch = built.torch
    kind = torch.float16 if dtype == "f16" else torch.float8_e4m3fn

    def operand(order: str) -> Any:
        x = (torch.randn((size, size), device="cuda") / 4).to(kind)
        return x if order == "row" else x.t()

    left, right = operand(a), operand(b)
    c = torch.empty((size, size), device="cuda", dtype=torch.float16)
    grid = (size // _MATMUL["BM"] * (size // _MATMUL["BN"]),)
    options = {"num_warps": _WARPS, "num_stages": _STAGES}
    printed, by_hand = _module(built.folder / "printed.py").matmul, _by_hand().matmul
    # The printed kernel takes memory as it lies: columns of A one after another are rows of Aᵀ.
    strides = (*left.stride(), *right.stride())
    calls: dict[str, Callable[[], Any]] = {
        OURS: built.ours(OURS, left, right, c),
        PRINTED: lambda: printed[grid](left, right, c, size, size, size, **options),
        BY_HAND: lambda: by_hand[grid](
            left, right, c, size, size, size, *strides, **_MATMUL, **options
        ),
    }
    if dtype == "f16":
        calls["cuBLAS"] = lambda: torch.mm(left, right, out=c)
    else:
        one = torch.ones((), device="cuda")
        calls["cuBLAS"] = lambda: torch._scaled_mm(
            left, right, one, one, out_dtype=torch.float16, out=c
        )
    expected = left.to(torch.float16) @ right.to(torch.float16)
    return Contenders(calls, [c], [expected], 1e-2)


def _grouped_case(size: int) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        from lego_mlir.kernels import grouped_matmul

        return {OURS: grouped_matmul([(size, size, size)] * _GROUPS, target="sm_90a")}

    values = {**_GROUPED, "TYPE": "float16"}
    return ContenderCase(
        name=f"grouped GEMM {_GROUPS} {size}",
        figure="LEGO 12c",
        printed={"printed.py": ("grouped_gemm.py.j2", values)},
        kernels=kernels,
        contenders=partial(_grouped_contenders, size=size),
        work=2.0 * _GROUPS * size**3,
        unit="TFLOP/s",
    )


def _grouped_contenders(built: Built, size: int) -> Contenders:
    torch = built.torch
    shape = (_GROUPS, size, size)
    a, b = (torch.randn(shape, device="cuda").half() / 4 for _ in range(2))
    c = torch.empty_like(a)
    each = [x for k in range(_GROUPS) for x in (a[k], b[k], c[k])]
    pointers = torch.tensor([x.data_ptr() for x in each], device="cuda", dtype=torch.int64)
    sizes = torch.full((3 * _GROUPS,), size, device="cuda", dtype=torch.int32)
    programs = (torch.cuda.get_device_properties(0).multi_processor_count,)
    options = {"num_warps": _WARPS, "num_stages": _STAGES}
    printed, by_hand = _module(built.folder / "printed.py").grouped_gemm, _by_hand().grouped_gemm

    def by_cublas() -> None:
        for k in range(_GROUPS):
            torch.mm(a[k], b[k], out=c[k])

    calls = {
        OURS: built.ours(OURS, *each),
        PRINTED: lambda: printed[programs](pointers, sizes, _GROUPS, **options),
        BY_HAND: lambda: by_hand[programs](pointers, sizes, _GROUPS, **_GROUPED, **options),
        "cuBLAS, one after another": by_cublas,
    }
    return Contenders(calls, [c], [a @ b], 1e-2)


def _softmax_case(columns: int) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        from lego_mlir.kernels import softmax

        return {OURS: softmax(_rows(columns), columns, "f32")}

    return ContenderCase(
        name=f"softmax f32 {_rows(columns)}×{columns}",
        figure="LEGO 12d",
        printed={"printed.py": ("softmax.py.j2", {"WIDTH": columns})},
        kernels=kernels,
        contenders=partial(_softmax_contenders, columns=columns),
        work=8.0 * _rows(columns) * columns,
        unit="GB/s",
    )


def _rows(columns: int) -> int:
    """Return rows such that matrices are larger than the L2 cache."""
    return _ROWS * 8192 // columns


def _warps(columns: int) -> int:
    return min(max(columns // 256, 1), 8)


def _softmax_contenders(built: Built, columns: int) -> Contenders:
    torch, rows = built.torch, _rows(columns)
    x = torch.randn((rows, columns), device="cuda")
    y = torch.empty_like(x)
    printed, by_hand = _module(built.folder / "printed.py").softmax, _by_hand().softmax
    warps = {"num_warps": _warps(columns)}
    calls = {
        OURS: built.ours(OURS, x, y),
        PRINTED: lambda: printed[(rows,)](x, y, rows, columns, **warps),
        BY_HAND: lambda: by_hand[(rows,)](x, y, rows, columns, WIDTH=columns, **warps),
        "PyTorch": lambda: torch.softmax(x, 1, out=y),
    }
    return Contenders(calls, [y], [torch.softmax(x.double(), 1)], 1e-5)


def _layernorm_forward_case(columns: int) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        from lego_mlir.kernels import layernorm

        return {OURS: layernorm(_rows(columns), columns, "f32", save=True, epsilon=_EPSILON)}

    return ContenderCase(
        name=f"LayerNorm forward f32 {_rows(columns)}×{columns}",
        figure="LEGO, LayerNorm forward",
        printed={"printed.py": ("layernorm.py.j2", {"WIDTH": columns, **_BACKWARD})},
        kernels=kernels,
        contenders=partial(_layernorm_forward_contenders, columns=columns),
        work=8.0 * _rows(columns) * columns,
        unit="GB/s",
    )


def _layernorm_tensors(built: Built, columns: int) -> tuple[Any, ...]:
    torch, rows = built.torch, _rows(columns)
    x = torch.randn((rows, columns), device="cuda")
    w, b = (torch.randn(columns, device="cuda") for _ in range(2))
    return x, w, b


def _layernorm_forward_contenders(built: Built, columns: int) -> Contenders:
    torch, rows = built.torch, _rows(columns)
    x, w, b = _layernorm_tensors(built, columns)
    y, mean, rstd = torch.empty_like(x), *(torch.empty(rows, device="cuda") for _ in range(2))
    printed, by_hand = _module(built.folder / "printed.py").forward, _by_hand().layernorm_forward
    given = (x, w, b, y, mean, rstd, rows, columns, _EPSILON)
    warps = {"num_warps": _warps(columns)}
    library = torch.nn.functional.layer_norm

    calls = {
        OURS: built.ours(OURS, x, w, b, y, mean, rstd),
        PRINTED: lambda: printed[(rows,)](*given, **warps),
        BY_HAND: lambda: by_hand[(rows,)](*given, WIDTH=columns, **warps),
        "PyTorch": lambda: library(x, (columns,), w, b, _EPSILON),
    }
    expected = library(x.double(), (columns,), w.double(), b.double(), _EPSILON)
    return Contenders(calls, [y], [expected], 1e-5, frozenset(["PyTorch"]))


def _layernorm_backward_case(columns: int) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        from lego_mlir.kernels import layernorm_backward

        return {OURS: layernorm_backward(_rows(columns), columns, "f32")}

    return ContenderCase(
        name=f"LayerNorm backward f32 {_rows(columns)}×{columns}",
        figure="LEGO, LayerNorm backward",
        printed={"printed.py": ("layernorm.py.j2", {"WIDTH": columns, **_BACKWARD})},
        kernels=kernels,
        contenders=partial(_layernorm_backward_contenders, columns=columns),
        work=12.0 * _rows(columns) * columns,
        unit="GB/s",
    )


def _layernorm_backward_contenders(built: Built, columns: int) -> Contenders:
    torch, rows = built.torch, _rows(columns)
    x, w, b = _layernorm_tensors(built, columns)
    dy = torch.randn_like(x)
    _, mean, rstd = torch.native_layer_norm(x, (columns,), w, b, _EPSILON)
    mean, rstd = mean.reshape(-1).contiguous(), rstd.reshape(-1).contiguous()
    dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
    module, hand = _module(built.folder / "printed.py"), _by_hand()
    warps = {"num_warps": _warps(columns)}
    groups = (columns // _BACKWARD["BN"],)

    def printed() -> None:
        module.backward_x[(rows,)](x, w, dy, dx, mean, rstd, rows, columns, **warps)
        module.backward_w[groups](x, dy, dw, db, mean, rstd, rows, columns)

    def by_hand() -> None:
        given = (x, w, dy, dx, mean, rstd, rows, columns)
        hand.layernorm_backward_x[(rows,)](*given, WIDTH=columns, **warps)
        hand.layernorm_backward_w[groups](x, dy, dw, db, mean, rstd, rows, columns, **_BACKWARD)

    def by_torch() -> None:
        torch.ops.aten.native_layer_norm_backward(
            dy, x, (columns,), mean[:, None], rstd[:, None], w, b, [True, True, True]
        )

    expected = torch.ops.aten.native_layer_norm_backward(
        *(t.double() for t in (dy, x)),
        (columns,),
        *(t.double() for t in (mean[:, None], rstd[:, None], w, b)),
        [True, True, True],
    )
    calls = {
        OURS: built.ours(OURS, x, w, dy, mean, rstd, dx, dw, db),
        PRINTED: printed,
        BY_HAND: by_hand,
        "PyTorch": by_torch,
    }
    return Contenders(calls, [dx, dw, db], expected, 1e-4, frozenset(["PyTorch"]))
