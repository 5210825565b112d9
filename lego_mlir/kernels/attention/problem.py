"""What an attention kernel computes: sizes, element types, the score and the mask."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import ScalarType, TensorType
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Expr, Int
from lego_mlir.kernels.attention.masks import Mask
from lego_mlir.kernels.functions import names_of

Score: TypeAlias = Callable[..., Any]
"""A function that names what it takes of `score`, `batch`, `head`, `i`, `j` and the arguments."""

Order = Literal["bshd", "bhsd"]
"""The order of batch, sequence, head and depth in memory."""

_ORDERS = ("bshd", "bhsd")

_WIDE, _NARROW, _OUTPUTS = ("f16", "bf16"), ("f8E4M3FN", "f8E5M2"), ("f16", "bf16", "f32")
_INDICES = ("batch", "head", "i", "j", "queries", "keys")
_TENSORS = (
    *("q", "k", "v", "k_new", "v_new", "o"),
    *("lse", "lengths", "pages", "offsets_q", "offsets_kv"),
    *("descale_q", "descale_k", "descale_v"),
)
_STRIDED = ("q", "k", "v", "o")
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f8E4M3FN": 1, "f8E5M2": 1}
_DOT_BYTES, _PAGE_UNIT = 32, 16
NARROW_UNIT = 32
"""Keys of a tile whose exponentials have 8 bits: tensor cores multiply so many at a time."""
_DEPTH_UNIT, _LEAST_DEPTH, _MOST_DEPTH = 8, 16, 256


@dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values of sequences in pages.

    Attributes:
        pages: that all sequences have together.
        page: keys of a page, a multiple of 16.
    """

    pages: Int
    page: int


@dataclass(frozen=True)
class AttentionProblem:
    """Attention of queries over keys and values.

    Attributes:
        batch: sequences; a symbol where only the launch knows it, as of the next two.
        queries: of a sequence; the most, if `is_ragged`.
        keys: of a sequence; the most, if `has_lengths` or `is_ragged`.
        heads: of the queries.
        heads_kv: of keys and values; each serves `heads / heads_kv` heads of queries.
        depth: elements of a query and of a key.
        depth_v: elements of a value.
        dtype: element type of queries.
        dtype_kv: element type of keys and values.
        out: element type of the result.
        scale: of the scores.
        order: of the dimensions of all tensors in memory.
        mask: which query sees which key; `None` for all.
        score: what becomes of a scaled score; `None` for the score itself.
        arguments: the types of further arguments of mask and score, by name.
        has_lengths: whether an argument says how many keys each sequence has.
        cache: of keys and values in pages; `None` where they are tensors.
        is_ragged: sequences of different lengths follow one another, and arguments say where.
        appends: new keys and values, as many as queries, are stored behind the others first.
        strides: of q, k, v or o in elements, by name, where they are not dense; `None` for one that
            only the launch knows.
        dtype_pv: element type in which exponentials and values are multiplied; `None` for one of 16
            bits.
        has_descales: whether arguments say by what queries, keys and values are multiplied.
        scale_block: tokens that have one such number, for each head; `None` if all of a sequence
            and of a head of keys have one.
    """

    batch: Int
    queries: Int
    keys: Int
    heads: int
    heads_kv: int
    depth: int
    depth_v: int
    dtype: str
    dtype_kv: str
    out: str
    scale: float
    order: str = "bshd"
    mask: Mask | None = None
    score: Score | None = None
    arguments: Mapping[str, TensorType | ScalarType] = field(default_factory=dict)
    has_lengths: bool = False
    cache: Cache | None = None
    is_ragged: bool = False
    appends: bool = False
    strides: Mapping[str, tuple[int | None, ...]] = field(default_factory=dict)
    dtype_pv: str | None = None
    has_descales: bool = False
    scale_block: int | None = None

    def __post_init__(self) -> None:
        sizes: dict[str, Any] = {
            "batch": self.batch,
            "seq_q": self.queries,
            "seq_kv": self.keys,
            "heads": self.heads,
            "heads_kv": self.heads_kv,
            "head_dim": self.depth,
            "head_dim_v": self.depth_v,
        }
        for name, n in sizes.items():
            if isinstance(n, Expr) and name in ("batch", "seq_q", "seq_kv"):
                continue
            if type(n) is not int or n < 1:
                raise LegoError(f"attention: {name} is a positive integer, not {n!r}")
        if self.heads % self.heads_kv:
            raise LegoError(
                f"attention: {self.heads} heads of queries do not share {self.heads_kv} heads of "
                "keys evenly",
                hint="heads_kv divides heads",
            )
        if self.cache is not None:
            page, pages = self.cache.page, self.cache.pages
            if type(page) is not int or page < 1 or page % _PAGE_UNIT:
                raise LegoError(
                    f"attention: page_size is {page!r}", hint=f"a multiple of {_PAGE_UNIT} keys"
                )
            if not isinstance(pages, Expr) and (type(pages) is not int or pages < 1):
                raise LegoError(f"attention: pages is a positive integer, not {pages!r}")
        for name in ("head_dim", "head_dim_v"):
            if sizes[name] % _DEPTH_UNIT or not _LEAST_DEPTH <= sizes[name] <= _MOST_DEPTH:
                raise LegoError(
                    f"attention: {name} is {sizes[name]}",
                    hint=f"a multiple of {_DEPTH_UNIT} from {_LEAST_DEPTH} to {_MOST_DEPTH}",
                )
        self._check_types()
        self._check_scale_block()
        if self.order not in _ORDERS:
            raise LegoError(
                f"attention: the order {self.order!r} of dimensions in memory",
                hint='"bshd" or "bhsd": batch, sequence, head, depth',
            )
        self._check_strides()
        for name in self.arguments:
            if name in _TENSORS or name in _INDICES or name == "score":
                raise LegoError(f"attention: an argument may not have the name '{name}'")
        self._check_function("mask", self.mask, _INDICES)
        self._check_function("score", self.score, ("score", *_INDICES))

    def _check_types(self) -> None:
        if self.dtype not in (*_WIDE, *_NARROW) or self.out not in _OUTPUTS:
            raise LegoError(
                f"attention: from {self.dtype!r} to {self.out!r}",
                hint=f"queries are of {', '.join((*_WIDE, *_NARROW))}, the result of "
                f"{', '.join(_OUTPUTS)}",
            )
        if self.dtype_kv not in _NARROW and self.dtype_kv != self.dtype:
            raise LegoError(
                f"attention: queries of {self.dtype} with keys of {self.dtype_kv!r}",
                hint=f"keys are of the type of queries, or of {' or '.join(_NARROW)}",
            )
        if self.dtype in _NARROW and self.dtype_kv != self.dtype:
            raise LegoError(
                f"attention: queries of {self.dtype} with keys of {self.dtype_kv}",
                hint="both of one type, or queries of f16",
            )
        if self.dtype_pv not in (None, self.dtype_kv, self._wide):
            raise LegoError(
                f"attention: exponentials of {self.dtype_pv!r} with values of {self.dtype_kv}",
                hint=f"dtype_pv={self._wide!r}, or that of values",
            )
        unit = MAX_ACCESS_BYTES // BYTES[self.dtype_kv]
        for name, depth in (("head_dim", self.depth), ("head_dim_v", self.depth_v)):
            if depth % unit:
                raise LegoError(
                    f"attention: {name} is {depth}, of {self.dtype_kv}",
                    hint=f"a multiple of {unit}: rows of {MAX_ACCESS_BYTES} bytes",
                )

    def _check_scale_block(self) -> None:
        block = self.scale_block
        if block is None:
            return
        if type(block) is not int or block < NARROW_UNIT or block % NARROW_UNIT:
            raise LegoError(
                f"attention: descales of blocks of {block!r} tokens",
                hint=f"descales=128, or another multiple of {NARROW_UNIT}; True for one number a "
                "sequence and head",
            )
        if self.is_ragged:
            raise LegoError(
                "attention: sequences that follow one another do not begin with blocks of tokens",
                hint="ragged=True with descales=True, or lengths=True with descales=128",
            )
        if self.cache is not None and self.cache.page % block:
            raise LegoError(
                f"attention: descales of blocks of {block} tokens, in pages of {self.cache.page}",
                hint="page_size is a multiple of descales",
            )

    @property
    def computed(self) -> str:
        """The type in which exponentials and values are multiplied."""
        return self.dtype_pv or self._wide

    @property
    def is_narrow(self) -> bool:
        """Whether exponentials and values are multiplied as 8 bits."""
        return self.computed in _NARROW

    @property
    def _wide(self) -> str:
        """The type of 16 bits in which they are by default."""
        return self.dtype if self.dtype in _WIDE else _WIDE[0]

    @property
    def padded_depth(self) -> int:
        """The elements of a query's tile: a multiple of what matrix instructions multiply."""
        unit = _DOT_BYTES // BYTES[self.dtype]
        return -(-self.depth // unit) * unit

    def _check_strides(self) -> None:
        rank = 3 if self.is_ragged else 4
        for name, given in self.strides.items():
            if name not in _STRIDED:
                raise LegoError(f"attention: strides of '{name}'", hint=f"of {', '.join(_STRIDED)}")
            *steps, last = tuple(given) or (0,)
            types = {"q": self.dtype, "o": self.out}
            unit = MAX_ACCESS_BYTES // BYTES[types.get(name, self.dtype_kv)]
            if (
                len(steps) != rank - 1
                or last != 1
                or any(n is not None and (type(n) is not int or n < 1 or n % unit) for n in steps)
            ):
                raise LegoError(
                    f"attention: the strides of '{name}' are {given!r}",
                    hint=f"{rank} of them, in elements: the last one is 1, the others are "
                    f"multiples of {unit}, or None where the launch knows them",
                )

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

    @property
    def has_known_sizes(self) -> bool:
        """Whether batch, queries and keys are numbers."""
        return all(isinstance(n, int) for n in (self.batch, self.queries, self.keys))
