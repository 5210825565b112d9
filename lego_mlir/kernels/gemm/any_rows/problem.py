"""A GEMM of any rows: its problem, plans and configs at some numbers of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout, size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import TensorType
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Sym
from lego_mlir.kernels.gemm.any_rows.cover import MOST_SAMPLED, Candidate, Cover, Times, cover
from lego_mlir.kernels.gemm.arguments import epilogue_kind
from lego_mlir.kernels.gemm.build import Request
from lego_mlir.kernels.gemm.choice import WGMMA_TARGET, microseconds, needed_for_wgmma
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.chunks import shift_classes
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matrices import is_plain, order_of
from lego_mlir.kernels.gemm.planner import (
    HEURISTICS,
    EpilogueKind,
    Plan,
    plan,
    ways,
    with_row_major_c,
)
from lego_mlir.kernels.gemm.problem import Problem, operands_of
from lego_mlir.kernels.gemm.unaligned.remedies import Remedies
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.gemm.wgmma.config_table import ConfigTable, shared_bytes_of

ROWS = "M"
"""The name of the rows of A and C in layouts."""

ROWS_OPERAND = "a"
"""The operand with these rows, of which there is no re-pitched copy: its workspace has no size."""

MULTIPLE = 16
"""What divides the rows where columns of A or C are contiguous and TMA takes them."""


def rows_of(layout: Layout | None) -> Sym:
    """Return the symbol of the rows, with what a layout of A says that divides them."""
    found = [s for s in layout.symbols if s.name == ROWS] if layout is not None else []
    return found[0] if found else size_symbol(ROWS)


@dataclass(frozen=True, slots=True)
class AnyRows:
    """A GEMM of any rows.

    Attributes:
        request: the GEMM; its layouts have the rows as a symbol.
        rows: the symbol.
        problem: the GEMM with some number of rows.
        target: the GPU architecture.
        schedule: the schedule's name or file; `None` to choose.
        config: the config; `None` to choose.
        promote: iterations after which accumulators are promoted.
        most_configs: the configs that are compiled at most; `None` for as many as are worth it.
    """

    request: Request
    rows: Sym
    problem: Problem
    target: Target
    schedule: str | None
    config: GemmConfig | None
    promote: int
    most_configs: int | None

    def with_multiples(self) -> AnyRows:
        """Return the GEMM of rows that are multiples, if TMA needs that; else the GEMM itself."""
        order_a, _, order_c = map(order_of, self.request.layouts)
        if (order_a, order_c) == ("row", "row") or self.target.name != WGMMA_TARGET:
            return self
        if any(isinstance(d, int) and d % MULTIPLE == 0 for d in self.rows.divisors):
            return self
        return self.changed(lambda kind: kind.with_divisors({ROWS: (MULTIPLE,)}))

    def changed(self, change: Callable[[TensorType], TensorType]) -> AnyRows:
        """Return the GEMM with other types of the tensors whose rows are the symbol."""

        def has_rows(kind: TensorType) -> bool:
            return any(s.name == ROWS for s in kind.symbols)

        types = {
            name: change(kind) if has_rows(kind) else kind
            for name, kind in self.request.types.items()
        }
        operands = {
            name: change(kind) if isinstance(kind, TensorType) and has_rows(kind) else kind
            for name, kind in self.request.operands.items()
        }
        request = replace(self.request, types=types, operands=operands)
        return replace(self, request=request, rows=rows_of(types["a"].layout))

    def _problem(self, rows: int) -> Problem:
        return replace(self.problem, m=rows)

    def _layouts(self, rows: int) -> list[Layout]:
        # A single row has no stride, of which TMA might demand something.
        known = {ROWS: max(rows, self._sampled(2))}
        return [x.bind(**known) if x.symbols else x for x in self.request.layouts]

    @property
    def _epilogue(self) -> EpilogueKind | None:
        if self.request.epilogue is None:
            return None
        return epilogue_kind(self.request.operands, (self.rows, self.problem.n))

    @property
    def _alignment(self) -> int:
        return self.request.types["a"].alignment

    def _sampled(self, rows: int) -> int:
        """Return rows near these of which the same is known to divide them."""
        known = [d for d in self.rows.divisors if isinstance(d, int)]
        multiple = max(known, default=1)
        return -(-rows // multiple) * multiple

    @property
    def needed(self) -> Remedies | LegoError | None:
        """What `wgmma` needs for the matrices, or why it cannot multiply them."""
        rows = self._sampled(MOST_SAMPLED)
        problem, layouts = self._problem(rows), self._layouts(rows)
        return needed_for_wgmma(problem, layouts, self.target, self._alignment)

    def can_be_wgmma(self, needed: Remedies) -> bool:
        """Return whether TMA, or threads, copy tiles of A."""
        layout = self._layouts(self._sampled(MOST_SAMPLED))[0]
        return ROWS_OPERAND not in needed.repitched or is_plain(layout)

    def plan_of(self, candidate: Candidate) -> Plan:
        """Return the plan of a candidate, for the rows where it is the best."""
        config = candidate.config
        return plan(
            self._problem(candidate.rows),
            self._layouts(candidate.rows),
            self.target,
            self.schedule,
            config,
            self.promote,
            self._alignment,
        )

    def _best(self, rows: int) -> GemmConfig:
        """Return the best config for some rows that serves any."""
        problem, layouts = self._problem(rows), self._layouts(rows)
        config = plan(
            problem, layouts, self.target, self.schedule, None, self.promote, self._alignment,
            epilogue=self._epilogue, by_threads=ROWS_OPERAND,
        ).config  # fmt: skip
        is_copied = not isinstance(config, WgmmaConfig) or self._copies_rows(config)
        return config if is_copied and self._fits(config) else next(self.configs_for(rows))

    def _copies_rows(self, config: WgmmaConfig) -> bool:
        """Return whether threads copy tiles of A with a config, if TMA does not take it."""
        needed = self.needed
        is_refused = isinstance(needed, Remedies) and ROWS_OPERAND in needed.repitched
        return not is_refused or ROWS_OPERAND in operands_of(self.problem, config.copied_by_threads)

    def configs_for(self, rows: int) -> Iterator[GemmConfig]:
        """Return the configs for some rows that serve any, the best first."""
        problem, layouts = self._problem(rows), self._layouts(rows)
        found = ways(
            problem, layouts, self.target, self._alignment, None, self._epilogue, ROWS_OPERAND
        )
        return filter(self._fits, found)

    def _fits(self, config: GemmConfig) -> bool:
        """Return whether a config computes any number of rows, by threads that store C.

        TMA stores no C whose rows only the launch knows. Consumers that take turns bring whole
        tiles of it to rows, beside the ring buffer; others bring parts of them.
        """
        if not self.takes(config):
            return False
        if not isinstance(config, WgmmaConfig) or not config.ping_pong:
            return True
        table = ConfigTable.of([config], ELEMENT_BYTES[self.problem.dtype])
        (needed,) = shared_bytes_of(self.problem, table, stores_by_threads=True)
        return bool(needed <= self.target.optin_shared_bytes)

    def takes(self, config: GemmConfig) -> bool:
        """Return whether a config computes any number of rows.

        One for few rows or columns does not if the rows decide how its operand's chunks lie; nor
        does split-K of clusters, whose steps need to know the grid.
        """
        if isinstance(config, WgmmaConfig):
            return not config.sums_through_l2 or config.cluster == (1, 1)
        if not isinstance(config, GemvConfig):
            return True
        if self._is_transposed(config):
            return not config.packs_b
        return self.problem.a == "row" and shift_classes(self.problem) == 1

    def choose_configs(self) -> Cover:
        """Return the configs, and the rows for which each is taken."""
        if self.config is not None:
            return Cover((Candidate(self.config, self._sampled(MOST_SAMPLED)),), (), (0,))
        found = cover(
            lambda rows: self._best(self._sampled(rows)),
            self._estimates,
            lambda config: config.tile[self._is_transposed(config)],
            self.most_configs,
        )
        candidates = (replace(c, rows=self._sampled(c.rows)) for c in found.candidates)
        return replace(found, candidates=tuple(candidates))

    def _estimates(self, rows: Sequence[int], configs: Sequence[GemmConfig]) -> Times:
        """Return the times that configs take, for each number of rows a row of the result."""
        found = np.empty((len(rows), len(configs)))
        gpu, needed = spec_of(self.target), self.needed
        for schedule in {config.schedule for config in configs}:
            own = [k for k, config in enumerate(configs) if config.schedule == schedule]
            some: list[Any] = [configs[k] for k in own]
            for number, n in enumerate(rows):
                problem = self._problem(self._sampled(n))
                if isinstance(some[0], WgmmaConfig) and isinstance(needed, Remedies) and needed:
                    found[number, own] = microseconds(problem, some, gpu, needed, self._alignment)
                else:
                    canonical = with_row_major_c(problem)[0]
                    found[number, own] = HEURISTICS[schedule].microseconds(canonical, some, gpu)
        return found

    def _is_transposed(self, config: GemmConfig) -> bool:
        """Return whether a config multiplies the transposes, so that C's rows are its columns."""
        return with_row_major_c(self.problem)[1] != config.is_swapped
