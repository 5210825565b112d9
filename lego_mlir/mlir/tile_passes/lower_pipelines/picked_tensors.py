"""The tensors that an access of a tile may be of: one, or those from which a kernel picks.

    %t = "lego.pick"(%which, %a, %b)
    %M = "lego.table"(%which) {values = array<i64: 512, 64>}
    "lego.copy_async"(%ring, %n, %t, %i, %j, %M) {layout = #A, ...}

is of %a, where M is 512, or of %b, where M is 64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.lowering.buffers import sources_of
from lego_mlir.mlir.lowering.lower_tables import checked_table_values
from lego_mlir.mlir.tile_ir.kernels import TileKernel
from lego_mlir.mlir.tile_ir.open_sizes import sizes_of


@dataclass(frozen=True)
class PickedTensors:
    """The tensors of an access.

    Attributes:
        number: of the tensor, an index; `None` if there is one.
        tensors: the buffer of each, and its layout.
    """

    number: Any
    tensors: tuple[tuple[Any, Layout], ...]


def tensors_of(kernel: TileKernel, access: Any) -> PickedTensors:
    """Return the tensors of an access of a tile.

    Args:
        kernel: the kernel.
        access: a lego.load, lego.store or lego.copy_async.

    Raises:
        LegoError: the size of a tensor among several is from no table.
    """
    (buffer,) = [x for x in access.operands if isinstance(x.type, ir.MemRefType)]
    layout = kernel.layouts.of(access)
    if not dialect.made_by(buffer, dialect.PICK):
        return PickedTensors(None, ((buffer, layout),))
    number, *picked = list(buffer.owner.operands)
    sizes = {
        symbol.name: _numbers(kernel, symbol.name, value, number)
        for symbol, value in sizes_of(access, layout).items()
    }
    found = []
    for k, one in enumerate(picked):
        (source,) = sources_of(one)
        found.append((source, layout.bind(**{name: values[k] for name, values in sizes.items()})))
    return PickedTensors(number, tuple(found))


def _numbers(kernel: TileKernel, name: str, value: Any, number: Any) -> tuple[int, ...]:
    """Return a size of each tensor.

    Raises:
        LegoError: it is from no table at the number of the tensor.
    """
    if not dialect.made_by(value, dialect.TABLE) or value.owner.operands[0] != number:
        raise LegoError(
            f"TMA needs tensors of constant sizes, and {name} is from no table",
            hint='a "lego.table" at the number of the tensor that "lego.pick" picks',
        )
    return checked_table_values(value.owner, kernel.source)
