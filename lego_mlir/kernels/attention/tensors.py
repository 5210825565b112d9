"""The tensors of an attention kernel: their types, and layouts from head, row and depth to memory.

A tile of queries has rows of one head, or of all heads that share a head of keys (packed). The
layouts of queries and results have a dimension of rows in either case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lego_mlir.algebra import Layout, OrderBy, RegP, Row
from lego_mlir.algebra.sizes import ceildiv, size_symbol
from lego_mlir.frontend import ScalarType, TensorType, Workspace
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import Int, Sym
from lego_mlir.kernels.attention.problem import BYTES, AttentionProblem

Type = TensorType | ScalarType

MOST_TOKENS = (1 << 31) - 1
"""What is below it is an offset of a token."""

DESCALES = ("descale_q", "descale_k", "descale_v")
"""The tensors of what queries, keys and values are multiplied by."""

_BHSD = "bhsd"
_HEADS = {"bshd": (0, 2, 1, 3), _BHSD: (0, 1, 2, 3)}
"""For each order, which of batch, head, sequence and depth stands where."""

_GROUPS = {"bshd": (0, 2, 1, 3, 4), _BHSD: (0, 1, 3, 2, 4)}
"""For each order, which of batch, head of keys, query, head of a group and depth stands where."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Tokens of several heads in memory.

    Attributes:
        batch: sequences, or pages; 1 if tokens of all sequences follow one another.
        heads: of each token.
        tokens: of a sequence, of a page, or in all.
        order: of the dimensions in memory.
        is_strided: its dimensions have strides of their own.
        has_batch: it has a dimension of sequences or pages.
    """

    batch: Int
    heads: int
    tokens: Int
    order: str = _BHSD
    is_strided: bool = False
    has_batch: bool = True

    def sizes(self, depth: int) -> tuple[Int, ...]:
        """Return the sizes of the dimensions in their order in memory."""
        sizes = self.batch, self.heads, self.tokens, depth
        return tuple(sizes[k] for k in _HEADS[self.order] if k or self.has_batch)

    def by_head(self, depth: int, lead: Sequence[Int] = ()) -> Layout:
        """Return the layout from batch, head, token and depth to memory.

        Args:
            depth: elements of a token.
            lead: dimensions before them.
        """
        sizes = [self.batch, self.heads, self.tokens, depth]
        return self._ordered(sizes, _HEADS[self.order], depth, lead)

    def by_group(self, group: int, depth: int, lead: Sequence[Int] = ()) -> Layout:
        """Return the layout from batch, head of keys, row and depth to memory.

        The rows are the tokens, each with the heads that share the head of keys.
        """
        heads = self.heads // group
        sizes = [self.batch, heads, self.tokens, group, depth]
        rows = [*lead, self.batch, heads, self.tokens * group, depth]
        return self._ordered(sizes, _GROUPS[self.order], depth, lead).GroupBy(rows)

    def _ordered(
        self, sizes: Sequence[Int], order: Sequence[int], depth: int, lead: Sequence[Int]
    ) -> Layout:
        count = len(lead)
        places = [*range(count), *(count + k for k in order)]
        ordered = RegP([*lead, *sizes], places)
        if not self.is_strided:
            return OrderBy(ordered)
        return OrderBy(Row(*lead, *self.sizes(depth))).OrderBy(ordered)


class TensorLayouts:
    """The tensors of a problem.

    Args:
        problem: what is computed.
    """

    def __init__(self, problem: AttentionProblem) -> None:
        self._problem = problem

    def queries(self, name: str = "q") -> Storage:
        """Return where queries lie, or results like them."""
        problem = self._problem
        return self._storage(name, problem.batch, problem.heads, problem.queries)

    def keys(self, name: str = "k") -> Storage:
        """Return where keys lie, or values."""
        problem = self._problem
        if problem.cache is not None:
            sizes = problem.cache.pages, problem.heads_kv, problem.cache.page
            return Storage(*sizes, problem.order, name in problem.strides)
        return self._storage(name, problem.batch, problem.heads_kv, problem.keys)

    def logarithms(self) -> Storage:
        """Return where the logarithms of sums lie, and the results of splits."""
        stored = self.queries()
        return replace(stored, order=_BHSD, is_strided=False)

    def new(self) -> Storage:
        """Return where new keys and values lie, as many as there are queries."""
        problem = self._problem
        return Storage(problem.batch, problem.heads_kv, problem.queries, problem.order)

    @property
    def pages_each(self) -> Int:
        """The pages of a sequence, at most."""
        assert self._problem.cache is not None
        pages: Int = ceildiv(self._problem.keys, self._problem.cache.page)
        return pages

    def inputs(self) -> dict[str, Type]:
        """Return the types of queries, keys and values, and what belongs to them, by name."""
        problem = self._problem
        found: dict[str, Type] = {
            "q": self._type("q", problem.dtype, self.queries(), problem.depth),
            **self._of_keys("k", "v"),
        }
        found |= self.offsets("offsets_q", "offsets_kv")
        return {**found, **self._places(), **self._descales(), **problem.arguments}

    def offsets(self, *names: str) -> dict[str, Type]:
        """Return the types of what says where sequences begin that follow one another, by name."""
        if not self._problem.is_ragged:
            return {}
        return dict.fromkeys(names, TensorType("i32", OrderBy(Row(self._problem.batch + 1))))

    def appended(self) -> dict[str, Type]:
        """Return the types of keys and values, and of those that are appended, by name."""
        return {**self._of_keys("k", "v"), **self._of_keys("k_new", "v_new"), **self._places()}

    def _of_keys(self, *names: str) -> dict[str, Type]:
        problem = self._problem
        return {
            name: self._type(
                name,
                problem.dtype_kv,
                self.new() if name.endswith("_new") else self.keys(name),
                problem.depth if name[0] == "k" else problem.depth_v,
            )
            for name in names
        }

    def _descales(self) -> dict[str, Type]:
        """Return the types of what queries, keys and values are multiplied by."""
        problem, block = self._problem, self._problem.scale_block
        if not problem.has_descales:
            return {}
        if block is None:
            kind = TensorType("f32", OrderBy(Row(problem.batch, problem.heads_kv)))
            return dict.fromkeys(DESCALES, kind)
        stored = (self.queries(), self.keys("k"), self.keys("v"))
        sizes = ((x.batch, x.heads, ceildiv(x.tokens, block)) for x in stored)
        kinds = (TensorType("f32", OrderBy(Row(*each))) for each in sizes)
        return dict(zip(DESCALES, kinds, strict=True))

    def _places(self) -> dict[str, Type]:
        """Return the types of what says where the keys of a sequence are."""
        problem = self._problem
        found: dict[str, Type] = {}
        if problem.has_lengths:
            found["lengths"] = TensorType("i32", OrderBy(Row(problem.batch)))
        if problem.cache is not None:
            found["pages"] = TensorType("i32", OrderBy(Row(problem.batch, self.pages_each)))
        return found

    def outputs(self, *, lse: bool) -> dict[str, Type]:
        """Return the type of the result, and of the logarithms where they are asked for."""
        problem = self._problem
        found: dict[str, Type] = {
            "o": self._type("o", problem.out, self.queries("o"), problem.depth_v)
        }
        if lse:
            found["lse"] = TensorType("f32", OrderBy(Row(*self.logarithms().sizes(1)[:-1])))
        return found

    def workspaces(self, splits: Int) -> dict[str, Workspace]:
        """Return the results of splits, and the logarithms of their sums."""
        sizes = self.logarithms().sizes(self._problem.depth_v)
        return {
            "parts": Workspace("f32", (splits, *sizes)),
            "logs": Workspace("f32", (splits, *sizes[:-1])),
        }

    def parts(self, splits: Int) -> dict[str, Type]:
        """Return the types of these, as kernels have them."""
        return {
            name: TensorType("f32", OrderBy(Row(*workspace.shape)))
            for name, workspace in self.workspaces(splits).items()
        }

    def _storage(self, name: str, batch: Int, heads: int, tokens: Int) -> Storage:
        problem = self._problem
        if problem.is_ragged:
            batch, tokens = 1, _tokens(name)
        is_strided = name in problem.strides
        return Storage(batch, heads, tokens, problem.order, is_strided, not problem.is_ragged)

    def _type(self, name: str, dtype: str, storage: Storage, depth: int) -> TensorType:
        """Return the type of queries, keys, values or results."""
        sizes = storage.sizes(depth)
        strides = self._problem.strides.get(name)
        if strides is None:
            return TensorType(dtype, OrderBy(Row(*sizes)), MAX_ACCESS_BYTES)
        unit = frozenset({MAX_ACCESS_BYTES // BYTES[dtype]})
        steps = tuple(
            Sym(f"{name}_stride_{k}", 1, None, unit) if step is None else step
            for k, step in enumerate(strides)
        )
        return TensorType(dtype, OrderBy(Row(*sizes)), MAX_ACCESS_BYTES, steps)


def _tokens(name: str) -> Sym:
    """Return the number of tokens of all sequences, of a ragged batch's queries or keys."""
    return size_symbol("tokens_q" if name in ("q", "o") else "tokens_kv")
