"""What a ring program does with rings: its operations on them, and roles that take turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.interpreter.roles import deadlock

if TYPE_CHECKING:
    from lego_mlir.mlir.tile_ir.verifier.rings.program import Execute, Run, Waiting

_TILE = object()
"""Stands for every tile."""


@dataclass(eq=False)
class RunningRole:
    """A role that runs.

    Attributes:
        name: of the role.
        body: what it still has to execute.
        is_ready: whether it can go on.
        what: it waits for, in words.
    """

    name: str
    body: Waiting
    is_ready: Callable[[], bool] = lambda: True
    what: str = ""


def run_roles(roles: list[RunningRole]) -> None:
    """Run roles, one at a time, each until it waits for another.

    Raises:
        LegoError: a role fails, or none of them can go on.
    """
    while roles:
        ready = [role for role in roles if role.is_ready()]
        if not ready:
            raise deadlock({role.name: role.what for role in roles})
        for role in ready:
            found = next(role.body, None)
            if found is None:
                roles.remove(role)
            else:
                role.is_ready, role.what = found


def on_ring(name: str, place: int, number: int, role: Any) -> Execute:
    """Return what executes an operation on a ring.

    Args:
        name: of the operation.
        place: of the ring.
        number: the place of its tile's number.
        role: that executes it.
    """

    def acquire(run: Run) -> Waiting:
        ring, tile = run.rings[place], run.numbers[number]
        ring.count(role, name, tile)
        if not ring.is_empty_for(tile):
            yield (
                lambda: ring.is_empty_for(tile),
                f"for the release of tile {tile - ring.stages}",
            )
        ring.acquire(tile)

    def fill(run: Run) -> None:
        ring, tile = run.rings[place], run.numbers[number]
        ring.check_acquired(name, tile)
        ring.copied[tile] = _TILE

    def commit(run: Run) -> None:
        ring, tile = run.rings[place], run.numbers[number]
        ring.count(role, name, tile)
        ring.commit(tile)

    def wait(run: Run) -> Waiting:
        ring, tile = run.rings[place], run.numbers[number]
        ring.count(role, name, tile)
        if not ring.is_complete(tile):
            yield lambda: ring.is_complete(tile), f"for tile {tile}"
        ring.waited[role, tile] = _TILE

    def release(run: Run) -> None:
        ring, tile = run.rings[place], run.numbers[number]
        ring.count(role, name, tile)
        ring.release(role, tile)

    found: dict[str, Execute] = {
        pipelines.ACQUIRE: acquire,
        pipelines.COMMIT: commit,
        pipelines.WAIT: wait,
        pipelines.RELEASE: release,
    }
    return found.get(name, fill)
