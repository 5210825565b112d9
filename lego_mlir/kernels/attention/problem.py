"""What an attention kernel computes: sizes, element types, the score and the mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal, TypeAlias

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.kernels.attention.masks import Mask

Score: TypeAlias = Callable[..., Any]
"""A function that names what it takes of `score`, `batch`, `head`, `i`, `j` and the arguments."""

Order = Literal["bshd", "bhsd"]
"""The order of batch, sequence, head and depth in memory."""

_ORDERS: dict[str, tuple[int, int, int, int]] = {"bshd": (0, 2, 1, 3), "bhsd": (0, 1, 2, 3)}
"""For each order, which of batch, head, sequence and depth stands where."""

_DTYPES, _OUTPUTS = ("f16", "bf16"), ("f16", "bf16", "f32")
_INDICES = ("batch", "head", "i", "j", "keys")
_TENSORS = ("q", "k", "v", "o", "lse", "lengths", "pages")
_DEPTH_UNIT, _LEAST_DEPTH, _MOST_DEPTH = 8, 16, 256


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values of sequences in pages.

    Attributes:
        pages: that all sequences have together.
        page: keys of a page, a power of two of at least 16.
    """

    pages: int
    page: int


@dataclass(frozen=True)
class AttentionProblem:
    """Attention of queries over keys and values.

    Attributes:
        batch: sequences.
        queries: of a sequence.
        keys: of a sequence; the most, if `has_lengths`.
        heads: of the queries.
        heads_kv: of keys and values; each serves `heads / heads_kv` heads of queries.
        depth: elements of a query and of a key.
        depth_v: elements of a value.
        dtype: element type of queries, keys and values.
        out: element type of the result.
        scale: of the scores.
        order: of the dimensions of all tensors in memory.
        mask: which query sees which key; `None` for all.
        score: what becomes of a scaled score; `None` for the score itself.
        arguments: the types of further arguments of mask and score, by name.
        has_lengths: whether an argument says how many keys each sequence has.
        cache: of keys and values in pages; `None` where they are tensors.
    """

    batch: int
    queries: int
    keys: int
    heads: int
    heads_kv: int
    depth: int
    depth_v: int
    dtype: str
    out: str
    scale: float
    order: str = "bshd"
    mask: Mask | None = None
    score: Score | None = None
    arguments: Mapping[str, TensorType | ScalarType] = field(default_factory=dict)
    has_lengths: bool = False
    cache: Cache | None = None

    def __post_init__(self) -> None:
        sizes = {
            "batch": self.batch,
            "seq_q": self.queries,
            "seq_kv": self.keys,
            "heads": self.heads,
            "heads_kv": self.heads_kv,
            "head_dim": self.depth,
            "head_dim_v": self.depth_v,
        }
        for name, n in sizes.items():
            if type(n) is not int or n < 1:
                raise LegoError(f"attention: {name} is a positive integer, not {n!r}")
        if self.heads % self.heads_kv:
            raise LegoError(
                f"attention: {self.heads} heads of queries do not share {self.heads_kv} heads of "
                "keys evenly",
                hint="heads_kv divides heads",
            )
        for name in ("head_dim", "head_dim_v"):
            if sizes[name] % _DEPTH_UNIT or not _LEAST_DEPTH <= sizes[name] <= _MOST_DEPTH:
                raise LegoError(
                    f"attention: {name} is {sizes[name]}",
                    hint=f"a multiple of {_DEPTH_UNIT} from {_LEAST_DEPTH} to {_MOST_DEPTH}",
                )
        if self.dtype not in _DTYPES or self.out not in _OUTPUTS:
            raise LegoError(
                f"attention: from {self.dtype!r} to {self.out!r}",
                hint=f"queries are of {' or '.join(_DTYPES)}, the result of {', '.join(_OUTPUTS)}",
            )
        if self.order not in _ORDERS:
            raise LegoError(
                f"attention: the order {self.order!r} of dimensions in memory",
                hint='"bshd" or "bhsd": batch, sequence, head, depth',
            )
        for name in self.arguments:
            if name in _TENSORS or name in _INDICES or name == "score":
                raise LegoError(f"attention: an argument may not have the name '{name}'")
        self._check_function("mask", self.mask, _INDICES)
        self._check_function("score", self.score, ("score", *_INDICES))

    def _check_function(self, what: str, function: Any, own: tuple[str, ...]) -> None:
        if function is None:
            return
        for name in names_of(function):
            if name not in own and name not in self.arguments:
                raise LegoError(
                    f"attention: the function of the {what} takes '{name}', and there is none",
                    hint=f"it may take {', '.join([*own, *self.arguments])}; further tensors are "
                    "declared by arguments={...}",
                )

    @property
    def group(self) -> int:
        """The heads of queries that share a head of keys."""
        return self.heads // self.heads_kv

    def tensors(self) -> dict[str, TensorType | ScalarType]:
        """Return the types of queries, keys and values, and what belongs to them, by name."""
        keys = self.keys
        batch = self.batch
        if self.cache is not None:
            batch, keys = self.cache.pages, self.cache.page
        found: dict[str, TensorType | ScalarType] = {
            "q": TensorType(
                self.dtype, self._row(self.batch, self.heads, self.queries, self.depth)
            ),
            "k": self._type(self.dtype, self._row(batch, self.heads_kv, keys, self.depth)),
            "v": self._type(self.dtype, self._row(batch, self.heads_kv, keys, self.depth_v)),
        }
        if self.has_lengths:
            found["lengths"] = TensorType("i32", OrderBy(Row(self.batch)))
        if self.cache is not None:
            most = -(-self.keys // self.cache.page)
            found["pages"] = TensorType("i32", OrderBy(Row(self.batch, most)))
        return {**found, **self.arguments}

    def output(self) -> TensorType:
        """Return the type of the result."""
        return self._type(self.out, self._row(self.batch, self.heads, self.queries, self.depth_v))

    def logarithms(self) -> TensorType:
        """Return the type of the logarithms of the sums of exponentials."""
        return TensorType("f32", OrderBy(Row(self.batch, self.heads, self.queries)))

    @staticmethod
    def _type(dtype: str, layout: Layout) -> TensorType:
        return TensorType(dtype, layout, MAX_ACCESS_BYTES)

    def _row(self, batch: int, heads: int, sequence: int, depth: int) -> Layout:
        """Return the row-major layout of a tensor in the order of its dimensions."""
        sizes = batch, heads, sequence, depth
        return OrderBy(Row(*(sizes[k] for k in _ORDERS[self.order])))

    def by_head(self, batch: int, heads: int, sequence: int, depth: int) -> Layout:
        """Return the layout from batch, head, sequence and depth to memory."""
        return OrderBy(RegP([batch, heads, sequence, depth], list(_ORDERS[self.order])))

    def by_group(self, depth: int) -> Layout:
        """Return the layout of queries from batch, head of keys, row and depth to memory.

        The rows are the queries, each with the heads that share the head of keys.
        """
        order = [0, 2, 1, 3, 4] if self.order == "bshd" else [0, 1, 3, 2, 4]
        sizes = [self.batch, self.heads_kv, self.queries, self.group, depth]
        rows = self.queries * self.group
        return OrderBy(RegP(sizes, order)).GroupBy([self.batch, self.heads_kv, rows, depth])


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the values that a function takes."""
    return tuple(signature(function).parameters)
