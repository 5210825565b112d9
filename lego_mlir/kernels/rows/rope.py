"""Rotary position embeddings of queries and keys, with RMSNorm of each head before."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, Signature
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, TensorType, kernel
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, WARP_THREADS
from lego_mlir.kernels.cache_hints import eviction_of, tensor_bytes
from lego_mlir.kernels.public import check_types, public

_HELD, _NORMALIZED = 16, 32
"""Elements of the queries that a thread holds, and where heads are normalized: there fewer threads
wait for one another (measured on an H200, bench/results/rows_sweep.jsonl)."""

_MOST_WARPS = 8


@public
def rope(
    tokens: int,
    heads: int,
    size: int,
    dtype: str = "bf16",
    *,
    positions: int,
    keys: int = 0,
    norm: str | None = None,
    epsilon: float = 1e-6,
    in_place: bool = False,
) -> Kernel:
    """Return a kernel `(q, position, cos, sin, q_out)` that rotates the heads of each token.

    The halves a and b of a head become a cos - b sin and b cos + a sin, of the rows of cos and sin
    at the token's position. With `keys` it is `(q, k, position, cos, sin, q_out, k_out)`, for both
    in one launch. With `norm`, each head is normalized first: `wq`, and `wk`, follow q and k.

    Args:
        tokens: of q, tokens×heads×size.
        heads: of q.
        size: of a head, even.
        dtype: element type of q, k and the outputs.
        positions: rows of cos and sin, positions×(size / 2), of f32. A position, of i32, that is
            none of them is taken for the nearest one.
        keys: heads of k, tokens×keys×size; 0 if there is none.
        norm: element type of the norms' weights, of the size of a head; `None` for no norm.
        epsilon: of the norm.
        in_place: an output may be its input.

    Raises:
        LegoError: a size or a type is wrong.
    """
    for what, n in (("tokens", tokens), ("heads", heads), ("positions", positions)):
        if type(n) is not int or n < 1:
            raise LegoError(f"rope: {what} is a positive integer, not {n!r}")
    check_types("rope", dtype=dtype, norm=norm)
    if type(size) is not int or size < 2 or size % 2:
        raise LegoError(f"rope: the size of a head is even, not {size!r}")
    if type(keys) is not int or keys < 0:
        raise LegoError(f"rope: keys is a number of heads, not {keys!r}")
    half = size // 2

    def tensor(kind: str, *sizes: int) -> TensorType:
        """Return the type of an array whose last dimension is in halves."""
        ones = [1] * (len(sizes) - 1)
        layout = OrderBy(Row(*sizes)).TileBy([*sizes[:-1], 2], [*ones, half])
        return TensorType(kind, layout, MAX_ACCESS_BYTES)

    inputs = {"q": heads, **({"k": keys} if keys else {})}
    table = TensorType("f32", OrderBy(Row(positions, half)), MAX_ACCESS_BYTES)
    parameters: dict[str, TensorType] = {}
    for name, count in inputs.items():
        parameters[name] = tensor(dtype, tokens, count, size)
        if norm is not None:
            parameters[f"w{name}"] = tensor(norm, size)
    parameters |= {"position": TensorType("i32", OrderBy(Row(tokens))), "cos": table, "sin": table}
    parameters |= {f"{name}_out": tensor(dtype, tokens, n, size) for name, n in inputs.items()}

    def body(**tensors: Any) -> None:
        token = lg.block_id()
        at = lg.clamp(tensors["position"][token], 0, positions - 1).below(positions)
        cos, sin = tensors["cos"][at, :][None, :], tensors["sin"][at, :][None, :]
        for name in inputs:
            x, out = tensors[name], tensors[f"{name}_out"]
            a, b = (x[token, :, k, 0, 0, :].to("f32") for k in range(2))
            if norm is not None:
                a, b = _normalized(a, b, tensors[f"w{name}"], size, epsilon)
            out[token, :, 0, 0, 0, :] = (a * cos - b * sin).to(dtype)
            out[token, :, 1, 0, 0, :] = (b * cos + a * sin).to(dtype)

    threads = heads * size // (_HELD if norm is None else _NORMALIZED)
    return _made(body, tokens, threads, parameters, in_place=in_place)


def _normalized(a: Any, b: Any, w: Any, size: int, epsilon: float) -> tuple[Any, Any]:
    """Return the halves of heads after RMSNorm."""
    squares = lg.sum(a * a + b * b, axis=1, keepdims=True)
    factor = lg.rsqrt(squares * (1 / size) + epsilon)
    first, second = (w[k, :].to("f32")[None, :] for k in range(2))
    return a * factor * first, b * factor * second


def _made(
    body: Any, tokens: int, threads: int, parameters: Mapping[str, TensorType], *, in_place: bool
) -> Kernel:
    """Return the kernel of a body that takes arguments by name; so many threads have a token."""
    warps = 1
    while warps < _MOST_WARPS and warps * WARP_THREADS < threads:
        warps *= 2
    body.__name__ = "rope"
    names = [Parameter(n, Parameter.KEYWORD_ONLY) for n in parameters]
    body.__signature__ = Signature(names)
    return kernel(
        grid=tokens,
        warps=warps,
        parameters=parameters,
        in_place=in_place,
        eviction=eviction_of(tensor_bytes(parameters.values())),
        pdl=True,
        explanation=lambda: f"1 token a CTA; {warps} warps",
    )(body)
