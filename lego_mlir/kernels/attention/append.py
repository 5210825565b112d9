"""New keys and values are stored at the end of each sequence's, before queries see them."""

from __future__ import annotations

from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import OrderBy, Row
from lego_mlir.frontend import Kernel, kernel
from lego_mlir.kernels.attention.pages import page_number
from lego_mlir.kernels.attention.problem import AttentionProblem
from lego_mlir.kernels.attention.tensors import MOST_TOKENS, TensorLayouts
from lego_mlir.kernels.functions import with_names

_WARPS = 4


def appending(problem: AttentionProblem) -> Kernel:
    """Return the kernel that stores the new keys and values of a problem."""
    layouts, cache = TensorLayouts(problem), problem.cache
    types = layouts.appended()

    def append(**tensors: Any) -> None:
        batch, token = lg.block_id("y"), lg.block_id("x")
        fresh = layouts.new()
        _, _, count, _ = tensors["k_new"].view(fresh.by_head(problem.depth)).shape
        length = tensors["lengths"][batch].below(MOST_TOKENS)

        @lg.if_(length - count + token >= 0)
        def store() -> None:
            known = problem.keys if isinstance(problem.keys, int) else MOST_TOKENS
            place = (length - count + token).below(known)
            stored, at = batch, place
            if cache is not None:
                page, at = OrderBy(Row(layouts.pages_each, cache.page)).inv(place)
                stored = page_number(tensors["pages"], batch, page)
            for name, depth in (("k", problem.depth), ("v", problem.depth_v)):
                new = tensors[f"{name}_new"].view(fresh.by_head(depth))
                held = tensors[name].view(layouts.keys(name).by_head(depth))
                held[stored, :, at, :] = new[batch, :, token, :]

    grid = problem.queries, problem.batch
    launch = kernel(grid=grid, warps=_WARPS, parameters=types, pdl="wait")
    return launch(with_names(append, types))
