"""A GEMM whose rows only the launch knows: `matmul(None, n, k)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend import Kernel, KernelChoice, KernelSequence
from lego_mlir.hardware.targets import Target
from lego_mlir.kernels.gemm.any_rows.cover import Candidate, Cover
from lego_mlir.kernels.gemm.any_rows.problem import MULTIPLE, ROWS, AnyRows, rows_of
from lego_mlir.kernels.gemm.build import Request, RunTimeRows, build, reference_of
from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.matrices import order_of
from lego_mlir.kernels.gemm.planner import CP_ASYNC, GEMV, fallback_warning
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.unaligned.remedies import Remedies
from lego_mlir.kernels.public import warn_user

_ALTERNATIVES = 8
"""Configs that are tried after one whose machine code spills registers."""

Function: TypeAlias = Kernel | KernelSequence


def matmul_of_any_rows(
    request: Request,
    n: int,
    k: int,
    target: Target,
    schedule: str | None,
    config: GemmConfig | None,
    promote: int,
    most_configs: int | None,
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
        most_configs: the configs that are compiled at most; `None` for as many as are worth it.

    Raises:
        LegoError: the config or the schedule does not fit, or is for few rows only.
    """
    if schedule == GEMV and config is None:
        raise LegoError(
            f"matmul: '{GEMV}' is for few rows, and only the launch knows how many there are",
            hint="leave out schedule, or give the number of rows",
        )
    if most_configs is not None and most_configs < 1:
        raise LegoError(f"matmul: configs = {most_configs}; at least one is compiled")
    a, _, c = request.types.values()
    order_a, order_b, order_c = map(order_of, request.layouts)
    batch = request.batch or 1
    problem = Problem(1, n, k, a.dtype, c.dtype, order_a, order_b, order_c, batch)
    gemm = AnyRows(
        request, rows_of(a.layout), problem, target, schedule, config, promote, most_configs
    )
    if config is not None and not gemm.takes(config):
        is_few = isinstance(config, GemvConfig)
        what = "how rows lie in chunks of 16 bytes" if is_few else "the grid of split-K of clusters"
        raise LegoError(
            f"matmul: {config} needs to know {what}, and only the launch knows the rows",
            hint="leave out config, or give the number of rows",
        )
    needed = gemm.with_multiples().needed
    if gemm.schedule is None and isinstance(needed, Remedies) and not gemm.can_be_wgmma(needed):
        reason = LegoError(
            f"A: a row of {k} elements is no multiple of 16 bytes, and rows that only the "
            "launch knows are not copied",
            hint="pad k to a multiple of 16 bytes",
        )
        warn_user(fallback_warning("matmul", reason))
        gemm = replace(gemm, schedule=CP_ASYNC)
    elif isinstance(needed, LegoError) and gemm.schedule is None:
        warn_user(fallback_warning("matmul", needed))
    return _choice(gemm)


def _choice(gemm: AnyRows) -> KernelChoice:
    """Return the function that takes a config by the rows of each launch.

    Raises:
        LegoError: the config or the schedule does not fit.
    """
    of_multiples = gemm.with_multiples()
    covers = [of_multiples.choose_configs()]
    makers = _makers(of_multiples, covers[0])
    if of_multiples is not gemm:  # other rows are no multiples of what TMA needs
        general = replace(gemm, schedule=CP_ASYNC if gemm.schedule is None else gemm.schedule)
        covers.append(general.choose_configs())
        makers += _makers(general, covers[1])

    def choose(rows: int) -> int:
        if len(covers) == 1 or rows % MULTIPLE == 0:
            return covers[0].choose(rows)
        return len(covers[0].candidates) + covers[1].choose(rows)

    def explanation() -> str:
        if len(covers) == 1:
            return "\n".join(covers[0].lines())
        titles = f"{MULTIPLE} divides {ROWS}", "other rows"
        parts = zip(titles, covers, strict=True)
        return "\n".join(line for title, c in parts for line in (title, *c.lines()))

    chosen = of_multiples.plan_of(covers[0].candidates[-1])
    dtype = gemm.request.types["a"].dtype
    return KernelChoice(
        "matmul",
        {**gemm.request.types, **gemm.request.operands},
        (ROWS,),
        choose,
        makers,
        None if gemm.request.epilogue is not None else reference_of(dtype, chosen),
        explanation,
    )


def _makers(gemm: AnyRows, found: Cover) -> list[Callable[[], Function]]:
    """Return what makes the function of each config; the last one is for any rows."""

    def maker(number: int) -> Callable[[], Function]:
        return lambda: _function(gemm, found.candidates[number], found.most(number))

    return [maker(number) for number in range(len(found.candidates))]


def _function(gemm: AnyRows, candidate: Candidate, most: int | None) -> Function:
    """Return the function of a config.

    Args:
        gemm: the GEMM.
        candidate: the config.
        most: the most rows that it is launched for, if that is known.
    """
    bounded = gemm
    if most is not None:
        bounded = gemm.changed(lambda kind: replace(kind, bounds=((ROWS, (most,)),)))

    def built(candidate: Candidate) -> Function:
        rows = RunTimeRows(bounded.rows, most)
        return build(bounded.request, bounded.plan_of(candidate), rows)

    made = built(candidate)
    if gemm.config is None:

        def alternatives() -> Iterator[Function]:
            others = (c for c in gemm.configs_for(candidate.rows) if c != candidate.config)
            return (
                built(replace(candidate, config=config)) for config in islice(others, _ALTERNATIVES)
            )

        made.alternatives = alternatives
    return made
