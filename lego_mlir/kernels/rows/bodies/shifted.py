"""Copies of what belongs to columns for rows that begin anywhere in a vector: one for each place.

    w0 w1 w2 w3 w4           rows that begin with a vector
    .  w0 w1 w2 w3 w4        rows that begin with its second element, and so on

So threads that have aligned vectors of a row have aligned vectors of these, too. A kernel makes
them, which takes as long as two or three rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lego_mlir import frontend as lg
from lego_mlir.algebra import ceildiv
from lego_mlir.frontend import TensorType, Workspace
from lego_mlir.hardware.limits import WARP_THREADS
from lego_mlir.kernels.rows.problem import RowsProblem, typed

WARPS, _ELEMENTS = 4, 8
"""Warps of a CTA that makes copies, and elements of each thread."""

TILE = WARPS * WARP_THREADS * _ELEMENTS


def shifted_inputs(problem: RowsProblem) -> dict[str, str]:
    """Return the names of the copies by that of the input."""
    names = problem.loaded_by_column if problem.is_in_words else ()
    return {name: f"{name}_shifted" for name in names}


def copies_of(problem: RowsProblem, name: str) -> Workspace:
    """Return the memory of the copies of an input."""
    return Workspace(problem.arguments[name].dtype, _shape(problem))


def type_of_copies(problem: RowsProblem, name: str) -> TensorType:
    """Return the type of the copies of an input, which vectors may access."""
    return typed(problem.arguments[name].dtype, ", ".join(map(str, _shape(problem))))


def _shape(problem: RowsProblem) -> tuple[int, int]:
    vector = problem.vector
    return vector, ceildiv(problem.longest_in_words, vector) * vector


def grid_of_copies(problem: RowsProblem) -> tuple[int, int]:
    """Return the grid of the kernel that makes copies: tiles of each, and copies."""
    copies, width = _shape(problem)
    return ceildiv(width, TILE), copies


def make_copies(problem: RowsProblem, tensors: Mapping[str, Any]) -> None:
    """Trace a CTA that makes a tile of a copy of each input.

    Args:
        problem: the kernel.
        tensors: the inputs and their copies by name.
    """
    number, copy = lg.block_id("x"), lg.block_id("y")
    before, width = _shape(problem)
    for name, shifted in shifted_inputs(problem).items():
        window = tensors[name].window((before + width,), lambda k: k - before, "zero")
        tile = window.tile(TILE, step=1)[number * TILE + before - copy]
        tensors[shifted].tile(1, TILE)[copy, number] = tile.reshape(1, TILE)
