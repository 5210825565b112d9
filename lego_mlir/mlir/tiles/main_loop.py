"""The main loop of a GEMM kernel: a K loop that loads two tiles and contracts them.

An operand is one load, or is selected among several with the same shared-memory layout:

    %x = scf.index_switch %which -> vector<128x64xf16>
    case 1 { %0 = "lego.load"(%b, %m, %k) {layout = #B, ..., shared = #tile}   scf.yield %0 }
    default { %0 = "lego.load"(%a, %m, %k) {layout = #A, ..., shared = #tile}  scf.yield %0 }
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.mlir import dialect
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.transform_step import TransformStep
from lego_mlir.mlir.tiles.accesses import Tile, tile_of
from lego_mlir.mlir.tiles.structure import operands_of

INDEX_SWITCH = "scf.index_switch"
"""The operation that selects a tile among several."""

_SHAPE = (
    "a loop over k that loads a tile of A and one of B, each with the attribute 'shared', and "
    "contracts them in one vector.contract"
)


@dataclass(frozen=True, slots=True)
class LoadedOperand:
    """An operand of the contraction: a lego.load, or an scf.index_switch that selects one.

    Attributes:
        value: the operand.
        tiles: the loads, which have the same shared-memory layout.
    """

    value: Any
    tiles: tuple[Tile, ...]

    @property
    def op(self) -> Any:
        """The load or the switch."""
        return self.value.owner.operation

    @property
    def is_switch(self) -> bool:
        """Whether it selects among several loads."""
        return bool(self.op.name == INDEX_SWITCH)

    @property
    def used_values(self) -> list[Any]:
        """The values that it uses."""
        return operands_of(self.op)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the tile."""
        return self.tiles[0].shape

    @property
    def element(self) -> Any:
        """The type of an element."""
        return self.tiles[0].element


@dataclass(frozen=True, slots=True)
class MainLoop:
    """A main loop.

    Attributes:
        loop: the scf.for over K.
        contract: the vector.contract in it.
        a: operand A.
        b: operand B.
        warps: the layout of the warps over the output tile.
    """

    loop: Any
    contract: Any
    a: LoadedOperand
    b: LoadedOperand
    warps: Layout

    @property
    def warp_count(self) -> int:
        """The number of warps that compute the tile."""
        return prod(n for n in self.warps.dims if isinstance(n, int))

    def shared_layout(self, operand: LoadedOperand, layouts: Layouts) -> Layout:
        """Return an operand's shared-memory layout."""
        load = operand.tiles[0].op
        return layouts(load.attributes[dialect.SHARED], load.location)


def find_main_loop(step: TransformStep, launch: Any) -> MainLoop:
    """Return the main loop of a kernel.

    Raises:
        LegoError: the kernel has no loop of this form, or several contractions.
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
    if loop.parent.name == "scf.for":
        raise step.error(
            f"looked for {_SHAPE}; found it in another loop",
            loop,
            hint="CTAs that compute several tiles are kernels on tiles: --schedule=persistent",
        )
    operands = []
    for value, name in zip(list(contract.operands)[:2], "AB", strict=True):
        operand = _loaded_operand(step, value, f"looked for {_SHAPE}; {name}", contract)
        if operand.op.parent != loop:
            raise step.error(
                f"looked for {_SHAPE}; {name} is loaded outside of the loop", operand.op
            )
        operands.append(operand)
    if dialect.WARPS not in contract.attributes:
        raise step.error(
            f"the vector.contract has no {dialect.WARPS}",
            contract,
            hint=f'give the layout of warps over the tile: {dialect.WARPS} = #lego.layout<"...">',
        )
    warps = step.pass_context.layouts(contract.attributes[dialect.WARPS], contract.location)
    return MainLoop(loop, contract, operands[0], operands[1], warps)


def _loaded_operand(step: TransformStep, value: Any, what: str, contract: Any) -> LoadedOperand:
    """Return the loads of an operand."""
    op = None if _is_argument(value) else value.owner.operation
    if op is not None and op.name == INDEX_SWITCH:
        ends = [list(region.blocks[0].operations)[-1].operation for region in op.regions]
        values = [end.operands[list(op.results).index(value)] for end in ends]
    else:
        values = [value]
    tiles = []
    for one in values:
        load = None if _is_argument(one) else one.owner.operation
        if load is None or load.name != dialect.LOAD or dialect.SHARED not in load.attributes:
            found = "an argument" if load is None else f"'{load.name}'"
            raise step.error(f"{what} is {found}", contract)
        if load.attributes[dialect.SHARED] != values[0].owner.attributes[dialect.SHARED]:
            raise step.error(
                f"{what} has two layouts in shared memory",
                load,
                hint="give the tiles that a kernel selects among the same shared-memory layout",
            )
        tiles.append(tile_of(load, step.pass_context))
    return LoadedOperand(value, tuple(tiles))


def _is_argument(value: Any) -> bool:
    return not hasattr(value.owner, "operation") or hasattr(value, "arg_number")
