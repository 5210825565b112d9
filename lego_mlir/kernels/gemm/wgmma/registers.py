"""The registers of a `wgmma` GEMM: what producer and consumers get, and the tiles that fit."""

from __future__ import annotations

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.dtypes import ELEMENT_BYTES
from lego_mlir.hardware.limits import WARPGROUP_THREADS, WGMMA_ROWS

SETMAXNREG = {1: (0, 0), 2: (40, 232), 3: (32, 160)}
"""Registers of a producer thread and of a consumer thread, by the number of consumers; 0 leaves
them as they are."""

COPYING_SETMAXNREG = {1: (0, 0), 2: (104, 200), 3: (80, 144)}
"""The same where producer threads copy tiles, which need registers for addresses, and for elements
that they load all at the same time."""

MORE_COPYING_SETMAXNREG = (128, 240)
"""The same of two warpgroups that copy tiles beside one consumer."""

MAX_RESULT_REGISTERS = {1: 228, 2: 204, 3: 132}
"""By the number of consumers, registers of a consumer thread for accumulators, a second accumulator
if they are promoted, and a result whose store is overlapped: what assembles without spills and
without serialized wgmmas (ptxas 13, C7512). The most columns, by the rows of a consumer:

    consumers, rows      plain       overlapped, f16   promoted
    1        64 / 128    256 / 224   256 / 152         224 / 104
             192 / 256   152 / 112   96 / 72           64 / 40
    2        64 / 128    256 / 200   256 / 136         200 / 88
             192 / 256   136 / 96    88 / 64           56 / 32
    3        64 / 128    200 / 128   176 / 88          128 / 56
             192         88          56                32
"""

_BLOCK_REGISTERS = 16
"""Registers that promotion needs for each block of 64 rows of a consumer but the first."""

_EPILOGUE_ACCUMULATORS = {
    "values": ({1: 168, 2: 120, 3: 96}, {1: 144, 2: 128, 3: 80}),
    "tiles": ({1: 112, 2: 104, 3: 72}, {1: 120, 2: 96, 3: 56}),
}
"""By the number of consumers, accumulators of a thread if an epilogue computes with them, stored at
once or overlapped: what assembled without spills for gelu and an added row (`values`), and for
these with an added matrix (`tiles`), whose elements a thread loads all at the same time."""

_MAX_COLUMNS = {1: 256, 2: 256, 3: 200}
"""By the number of consumers, columns of a tile. The assembler gives each thread of three consumers
and a producer 128 registers, and a wgmma of more columns has too many operands (C7602)."""


def check_tile(
    config: object,
    consumer_tile: tuple[int, int],
    consumers: int,
    *,
    is_promoted: bool,
    overlapped_bytes: int,
) -> None:
    """Check that consumer threads have registers for a tile.

    Args:
        config: the config, for the message.
        consumer_tile: rows and columns of a consumer warpgroup.
        consumers: the consumer warpgroups of a CTA.
        is_promoted: whether there is a second accumulator.
        overlapped_bytes: bytes of an element of a result whose store is overlapped; 0 for none.

    Raises:
        LegoError: they have not.
    """
    rows, columns = consumer_tile
    if columns > _MAX_COLUMNS[consumers]:
        raise LegoError(
            f"{config}: with {consumers} consumers a tile has at most {_MAX_COLUMNS[consumers]} "
            "columns",
            hint="fewer consumers, or fewer columns",
        )
    count = needed = rows * columns // WARPGROUP_THREADS
    also = ""
    if is_promoted:
        needed += count + _BLOCK_REGISTERS * (rows // WGMMA_ROWS - 1)
        also = ", which are promoted"
    if overlapped_bytes:
        needed += count * overlapped_bytes // ELEMENT_BYTES["f32"]
        also = " and a result whose store is overlapped"
    most = MAX_RESULT_REGISTERS[consumers]
    if needed > most:
        raise LegoError(
            f"{config}: a thread has {count} accumulators{also}: {needed} registers, more than "
            f"{most}",
            hint="more consumers, or a smaller tile",
        )


def has_epilogue_registers(
    consumer_tile: tuple[int, int],
    consumers: int,
    *,
    is_overlapped: bool,
    loads_tiles: bool,
) -> bool:
    """Return whether consumer threads have registers for an epilogue of the usual size.

    Args:
        consumer_tile: rows and columns of a consumer warpgroup.
        consumers: the consumer warpgroups of a CTA.
        is_overlapped: whether the result's store is overlapped.
        loads_tiles: whether the epilogue loads tiles of matrices of C's size.
    """
    rows, columns = consumer_tile
    limits = _EPILOGUE_ACCUMULATORS["tiles" if loads_tiles else "values"][is_overlapped]
    return rows * columns // WARPGROUP_THREADS <= limits[consumers]
