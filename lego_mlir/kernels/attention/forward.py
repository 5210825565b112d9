"""Attention forward: the kernels, and what a caller says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lego_mlir import runtime
from lego_mlir.algebra.sizes import size_symbol
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import (
    Kernel,
    KernelSequence,
    ScalarType,
    TensorType,
    kernel,
    sequence,
    tanh,
)
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Int
from lego_mlir.kernels.attention.append import appending
from lego_mlir.kernels.attention.body import Body
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.heuristic import choose, exponentials_of
from lego_mlir.kernels.attention.masks import Mask
from lego_mlir.kernels.attention.order import order_of
from lego_mlir.kernels.attention.problem import (
    NARROW_UNIT,
    AttentionProblem,
    Cache,
    Order,
    Score,
)
from lego_mlir.kernels.attention.splits import combination
from lego_mlir.kernels.attention.tensors import DESCALES, TensorLayouts
from lego_mlir.kernels.functions import names_of, with_names
from lego_mlir.kernels.public import public

_ARGUMENTS = (
    *("q", "k", "v", "k_new", "v_new"),
    *("offsets_q", "offsets_kv", "lengths", "pages"),
    *DESCALES,
)
"""The arguments before the result, in their order."""


@public
def attention(
    batch: int | None,
    seq_q: int | None,
    seq_kv: int | None,
    heads: int,
    head_dim: int,
    *,
    heads_kv: int | None = None,
    head_dim_v: int | None = None,
    dtype: str = "f16",
    dtype_kv: str | None = None,
    dtype_pv: str | None = None,
    descales: bool | int = False,
    out: str | None = None,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    soft_cap: float | None = None,
    mask: Mask | None = None,
    score: Score | None = None,
    arguments: Mapping[str, TensorType | ScalarType] | None = None,
    order: Order = "bshd",
    lse: bool = False,
    lengths: bool = False,
    page_size: int | None = None,
    pages: int | None = None,
    ragged: bool = False,
    append: bool = False,
    strides: Mapping[str, tuple[int | None, ...]] | None = None,
    config: AttentionConfig | None = None,
    target: str | None = None,
) -> Kernel | KernelSequence:
    """Return a kernel that computes o = softmax(q kᵀ · scale) v for each head of each sequence.

        attention(2, 4096, 4096, 32, 128, heads_kv=8, causal=True)(q, k, v, o)

    q is [batch, seq_q, heads, head_dim], k and v are [batch, seq_kv, heads_kv, …], o is like q. A
    query that sees no key has zeros, and -inf for its logarithm.

    Args:
        batch: sequences; `None`, as for the next two, if each launch takes it from its arrays.
        seq_q: queries of a sequence; the most of any sequence, with `ragged`.
        seq_kv: keys of a sequence; the most of any sequence, with `lengths` or `ragged`.
        heads: of the queries.
        head_dim: elements of a query and of a key: a multiple of 8 from 16 to 256.
        heads_kv: of keys and values, each for as many heads of queries; by default `heads`.
        head_dim_v: elements of a value; by default `head_dim`.
        dtype: element type of q: f16, bf16, f8E4M3FN or f8E5M2.
        dtype_kv: element type of k and v: that of q, which is the default, or one of 8 bits. Keys
            of 8 bits are multiplied as 16 bits if queries have 16.
        dtype_pv: element type in which exponentials and values are multiplied: one of 16 bits, or
            that of values of 8 bits, to which exponentials are rounded then. By default the latter
            if q, k and v are f8E4M3FN, on GPUs with wgmma, in pages of a multiple of 32 keys.
        descales: the kernel has arguments `descale_q`, `descale_k` and `descale_v` before o, f32
            [batch, heads_kv]: what q, k and v of each sequence and head are multiplied by, as those
            of 8 bits are often divided before they are rounded. The first two are positive, which
            is not checked. A number, such as 128, says that each block of so many tokens has one of
            its own: descale_q is [batch, heads, ceil(seq_q / 128)], descale_k and descale_v are
            [batch, heads_kv, ceil(seq_kv / 128)], with pages [pages, heads_kv, page_size / 128].
            None of these is negative, which is not checked.
        out: element type of o: f16, bf16 or f32; by default that of q, or f16.
        causal: query i sees the keys up to i + seq_kv - seq_q: the last query sees all.
        window: with `causal`, query i sees that key and `window - 1` before it.
        scale: of the scores; by default head_dim ** -0.5.
        soft_cap: scores become soft_cap · tanh(score / soft_cap).
        mask: a function that says which query sees which key. It names what it takes: `batch`,
            `head`, the query `i`, the key `j`, the numbers of `queries` and `keys` of the sequence,
            further arguments; and returns truth values. Tiles that comparisons of linear functions
            of i and j show to be empty are not loaded, those that they show to be full are not
            masked.
        score: a function that returns what becomes of a scaled `score`; it names what it takes.
        arguments: the types of the kernel's further arguments, which `mask` and `score` may name.
            They stand behind all others.
        order: of the dimensions in memory: `bshd`, or `bhsd` for [batch, heads, seq, head_dim].
        lse: the kernel has an argument `lse` behind o, f32 [batch, heads, seq_q]: the natural
            logarithm of the sum of the exponentials of each query's scores.
        lengths: the kernel has an argument `lengths` behind v, i32 [batch]: how many keys each
            sequence has, at most seq_kv, which is not checked. What k and v hold behind them must
            be finite.
        page_size: k and v are caches of pages of so many keys, a multiple of 16:
            [pages, page_size, heads_kv, …]. The kernel has an argument `pages` behind `lengths`,
            i32 [batch, ceil(seq_kv / page_size)]: the pages of each sequence. Those that `lengths`
            does not reach may have any numbers. Keys and values of a number that is not one of the
            cache's are zeros, and none are appended there.
        pages: the pages of a cache; `None` if each launch takes them from k.
        ragged: sequences of different lengths follow one another: tensors are [tokens, heads, …],
            `lse` is [heads, tokens]. Behind v the kernel has arguments `offsets_q` and
            `offsets_kv`, i32 [batch + 1]: sequence b has the tokens from offset b up to offset
            b + 1. They must not decrease, nor exceed the tokens, which is not checked.
        append: with `lengths`: the kernel has arguments `k_new` and `v_new` behind v, like k and v
            with seq_q tokens. They are stored in k and v first, as the last ones of each sequence:
            `lengths` counts them.
        strides: of q, k, v or o in elements, in the order of their dimensions, by name; for views
            of larger tensors, such as q of [batch, seq, 3, heads, head_dim]. The last one is 1;
            `None` for one that each launch takes from its arrays.
        config: its tiles; by default the heuristic chooses.
        target: the GPU architecture; by default that of the GPU in this machine, and sm_90a
            without one.

    Raises:
        LegoError: a size, a type or a function is wrong.
    """
    if type(head_dim) is not int or head_dim < 1:
        raise LegoError(f"attention: head_dim is a positive integer, not {head_dim!r}")
    masks = [_causal(window)] if causal else []
    if window is not None and not causal:
        raise LegoError("attention: a window needs causal=True", hint="or a function: mask=...")
    if window is not None and (type(window) is not int or window < 1):
        raise LegoError(f"attention: window is a positive integer, not {window!r}")
    if mask is not None:
        masks.append(mask)
    if soft_cap is not None and score is not None:
        raise LegoError("attention: a score function caps scores itself", hint="leave soft_cap out")
    if soft_cap is not None:
        score = _capped(soft_cap)
    if (pages is not None and page_size is None) or (page_size is not None and not lengths):
        raise LegoError(
            "attention: a cache in pages needs their size, and lengths",
            hint="page_size=64, lengths=True",
        )
    if ragged and (lengths or None in (batch, seq_q, seq_kv)):
        raise LegoError(
            "attention: a ragged batch has offsets, and numbers for the most tokens",
            hint="ragged=True without lengths, with batch, seq_q and seq_kv",
        )
    if append and not lengths:
        raise LegoError(
            "attention: what is appended belongs at the end of each sequence's keys",
            hint="append=True, lengths=True",
        )
    cache = None
    if page_size is not None:
        cache = Cache(size_symbol("pages_of_cache") if pages is None else pages, page_size)
    problem = AttentionProblem(
        size_symbol("batch") if batch is None else batch,
        size_symbol("seq_q") if seq_q is None else seq_q,
        _keys(seq_kv, cache),
        heads,
        heads if heads_kv is None else heads_kv,
        head_dim,
        head_dim if head_dim_v is None else head_dim_v,
        dtype,
        dtype if dtype_kv is None else dtype_kv,
        out or (dtype if dtype in ("f16", "bf16") else "f16"),
        float(head_dim) ** -0.5 if scale is None else float(scale),
        order,
        _all_of(masks),
        score,
        dict(arguments or {}),
        lengths,
        cache,
        ragged,
        append,
        dict(strides or {}),
        dtype_pv,
        descales is not False,
        None if isinstance(descales, bool) else descales,
    )
    built_for = Target.parse(target or runtime.select().target or DEFAULT_TARGET)
    if dtype_pv is None:
        problem = replace(problem, dtype_pv=exponentials_of(problem, built_for))
    chosen = config or choose(problem, spec_of(built_for), built_for)
    if problem.cache is not None:
        page, columns = problem.cache.page, chosen.columns
        if page % columns and (chosen.needs_block or columns % page):
            raise LegoError(
                f"attention: pages of {page} keys are no tiles of {columns}, nor their parts",
                hint="page_size is a multiple of the config's columns, or divides them where the "
                "schedule is none or 'pipelined'",
            )
    if problem.scale_block is not None and problem.scale_block % chosen.columns:
        raise LegoError(
            f"attention: descales of blocks of {problem.scale_block} tokens, by tiles of "
            f"{chosen.columns} keys",
            hint="the config's columns divide descales",
        )
    if problem.is_narrow:
        page = chosen.columns if problem.cache is None else problem.cache.page
        if chosen.columns % NARROW_UNIT or page % NARROW_UNIT:
            raise LegoError(
                f"attention: exponentials of {problem.computed} by tiles of {chosen.columns} keys"
                + ("" if problem.cache is None else f", in pages of {page}"),
                hint=f"columns and page_size: multiples of {NARROW_UNIT}, or dtype_pv='f16'",
            )
    return _kernel(problem, chosen, lse=lse)


def _keys(seq_kv: int | None, cache: Cache | None) -> Int:
    """Return how many keys a sequence has; where the launch knows them, those of its pages."""
    if seq_kv is not None:
        return seq_kv
    return size_symbol("seq_kv") if cache is None else cache.page * size_symbol("pages_each")


def _kernel(
    problem: AttentionProblem, config: AttentionConfig, *, lse: bool
) -> Kernel | KernelSequence:
    """Return the kernel, or with splits the sequence of two."""
    layouts = TensorLayouts(problem)
    inputs, results = layouts.inputs(), layouts.outputs(lse=lse)
    appended = layouts.appended() if problem.appends else {}
    before = {n: kind for n, kind in (inputs | appended).items() if n not in problem.arguments}
    before = {n: before[n] for n in _ARGUMENTS if n in before}
    every = {**before, **results, **problem.arguments}
    own = {n: kind for n, kind in every.items() if n in inputs or n in results}
    if config.is_split:
        own = {**inputs, **layouts.parts(config.splits), **(results if config.is_open else {})}
    forward = kernel(
        grid=(*order_of(problem, config).grid, problem.batch * config.splits),
        warps=config.warps,
        parameters=own,
        schedule=config.schedule,
        params=config.params,
        explanation=partial(config.describe, problem.computed),
        # Kernels of few queries are so short that the begin of the next one counts.
        pdl=config.is_split or config.packed or problem.appends,
    )(_body(problem, config, tuple(own)))
    kernels = [appending(problem)] if problem.appends else []
    kernels += [forward, *([combination(problem, config, lse=lse)] if config.is_split else [])]
    if len(kernels) == 1:
        return forward
    workspaces = layouts.workspaces(config.splits) if config.is_split else {}
    return sequence("attention", kernels, parameters=every, workspaces=workspaces)


def _body(
    problem: AttentionProblem, config: AttentionConfig, names: tuple[str, ...]
) -> Callable[..., None]:
    """Return the function of the kernel, whose parameters have the names."""

    def attention(**tensors: Any) -> None:
        body = Body(problem, config, tensors)
        body.store(*body.trace())

    return with_names(attention, names)


def _causal(window: int | None) -> Mask:
    """Return the mask of the keys up to a query's own one."""
    if window is None:
        return lambda i, j, keys, queries: j <= i + (keys - queries)
    return lambda i, j, keys, queries: (
        (j <= i + (keys - queries)) & (j > i + (keys - queries - window))
    )


def _capped(cap: float) -> Score:
    return lambda score: tanh(score * (1.0 / cap)) * cap


def _all_of(masks: list[Mask]) -> Mask | None:
    """Return the mask of what several let through together."""
    if len(masks) < 2:
        return masks[0] if masks else None
    first, second = masks

    def both(**given: Any) -> Any:
        def call(mask: Mask) -> Any:
            return mask(**{name: given[name] for name in names_of(mask)})

        return call(first) & call(second)

    return with_names(both, [*names_of(first), *names_of(second)])
