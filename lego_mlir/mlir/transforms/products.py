"""Products of tiles as schedules find them: a loop that loads two tiles and contracts them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.transforms.operation import Step
from lego_mlir.mlir.transforms.tiles import SHARED, Tile, tile_of

WARPS = "lego.warps"
"""The attribute of a contraction: the layout from warp id to part of the tile."""

_SHAPE = (
    "a loop over k that loads a tile of A and one of B, each with the attribute 'shared', and "
    "contracts them in one vector.contract"
)


@dataclass(frozen=True, slots=True)
class Product:
    """A loop that adds up products of tiles.

    Attributes:
        loop: the scf.for over k.
        contract: the vector.contract in it.
        a: the load of the left operand.
        b: the load of the right operand.
        warps: the layout of the warps over the tile of the result.
    """

    loop: Any
    contract: Any
    a: Tile
    b: Tile
    warps: Layout

    @property
    def outer(self) -> Any:
        """The loop over tiles around it, if there is one."""
        parent = self.loop.parent
        return parent if parent is not None and parent.name == "scf.for" else None

    @property
    def warp_count(self) -> int:
        """The warps that share the tile."""
        return prod(n for n in self.warps.dims if isinstance(n, int))

    def shared_layout(self, tile: Tile, layouts: Layouts) -> Layout:
        """The layout of an operand's copy in shared memory."""
        return layouts(tile.op.attributes[SHARED], tile.op.location)


def product_of(step: Step, launch: Any) -> Product:
    """The product that a kernel computes.

    Raises:
        LegoError: it is not of the form that is looked for.
    """
    contracts = [op for op in operations_in(launch) if op.name == "vector.contract"]
    if len(contracts) != 1:
        raise step.error(
            f"looked for {_SHAPE}; found {len(contracts) or 'no'} vector.contract", launch
        )
    (contract,) = contracts
    loop = contract.parent
    if loop.name != "scf.for":
        raise step.error(f"looked for {_SHAPE}; found it in a '{loop.name}'", contract)
    operands = []
    for value, name in zip(list(contract.operands)[:2], "AB", strict=True):
        op = None if _is_argument(value) else value.owner.operation
        if op is None or op.name != "lego.load" or SHARED not in op.attributes:
            found = "an argument" if op is None else f"'{op.name}'"
            raise step.error(f"looked for {_SHAPE}; {name} is {found}", contract)
        if op.parent != loop:
            raise step.error(f"looked for {_SHAPE}; {name} is loaded outside of the loop", op)
        operands.append(tile_of(op, step.setting))
    if WARPS not in contract.attributes:
        raise step.error(
            f"the vector.contract has no {WARPS}",
            contract,
            hint=f'say which warp has which part of the tile: {WARPS} = #lego.layout<"...">',
        )
    warps = step.setting.layouts(contract.attributes[WARPS], contract.location)
    return Product(loop, contract, operands[0], operands[1], warps)


def _is_argument(value: Any) -> bool:
    return not hasattr(value.owner, "operation") or hasattr(value, "arg_number")
