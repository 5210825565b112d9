"""The arguments of the kernels on rows, as PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.rows.cases import ARGUMENTS, RowsCase
from bench.rows.fusions import GROUP, HEAD, KEYS
from bench.rows.references import saved

SEED = 1 << 40
"""Of random numbers, which a kernel takes as an argument."""

SHARED = ("column", "head", "angle", "launch")
"""Roles of arguments that all rows share."""

_DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}

_PART_BYTES = 1 << 28
"""Of a matrix in f64, of which few are made at a time."""


def tensors(case: RowsCase, torch: Any, generator: Any) -> dict[str, Any]:
    """Return the arguments of a case by name; what a forward kernel saves is what it would be."""
    matrix = case.rows, case.columns
    sizes = {
        "element": matrix,
        "byte": matrix,
        "column": (case.columns,),
        "key": (case.rows, case.columns // KEYS),
        "head": (HEAD,),
        "angle": (case.rows, HEAD // 2),
        "group": (case.rows, case.columns // GROUP),
    }
    found: dict[str, Any] = {}
    for name, role in ARGUMENTS[case.kernel].items():
        shape = sizes.get(role, (case.rows,))
        if role == "label":
            found[name] = torch.randint(0, case.columns, shape, generator=generator, device="cuda")
        elif role == "launch":
            found[name] = SEED
        elif role == "position":
            found[name] = torch.randperm(case.rows, generator=generator, device="cuda").int()
        elif role == "byte":
            found[name] = torch.empty(shape, device="cuda", dtype=torch.float8_e4m3fn)
        elif name in ("lse", "mean", "rstd"):
            matrices = {n: x for n, x in found.items() if x.dim() == 2}
            found[name] = torch.cat(
                [saved(case.kernel, name, part, torch).float() for part in parts(matrices)]
            )
        else:
            is_wide = role in ("row", "angle", "group")
            kind = torch.float32 if is_wide else getattr(torch, _DTYPES[case.dtype])
            found[name] = torch.randn(shape, generator=generator, device="cuda", dtype=kind)
    if case.kernel == "softmax_backward":
        found["y"] = found["y"].softmax(-1)
    return found


def parts(tensors: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield tensors of equally many rows in parts, whose copies in f64 fit into memory."""
    rows = next(iter(tensors.values())).shape[0]
    columns = max(x.shape[1] if x.dim() == 2 else 1 for x in tensors.values())
    step = max(1, _PART_BYTES // (8 * columns))
    for start in range(0, rows, step):
        yield {name: x[start : start + step] for name, x in tensors.items()}
