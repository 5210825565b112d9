"""The problems: forward of three depths, errors for hostile inputs, and decoding of few queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle, product
from math import ceil
from typing import Any

from bench.attention.inputs import HOSTILE, NORMAL, inputs_of, largest_error
from bench.attention.peers import peers_of
from bench.attention.reading import reading, sums_of
from bench.contenders.case import OURS, Built, Call, ContenderCase, Contenders
from bench.measure.comparison import one_line

READ = "reading K and V"
"""The name of the contender that does nothing else, beside kernels that decode."""

ERRORS = "errors"
"""The figure of cases whose errors are of interest."""

OPEN, _OPEN_DEPTH = "sizes at run time", 128
"""The name of our kernel whose batch and lengths only the launch knows, and the depth it has."""

_CACHED_BYTES = 300e6
"""Keys and values that are decoded rotate through so many bytes, so that no cache holds them."""

_CACHES, _MOST_CACHED = (2048, 8192, 32768, 131072), 1 << 24
"""Keys of sequences that are decoded, and how many all of a batch have at most."""

_TOKENS = 16384
_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
_WIDTH = 2048
"""Heads times depth of the forward problems."""

_WINDOW = 1024

_DEPTHS = (64, 128, 256)

_TOLERANCES = {"f16": 2e-3, "bf16": 1.2e-2, "f8E4M3FN": 0.1}
"""The largest errors, relative to the largest element. Hostile inputs may have eight times more:
where exponents are in the thousands, f32 holds them that exactly only. Exponentials of 8 bits have
3 bits of fraction."""
_HOSTILE_TOLERANCE, _HOSTILE_TYPES = 8, ("f16", "bf16")

_NARROW, _WIDE = "f8E4M3FN", "f16"

VARIANT = "ours, "
"""What the names of our kernels begin with that are measured beside the one that is chosen."""


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
        window: how many of these it sees; `None` for all.
        dtype: element type of all but the logarithms.
        inputs: of which kind they are, as `inputs_of` knows them.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    heads_kv: int
    depth: int
    causal: bool = False
    window: int | None = None
    dtype: str = "f16"
    inputs: str = NORMAL

    @property
    def name(self) -> str:
        """The name of the case."""
        heads = f"{self.heads}/{self.heads_kv}" if self.heads != self.heads_kv else f"{self.heads}"
        kind = "causal" if self.causal else "full"
        sizes = f"{self.batch}x{self.queries}x{self.keys}"
        window = [] if self.window is None else [f"window {self.window}"]
        more = [*window, *(x for x in (self.dtype, self.inputs) if x not in ("f16", NORMAL))]
        return " ".join([f"attention {kind} hd{self.depth} {sizes} heads {heads}", *more])

    @property
    def is_decoding(self) -> bool:
        """Whether there are so few queries that reading keys takes the time."""
        return self.queries < 64

    @property
    def has_open(self) -> bool:
        """Whether our kernel of sizes that only the launch knows is measured too."""
        is_chosen = not self.is_decoding or (self.heads == 64 and self.keys == 8192)
        is_usual = (self.inputs, self.dtype) == (NORMAL, "f16")
        return self.depth == _OPEN_DEPTH and is_chosen and is_usual

    @property
    def flops(self) -> float:
        """The floating-point operations; those of a causal mask are half."""
        if self.window is not None:
            seen = self.window * (self.queries - self.window / 2)
        else:
            is_half = self.causal and self.queries == self.keys
            seen = self.queries * self.keys / (2 if is_half else 1)
        return 4.0 * self.batch * self.heads * seen * self.depth

    @property
    def bytes(self) -> float:
        """The bytes of keys and values, which decoding reads."""
        element = 1 if self.dtype == _NARROW else 2
        return 2.0 * element * self.batch * self.keys * self.heads_kv * self.depth


def cases() -> Iterator[ContenderCase]:
    """Yield the cases."""
    yield from map(_case, (*_forward(), *_hostile(), *_decoding()))


def _forward() -> Iterator[Sizes]:
    for depth, tokens, causal in product(_DEPTHS, _LENGTHS, (False, True)):
        batch, heads = max(1, _TOKENS // tokens), _WIDTH // depth
        yield Sizes(batch, tokens, tokens, heads, heads, depth, causal)
    for depth in _DEPTHS:
        heads = _WIDTH // depth
        for tokens, causal in product((2048, 8192), (False, True)):
            batch = _TOKENS // tokens
            yield Sizes(batch, tokens, tokens, heads, heads, depth, causal, dtype="bf16")
        for causal in (False, True):
            yield Sizes(2, 8192, 8192, 32, 8, depth, causal)
        yield Sizes(2, 8192, 8192, heads, heads, depth, causal=True, window=_WINDOW)
        for tokens, causal in product((2048, 8192, 16384), (False, True)):
            batch = _TOKENS // tokens
            yield Sizes(batch, tokens, tokens, heads, heads, depth, causal, dtype=_NARROW)


def _hostile() -> Iterator[Sizes]:
    for depth, dtype, inputs in product(_DEPTHS, _HOSTILE_TYPES, HOSTILE):
        yield Sizes(1, 1024, 1024, 4, 4, depth, dtype=dtype, inputs=inputs)
        # Of these queries half see no key.
        yield Sizes(1, 1024, 512, 4, 4, depth, causal=True, dtype=dtype, inputs=inputs)


def _decoding() -> Iterator[Sizes]:
    """Yield the sizes of decoding: one query of each, several where sequences have long caches."""
    for heads, batch, keys in product((64, 32), (1, 4, 8, 16, 64, 128), _CACHES):
        if batch * keys > _MOST_CACHED:
            continue
        yield Sizes(batch, 1, keys, heads, 8, 128)
        if heads == 64 or (batch >= 8 and keys >= 8192):
            yield from (Sizes(batch, queries, keys, heads, 8, 128) for queries in (8, 16))
    for batch, queries in product((1, 16, 128), (1, 16)):
        yield Sizes(batch, queries, 8192, 64, 8, 128, dtype=_NARROW)


def _case(sizes: Sizes) -> ContenderCase:
    def kernels() -> dict[str, Any]:
        found = {OURS: _kernel(sizes)}
        if sizes.is_decoding:
            found[READ] = reading(_words(sizes))
        if sizes.has_open:
            found[OPEN] = _kernel(sizes, is_open=True)
        return found | {name: _kernel(sizes, **more) for name, more in _variants(sizes).items()}

    figure = "decoding" if sizes.is_decoding else "forward"
    return ContenderCase(
        name=sizes.name,
        figure=figure if sizes.inputs == NORMAL else ERRORS,
        printed={},
        kernels=kernels,
        contenders=partial(_contenders, sizes=sizes),
        work=sizes.bytes if sizes.is_decoding else sizes.flops,
        unit="GB/s" if sizes.is_decoding else "TFLOP/s",
    )


def _words(sizes: Sizes) -> int:
    """Return how many words of 16 bits keys have, or values."""
    return int(sizes.bytes) // 4


def _variants(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Return the options of kernels that are measured beside those of 8 bits."""
    if sizes.dtype != _NARROW:
        return {}
    found: dict[str, dict[str, Any]] = {
        "exponentials of 16 bits": {"dtype_pv": "f16"},
        _WIDE: {"dtype": "f16", "dtype_pv": None},
    }
    return {f"{VARIANT}{name}": options for name, options in found.items()}


def _kernel(sizes: Sizes, *, is_open: bool = False, **more: Any) -> Any:
    """Return our kernel; with `is_open` one that takes batch and lengths from each launch.

    Few queries are known all the same: they decide how heads are packed.

    Args:
        sizes: of the problem.
        is_open: whether only the launch knows batch and lengths.
        more: further options of `attention`.
    """
    from lego_mlir.kernels import attention

    options = {"dtype": sizes.dtype}
    options |= ({"dtype_pv": _NARROW} if sizes.dtype == _NARROW else {}) | more
    return attention(
        None if is_open else sizes.batch,
        None if is_open and not sizes.is_decoding else sizes.queries,
        None if is_open else sizes.keys,
        sizes.heads,
        sizes.depth,
        heads_kv=sizes.heads_kv,
        causal=sizes.causal,
        window=sizes.window,
        lse=True,
        target="sm_90a",
        **options,
    )


def _contenders(built: Built, sizes: Sizes) -> Contenders:
    torch = built.torch
    q, k, v = inputs_of(torch, sizes.inputs, sizes)
    copies = max(1, ceil(_CACHED_BYTES / sizes.bytes)) if sizes.is_decoding else 1
    caches = [(k, v), *((k.clone(), v.clone()) for _ in range(copies - 1))]
    o = torch.empty_like(q, dtype=torch.float16 if sizes.dtype == _NARROW else None)
    lse = torch.empty((sizes.batch, sizes.heads, sizes.queries), device="cuda")
    calls: dict[str, Call] = {
        OURS: _rotating([built.ours(OURS, q, *cache, o, lse) for cache in caches])
    }
    if sizes.has_open:
        calls[OPEN] = _rotating([built.ours(OPEN, q, *cache, o, lse) for cache in caches])
    absent: dict[str, str] = {}
    errors: dict[str, float] = {}
    expected = _reference(torch, q, k, v, sizes)
    for name, options in _variants(sizes).items():
        given = [(q, *cache) for cache in caches]
        if "dtype" in options:
            given = [tuple(x.half() for x in tensors) for tensors in given]
        calls[name] = _rotating([built.ours(name, *tensors, o, lse) for tensors in given])
        calls[name]()
        errors[name] = largest_error(torch, o, expected[0])
    makers = peers_of(sizes)
    for name, make in makers.items():
        try:
            found = [make(torch, q, *cache, sizes) for cache in caches]
            errors[name] = largest_error(torch, found[0](), expected[0])
            calls[name] = _rotating(found)
        except Exception as e:  # a peer may not be installed, or not take the sizes
            absent[name] = one_line(e)
    calls[OURS]()
    errors[OURS] = largest_error(torch, o, expected[0])
    if sizes.is_decoding:
        sums = torch.empty(sums_of(_words(sizes)), device="cuda")
        lines = [[x.view(torch.float16).view(-1) for x in cache] for cache in caches]
        calls[READ] = _rotating([built.ours(READ, *line, sums) for line in lines])
    tolerance = _TOLERANCES[sizes.dtype] * (1 if sizes.inputs == NORMAL else _HOSTILE_TOLERANCE)
    unchecked = frozenset({*makers, READ})
    return Contenders(calls, [o, lse], expected, tolerance, unchecked, absent=absent, errors=errors)


def _rotating(calls: Sequence[Callable[[], Any]]) -> Call:
    """Return a call that does what the next one of several does."""
    turns = cycle(calls)

    def call() -> None:
        next(turns)()

    return call


def _reference(torch: Any, q: Any, k: Any, v: Any, sizes: Sizes) -> list[Any]:
    """Return the result and the logarithms, some rows at a time; of hostile inputs in f64."""
    wide = torch.float32 if sizes.inputs == NORMAL else torch.float64
    results, logs = torch.empty_like(q, dtype=wide), []
    rows = max(1, min(sizes.queries, (1 << 28) // (sizes.heads * sizes.keys)))
    keys = torch.arange(sizes.keys, device="cuda")[None, None, :]
    for b in range(sizes.batch):
        whole_k, whole_v = k[b].to(wide).permute(1, 2, 0), v[b].to(wide).transpose(0, 1)
        found = []
        for start in range(0, sizes.queries, rows):
            part = q[b, start : start + rows].to(wide).transpose(0, 1)
            packed = part.reshape(sizes.heads_kv, -1, sizes.depth)  # the heads that share keys
            scores = (packed @ whole_k * sizes.depth**-0.5).view(sizes.heads, -1, sizes.keys)
            if sizes.causal:
                own = torch.arange(start, start + part.shape[1], device="cuda")
                last = (own + (sizes.keys - sizes.queries))[None, :, None]
                scores.masked_fill_(keys > last, -torch.inf)
                if sizes.window is not None:
                    scores.masked_fill_(keys <= last - sizes.window, -torch.inf)
            found.append(torch.logsumexp(scores, 2))
            weights = torch.softmax(scores, 2).nan_to_num_()  # rows that see no key
            values = weights.view(sizes.heads_kv, -1, sizes.keys) @ whole_v
            results[b, start : start + rows] = values.view(sizes.heads, -1, sizes.depth).transpose(
                0, 1
            )
        logs.append(torch.cat(found, 1))
    return [results, torch.stack(logs)]
