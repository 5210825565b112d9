"""The roles of a kernel: which warps execute an operation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.dialect import pipeline_operations as pipelines
from lego_mlir.mlir.tile_ir.kernels import TileKernel


@dataclass(frozen=True)
class Role:
    """What some warps of each CTA execute.

    Attributes:
        name: for errors.
        warps: their numbers.
        op: the lego.role; `None` in a kernel without roles.
        teams: of warps, each of which executes some iterations of its loop.
    """

    name: str
    warps: range
    op: Any
    teams: int = 1

    @property
    def team_warps(self) -> int:
        """The number of warps that execute an operation together."""
        return len(self.warps) // self.teams


def role_around(op: Any) -> Any | None:
    """Return the lego.role that an operation is in, `None` if it is in none."""
    around = op.parent
    while around is not None and around.operation.name != pipelines.ROLE:
        around = around.operation.parent
    return None if around is None else around.operation


def role_around_value(value: Any) -> Any | None:
    """Return the lego.role in which a value is made, `None` if in none."""
    if not isinstance(value, ir.BlockArgument):
        return role_around(value.owner.operation)
    owner = value.owner.owner.operation
    return owner if owner.name == pipelines.ROLE else role_around(owner)


class Roles:
    """The roles of the operations of one kernel, each read once.

    Args:
        kernel: the kernel; its roles stay as they are.
    """

    def __init__(self, kernel: TileKernel) -> None:
        self._kernel = kernel
        self._known: dict[Any, Role] = {}

    def of(self, op: Any) -> Role:
        """Return the role that executes an operation; as `role_of`."""
        around = role_around(op)
        if around not in self._known:
            self._known[around] = role_of(self._kernel, op)
        return self._known[around]


def role_of(kernel: TileKernel, op: Any) -> Role:
    """Return the role that executes an operation: all warps if it is in none."""
    found = role_around(op)
    if found is None:
        return Role("the kernel", range(kernel.launch_warps), None)
    name, warps = pipelines.role_name(found), pipelines.role_warps(found)
    return Role(name, warps, found, pipelines.role_teams(found))
