"""What queries, keys and values of 8 bits are multiplied by: a number a sequence, or one a block.

With numbers of blocks of tokens a tile of keys has one number a of its keys and one w of its
values. Scores s of the tile are multiplied by a on their way to exponents, and w is one more
summand of these:

    p = 2^(a s + log2 w - base);  o = o + p v;  sums = sums + sum(p) / w

So neither costs an operation of an element, and what is rounded to 8 bits is an exponential with
the weight that it has in the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.algebra.sizes import ceildiv
from lego_mlir.index import maximum, minimum
from lego_mlir.kernels.attention.config import AttentionConfig
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.kernels.attention.tensors import TensorLayouts
from lego_mlir.kernels.attention.work import Work

_LEAST = 1e-30
"""Smaller numbers, and 0, count as this one: their reciprocals are finite, and elements that are
multiplied by them count for nothing."""


class TileScale(NamedTuple):
    """The numbers of a tile of keys, by which its scores become those that tiles have in common.

    Attributes:
        keys: what scores are multiplied by.
        weight: the logarithm to base 2 of what values are multiplied by.
        keys_inverse: one over `keys`.
        values_inverse: one over what values are multiplied by.
    """

    keys: Any
    weight: Any
    keys_inverse: Any
    values_inverse: Any

    @staticmethod
    def of(keys: Any, values: Any) -> TileScale:
        """Return what numbers of keys and values are to a tile."""
        return TileScale(keys, lg.log2(values), 1.0 / keys, 1.0 / values)

    def applied(self, score: Any, unit: Any) -> Any:
        """Return the common score of one of the tile.

        Args:
            score: of the tile.
            unit: the common score that is one power of 2 of an exponential.
        """
        return score * self.keys + self.weight * unit

    def inverse(self, score: Any, unit: Any) -> Any:
        """Return the score of the tile that a common one is of."""
        return (score - self.weight * unit) * self.keys_inverse


class Scales:
    """The numbers of a CTA.

    Args:
        problem: what is computed.
        config: how it is divided.
        tensors: the arguments by name.
        work: of the CTA.
    """

    def __init__(
        self,
        problem: AttentionProblem,
        config: AttentionConfig,
        tensors: Mapping[str, Any],
        work: Work,
    ) -> None:
        self._problem, self._config = problem, config
        self._tensors, self._work = tensors, work

    def of_scores(self, token: Any, heads: Any) -> Any:
        """Return what scores are multiplied by, besides what their tiles of keys are.

        Args:
            token: the query of each row of the CTA, [rows, 1].
            heads: the head of queries of each row, or of all.
        """
        problem, work = self._problem, self._work
        if not problem.has_descales:
            return problem.scale
        if problem.scale_block is None:
            return problem.scale * (self._of_sequence("q") * self._of_sequence("k"))
        blocks = ceildiv(problem.queries, problem.scale_block)
        found = self._tensors["descale_q"]
        if self._config.packed or problem.scale_block % self._config.rows:
            token = minimum(token, work.queries.end - 1)
            block, _ = OrderBy(Row(blocks, problem.scale_block)).inv(token)
        else:
            each = problem.scale_block // self._config.rows
            block, _ = OrderBy(Row(blocks, each)).inv(work.tile)
        return maximum(found[work.batch, heads, block], _LEAST) * problem.scale

    @property
    def of_values(self) -> Any:
        """What results are multiplied by."""
        is_of_sequence = self._problem.has_descales and self._problem.scale_block is None
        return self._of_sequence("v") if is_of_sequence else 1.0

    def at(self, sequence: Any, tile: Any) -> TileScale:
        """Return the numbers of a tile of keys, of a problem with blocks.

        Args:
            sequence: its sequence or page.
            tile: which tile of it.
        """
        keys, values = (
            maximum(self._of_block(f"descale_{name}", sequence, tile), _LEAST) for name in "kv"
        )
        return TileScale.of(keys, values)

    def _of_block(self, name: str, sequence: Any, tile: Any) -> Any:
        tensor, size = self._tensors[name], self._problem.scale_block
        assert size is not None
        blocks = ceildiv(TensorLayouts(self._problem).keys().tokens, size)
        block, _ = OrderBy(Row(blocks, size // self._config.columns)).inv(tile)
        # Pages of a number that is not one of the cache's have zeros, whatever they count.
        return tensor[minimum(sequence, tensor.shape[0] - 1), self._work.head_kv, block]

    def _of_sequence(self, name: str) -> Any:
        return self._tensors[f"descale_{name}"][self._work.batch, self._work.head_kv]
