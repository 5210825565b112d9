"""A GEMM whose rows only the launch knows: `matmul(None, n, k)`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

from lego_mlir.algebra import Layout, size_symbol
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence, TensorType
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.hardware.specs import spec_of
from lego_mlir.hardware.targets import Target
from lego_mlir.index import Sym
from lego_mlir.kernels.gemm.any_rows.cover import MOST_SAMPLED, Candidate, Cover, cover
from lego_mlir.kernels.gemm.arguments import epilogue_kind
from lego_mlir.kernels.gemm.build import Request, RunTimeRows, build, reference_of
from lego_mlir.kernels.gemm.choice import WGMMA_TARGET, needed_for_wgmma
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matrices import order_of
from lego_mlir.kernels.gemm.planner import (
    GEMV,
    HEURISTICS,
    HMMA,
    EpilogueKind,
    Plan,
    fallback_warning,
    plan,
    ways,
    with_row_major_c,
)
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.remedies import Remedies

ROWS = "M"
"""The name of the rows of A and C in layouts."""

_MULTIPLE = 16
"""What divides the rows where columns of A or C are contiguous and TMA takes them."""

_ALTERNATIVES = 8
"""Configs that are tried after one whose machine code spills registers."""

Function: TypeAlias = Kernel | KernelSequence


def rows_of(layout: Layout | None) -> Sym:
    """Return the symbol of the rows, with what a layout of A says that divides them."""
    found = [s for s in layout.symbols if s.name == ROWS] if layout is not None else []
    return found[0] if found else size_symbol(ROWS)


def matmul_of_any_rows(
    request: Request,
    n: int,
    k: int,
    target: Target,
    schedule: str | None,
    config: GemmConfig | None,
    promote: int,
    most_configs: int,
) -> KernelChoice:
    """Return the function of a GEMM whose rows only the launch knows.

    Args:
        request: the GEMM; its layouts have the rows as a symbol.
        n: columns of B and C.
        k: columns of A, rows of B.
        target: the GPU architecture.
        schedule: the schedule's name or file; `None` to choose.
        config: the config; `None` to choose.
        promote: iterations after which accumulators are promoted.
        most_configs: the configs that are compiled at most.

    Raises:
        LegoError: the config or the schedule does not fit, or is for few rows only.
    """
    if schedule == GEMV or isinstance(config, GemvConfig):
        raise LegoError(
            f"matmul: '{GEMV}' is for a number of rows or columns that is known before the launch",
            hint="leave out schedule and config, or give the number of rows",
        )
    if most_configs < 1:
        raise LegoError(f"matmul: configs = {most_configs}; at least one is compiled")
    a, _, c = request.types.values()
    order_a, order_b, order_c = map(order_of, request.layouts)
    batch = request.batch or 1
    problem = Problem(1, n, k, a.dtype, c.dtype, order_a, order_b, order_c, batch)
    gemm = AnyRows(
        request, rows_of(a.layout), problem, target, schedule, config, promote, most_configs
    )
    needed = gemm._with_multiples().needed
    if isinstance(needed, Remedies) and "a" in needed.repitched and gemm.schedule is None:
        reason = LegoError(
            f"A: a row of {k} elements is no multiple of 16 bytes, and rows that only the "
            "launch knows are not copied",
            hint="pad k to a multiple of 16 bytes",
        )
        warnings.warn(fallback_warning("matmul", reason), stacklevel=3)
        gemm = replace(gemm, schedule=HMMA)
    elif isinstance(needed, LegoError) and gemm.schedule is None:
        warnings.warn(fallback_warning("matmul", needed), stacklevel=3)
    return gemm.function()


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
        most_configs: the configs that are compiled at most.
    """

    request: Request
    rows: Sym
    problem: Problem
    target: Target
    schedule: str | None
    config: GemmConfig | None
    promote: int
    most_configs: int

    def function(self) -> KernelChoice:
        """Return the function that takes a config by the rows of each launch.

        Raises:
            LegoError: the config or the schedule does not fit.
        """
        of_multiples = self._with_multiples()
        covers = [of_multiples._cover()]
        makers = of_multiples._makers(covers[0])
        if of_multiples is not self:  # other rows are no multiples of what TMA needs
            general = replace(self, schedule=HMMA if self.schedule is None else self.schedule)
            covers.append(general._cover())
            makers += general._makers(covers[1])

        def choose(rows: int) -> int:
            if len(covers) == 1 or rows % _MULTIPLE == 0:
                return covers[0].choose(rows)
            return len(covers[0].candidates) + covers[1].choose(rows)

        def explanation() -> str:
            if len(covers) == 1:
                return "\n".join(covers[0].lines())
            titles = f"{_MULTIPLE} divides {ROWS}", "other rows"
            parts = zip(titles, covers, strict=True)
            return "\n".join(line for title, c in parts for line in (title, *c.lines()))

        chosen = of_multiples._plan(covers[0].candidates[-1])
        dtype = self.request.types["a"].dtype
        return KernelChoice(
            "matmul",
            self._parameters,
            (ROWS,),
            choose,
            makers,
            None if self.request.epilogue is not None else reference_of(dtype, chosen),
            explanation,
        )

    @property
    def _parameters(self) -> dict[str, Parameter]:
        return {**self.request.types, **self.request.operands}

    def _with_multiples(self) -> AnyRows:
        """Return the GEMM of rows that are multiples, if TMA needs that; else the GEMM itself."""
        order_a, _, order_c = map(order_of, self.request.layouts)
        if (order_a, order_c) == ("row", "row") or self.target.name != WGMMA_TARGET:
            return self
        if any(isinstance(d, int) and d % _MULTIPLE == 0 for d in self.rows.divisors):
            return self
        return self._changed(lambda kind: kind.with_divisors({ROWS: (_MULTIPLE,)}))

    def _changed(self, change: Callable[[TensorType], TensorType]) -> AnyRows:
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

    # ------------------------------------------------------------------------------ configs
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

    def _plan(self, candidate: Candidate) -> Plan:
        """Return the plan of a candidate, for the rows where it is the best."""
        return plan(
            self._problem(candidate.rows),
            self._layouts(candidate.rows),
            self.target,
            self.schedule,
            candidate.config,
            self.promote,
            self._alignment,
        )

    def _best(self, rows: int) -> GemmConfig:
        """Return the best config for some rows that serves any."""
        problem, layouts = self._problem(rows), self._layouts(rows)
        config = plan(
            problem, layouts, self.target, self.schedule, None, self.promote, self._alignment,
            epilogue=self._epilogue,
        ).config  # fmt: skip
        return next(self._ways(rows)) if isinstance(config, GemvConfig) else config

    def _ways(self, rows: int) -> Iterator[GemmConfig]:
        problem, layouts = self._problem(rows), self._layouts(rows)
        found = ways(problem, layouts, self.target, self._alignment, None, self._epilogue)
        return (config for config in found if not isinstance(config, GemvConfig))

    def _cover(self) -> Cover:
        """Return the configs, and the rows for which each is taken."""
        if self.config is not None:
            return Cover((Candidate(self.config, self._sampled(MOST_SAMPLED)),), (), (0,))
        gpu = spec_of(self.target)

        def estimate(rows: int, configs: Sequence[GemmConfig]) -> list[float]:
            problem = with_row_major_c(self._problem(self._sampled(rows)))[0]
            found = [0.0] * len(configs)
            for schedule in {config.schedule for config in configs}:
                own = [k for k, config in enumerate(configs) if config.schedule == schedule]
                times = HEURISTICS[schedule].microseconds(problem, [configs[k] for k in own], gpu)
                for k, microseconds in zip(own, times, strict=True):
                    found[k] = microseconds
            return found

        found = cover(
            lambda rows: self._best(self._sampled(rows)), estimate, _is_bounded, self.most_configs
        )
        candidates = (replace(c, rows=self._sampled(c.rows)) for c in found.candidates)
        return replace(found, candidates=tuple(candidates))

    # ---------------------------------------------------------------------------- functions
    def _makers(self, found: Cover) -> list[Callable[[], Function]]:
        """Return what makes the function of each config; the last one is for any rows."""

        def maker(number: int) -> Callable[[], Function]:
            return lambda: self._function(found.candidates[number], found.most(number))

        return [maker(number) for number in range(len(found.candidates))]

    def _function(self, candidate: Candidate, most: int | None) -> Function:
        """Return the function of a config.

        Args:
            candidate: the config.
            most: the most rows that it is launched for, if that is known.
        """
        bounded = self
        if most is not None:
            bounded = self._changed(lambda kind: replace(kind, bounds=((ROWS, (most,)),)))
        made = bounded._built(candidate, most)
        if self.config is None:

            def alternatives() -> Iterator[Function]:
                others = (c for c in self._ways(candidate.rows) if c != candidate.config)
                usable = (c for c in others if most is not None or not _is_bounded(c))
                return (
                    bounded._built(replace(candidate, config=config), most)
                    for config in islice(usable, _ALTERNATIVES)
                )

            made.alternatives = alternatives
        return made

    def _built(self, candidate: Candidate, most: int | None) -> Function:
        if most is None and _is_bounded(candidate.config):
            raise LegoError(
                f"matmul: {candidate.config} adds slices in a workspace, whose size depends on "
                "rows that only the launch knows",
                hint="split_k_through='cluster', split_k=1, or no config",
            )
        return build(self.request, self._plan(candidate), RunTimeRows(self.rows, most))


def _is_bounded(config: GemmConfig) -> bool:
    """Return whether a config has workspaces for all tiles of C."""
    return bool(getattr(config, "sums_through_l2", False))
