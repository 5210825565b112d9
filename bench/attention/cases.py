"""The problems: forward of three depths at 16,384 tokens in all, and decoding of few queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from math import ceil
from typing import Any

from bench.attention.reading import reading, sums_of
from bench.contenders.case import OURS, Built, Call, ContenderCase, Contenders
from bench.measure.comparison import one_line

READ = "reading K and V"
"""The name of the contender that does nothing else, beside kernels that decode."""

OPEN, _OPEN_DEPTH = "sizes at run time", 128
"""The name of our kernel whose batch and lengths only the launch knows, and the depth it has."""

_CACHED_BYTES = 300e6
"""Keys and values that are decoded rotate through so many bytes, so that no cache holds them."""

_CACHES, _MOST_CACHED = (2048, 8192, 32768, 131072), 1 << 24
"""Keys of sequences that are decoded, and how many all of a batch have at most."""

_TOKENS = 16384
_WIDTH = 2048
"""Heads times depth of the forward problems."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a problem.

    Attributes:
        batch: sequences.
        queries: of each.
        keys: of each.
        heads: of queries.
        heads_kv: of keys.
        depth: of all.
        causal: whether a query sees only the keys up to its own.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    heads_kv: int
    depth: int
    causal: bool = False

    @property
    def name(self) -> str:
        """The name of the case."""
        heads = f"{self.heads}/{self.heads_kv}" if self.heads != self.heads_kv else f"{self.heads}"
        kind = "causal" if self.causal else "full"
        sizes = f"{self.batch}x{self.queries}x{self.keys}"
        return f"attention {kind} hd{self.depth} {sizes} heads {heads}"

    @property
    def is_decoding(self) -> bool:
        """Whether queries are few."""
        return self.queries < 64

    @property
    def has_open(self) -> bool:
        """Whether a kernel of run-time sizes is measured, too."""
        is_chosen = not self.is_decoding or (self.heads == 64 and self.keys == 8192)
        return self.depth == _OPEN_DEPTH and is_chosen

    @property
    def flops(self) -> float:
        """The floating-point operations; those of a causal mask are half."""
        whole = 4.0 * self.batch * self.heads * self.queries * self.keys * self.depth
        return whole / 2 if self.causal and self.queries == self.keys else whole

    @property
    def bytes(self) -> float:
        """The bytes of keys and values, which decoding reads."""
        return 4.0 * self.batch * self.keys * self.heads_kv * self.depth


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    for depth in (64, 128, 256):
        for tokens in (512, 1024, 2048, 4096, 8192, 16384, 32768):
            batch = max(1, _TOKENS // tokens)
            for causal in (False, True):
                heads = _WIDTH // depth
                yield _case(Sizes(batch, tokens, tokens, heads, heads, depth, causal))
    for causal in (False, True):
        yield _case(Sizes(2, 8192, 8192, 32, 8, 128, causal))
    for sizes in _decoding():
        yield _case(sizes)


def _decoding() -> Iterator[Sizes]:
    """Yield the sizes of decoding: one query of each, several where sequences have long caches."""
    for heads, batch, keys in product((64, 32), (1, 4, 8, 16, 64, 128), _CACHES):
        if batch * keys > _MOST_CACHED:
            continue
        yield Sizes(batch, 1, keys, heads, 8, 128)
        if heads == 64 or (batch >= 8 and keys >= 8192):
            yield from (Sizes(batch, queries, keys, heads, 8, 128) for queries in (8, 16))


def _case(sizes: Sizes) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        found = {OURS: _kernel(sizes)}
        if sizes.is_decoding:
            elements = sizes.batch * sizes.keys * sizes.heads_kv * sizes.depth
            found[READ] = reading(elements)
        if sizes.has_open:
            found[OPEN] = _kernel(sizes, is_open=True)
        return found

    is_decoding = sizes.is_decoding
    return ContenderCase(
        name=sizes.name,
        figure="decoding" if is_decoding else "forward",
        printed={},
        kernels=kernels,
        contenders=partial(_contenders, sizes=sizes),
        work=sizes.bytes if is_decoding else sizes.flops,
        unit="GB/s" if is_decoding else "TFLOP/s",
    )


def _kernel(sizes: Sizes, *, is_open: bool = False) -> Any:
    """Return our kernel; with `is_open` one that takes batch and lengths from each launch.

    Few queries are known all the same: they decide how heads are packed.
    """
    from lego_mlir.kernels import attention

    is_decoding = sizes.is_decoding
    return attention(
        None if is_open else sizes.batch,
        None if is_open and not is_decoding else sizes.queries,
        None if is_open else sizes.keys,
        sizes.heads,
        sizes.depth,
        heads_kv=sizes.heads_kv,
        causal=sizes.causal,
        lse=True,
        target="sm_90a",
    )


def _contenders(built: Built, sizes: Sizes) -> Contenders:
    torch = built.torch
    shape_q = sizes.batch, sizes.queries, sizes.heads, sizes.depth
    shape_kv = sizes.batch, sizes.keys, sizes.heads_kv, sizes.depth
    is_decoding = sizes.is_decoding
    random = partial(torch.randn, device="cuda", dtype=torch.float16)
    q, k, v = random(shape_q), random(shape_kv), random(shape_kv)
    copies = max(1, ceil(_CACHED_BYTES / sizes.bytes)) if is_decoding else 1
    caches = [(k, v), *((k.clone(), v.clone()) for _ in range(copies - 1))]
    o = torch.empty_like(q)
    lse = torch.empty((sizes.batch, sizes.heads, sizes.queries), device="cuda")
    calls: dict[str, Call] = {
        OURS: _rotating([built.ours(OURS, q, *cache, o, lse) for cache in caches])
    }
    if sizes.has_open:
        calls[OPEN] = _rotating([built.ours(OPEN, q, *cache, o, lse) for cache in caches])
    absent: dict[str, str] = {}
    makers = {
        "cuDNN": partial(_of_torch, "CUDNN_ATTENTION"),
        "FlashAttention-4": _flash_4,
    }
    if not is_decoding:  # where queries are few it is far behind
        makers["FlashAttention-2"] = partial(_of_torch, "FLASH_ATTENTION")
    for name, make in makers.items():
        try:
            call = _rotating([make(torch, q, *cache, sizes) for cache in caches])
            call()
            torch.cuda.synchronize()
            calls[name] = call
        except Exception as e:  # a peer may not be installed, or not take the sizes
            absent[name] = one_line(e)
    if is_decoding:
        sums = torch.empty(sums_of(k.numel()), device="cuda")
        lines = [[x.view(-1) for x in cache] for cache in caches]
        calls[READ] = _rotating([built.ours(READ, *line, sums) for line in lines])
    expected = _reference(torch, q, k, v, sizes)
    unchecked = frozenset({*makers, READ})
    return Contenders(calls, [o, lse], expected, 2e-3, unchecked, absent=absent)


def _rotating(calls: list[Call]) -> Call:
    """Return a call that does what the next one of several does."""
    turns = cycle(calls)
    return lambda: next(turns)()


def _of_torch(backend: str, torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Call:
    """Return PyTorch's attention by one of its back ends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if sizes.causal and sizes.queries != sizes.keys:
        raise ValueError("its causal mask begins with the first key")
    parts = [x.transpose(1, 2) for x in (q, k, v)]
    attention = torch.nn.functional.scaled_dot_product_attention
    chosen = getattr(SDPBackend, backend)
    grouped = sizes.heads != sizes.heads_kv

    def call() -> None:
        with sdpa_kernel(chosen):
            attention(*parts, is_causal=sizes.causal, enable_gqa=grouped)

    return call


def _flash_4(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> Call:
    """Return FlashAttention-4's forward kernel, which CuTe DSL compiles."""
    from flash_attn.cute import flash_attn_func

    return lambda: flash_attn_func(q, k, v, causal=sizes.causal)


def _reference(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> list[Any]:
    """Return the result and the logarithms in f32, some rows at a time."""
    results, logs = torch.empty_like(q, dtype=torch.float32), []
    rows = max(1, min(sizes.queries, (1 << 28) // (sizes.heads * sizes.keys)))
    keys = torch.arange(sizes.keys, device="cuda")
    for b in range(sizes.batch):
        whole_k, whole_v = k[b].float().permute(1, 2, 0), v[b].float().transpose(0, 1)
        found = []
        for start in range(0, sizes.queries, rows):
            part = q[b, start : start + rows].float().transpose(0, 1)
            packed = part.reshape(sizes.heads_kv, -1, sizes.depth)  # the heads that share keys
            scores = (packed @ whole_k * sizes.depth**-0.5).view(sizes.heads, -1, sizes.keys)
            if sizes.causal:
                own = torch.arange(start, start + part.shape[1], device="cuda")
                last = own + (sizes.keys - sizes.queries)
                scores.masked_fill_(keys[None, None, :] > last[None, :, None], -torch.inf)
            found.append(torch.logsumexp(scores, 2))
            weights = torch.softmax(scores, 2).view(sizes.heads_kv, -1, sizes.keys)
            values = (weights @ whole_v).view(sizes.heads, -1, sizes.depth)
            results[b, start : start + rows] = values.transpose(0, 1)
        logs.append(torch.cat(found, 1))
    return [results, torch.stack(logs)]
