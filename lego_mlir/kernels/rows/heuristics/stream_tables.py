"""How rows of many lengths pass through shared memory, as was measured on an H200.

The files bench/results/rows_streams.jsonl, rows_pieces.jsonl, rows_larger_pieces.jsonl,
rows_refilled.jsonl, rows_filled.jsonl, and rows_gradients.jsonl have the numbers. The larger pieces
are, the fewer operations a kernel has, and the sooner it is compiled.
"""

from __future__ import annotations

from typing import NamedTuple


class Stream(NamedTuple):
    """Which rows pass through shared memory, and how.

    Attributes:
        beyond: bytes of the longest row that does not.
        held: bytes of a row that a thread reads.
        piece: vectors of a thread in a piece.
        warps: of a CTA.
        masked: as `RowsConfig` has it: whether the compiler keeps the memory busier so.
        most: bytes of a row that a thread reads where half as many CTAs have it so, in two stages;
            with `fits`, those of fewer warps' threads.
        stages: iterations whose rows are in shared memory; 0 for rows in the registers of CTAs that
            have one each, many of them at once.
        per_sm: CTAs of a multiprocessor, which has registers for them; 0 for as many as have 16
            warps together, if they find registers. Where it has shared memory for fewer of them,
            that bounds the registers of a thread only.
        refilled: whether each piece has stages of its own, as `RowsConfig.ring_bytes` has it.
        short: as `RowsConfig` has it: whether registers are short.
        exact: whether that is of rows that pieces of one vector divide; others have such pieces, of
            one CTA of a multiprocessor, `refilled` and `short`: they have masks, too.
        fits: the fewest warps that may have rows, if these fill their pieces better; 0 for `warps`.
        rows: the fewest rows of a matrix that are streamed so: sums of more CTAs cost time, too.
    """

    beyond: int
    held: int = 64
    piece: int = 1
    warps: int = 16
    masked: bool = False
    most: int = 0
    stages: int = 3
    per_sm: int = 0
    refilled: bool = False
    short: bool = False
    exact: bool = False
    fits: int = 0
    rows: int = 0


STREAMS: dict[tuple[int, int, bool], tuple[Stream, ...]] = {
    (0, 1, False): (
        Stream(262144, 128, 4, most=160, refilled=True),
        Stream(131072, 128, 4, most=160, stages=2),
        Stream(65536, 128, 8, 4, stages=0, per_sm=5),
    ),
    (1, 1, False): (Stream(65536, 128, 4),),
    (2, 1, False): (
        Stream(262144, 160, 2, 8, per_sm=1, refilled=True),
        Stream(131072, piece=4),
        Stream(122880),
        Stream(65536, stages=4),
        Stream(32768, piece=2, masked=True, stages=4),
    ),
    (0, 2, False): (
        Stream(131072, piece=4),
        Stream(65536, 64, 4, 4, stages=0, per_sm=4),
    ),
    (1, 2, False): (Stream(65536),),
    (2, 2, False): (Stream(32768),),
    (1, 1, True): (
        Stream(524288, 128, 4, refilled=True),
        Stream(262144, piece=4, refilled=True),
    ),
    (2, 1, True): (
        Stream(655360, 128, 4, refilled=True),
        Stream(524288, 160, 2, 8, per_sm=1, refilled=True),
        Stream(393216, 160, 4, 8, per_sm=1, refilled=True),
        Stream(131072, piece=4),
        Stream(65536, 128, 2, 4, stages=0, per_sm=4),
    ),
}
"""By how many inputs belong to columns, how many to elements, and whether these have 4 bytes."""

FILLED, UNFILLED = Stream(32768, 128, 1, 8, stages=2, per_sm=2, fits=5), 8
"""Two CTAs of a multiprocessor, of as many warps as a row fills; and one in how many columns of the
pieces of others may have no elements, or rows are streamed so."""

ALONE = Stream(327680, 256, 1, 8, most=320, per_sm=1, fits=6)
"""One CTA of a multiprocessor, whose threads have so many registers that half as many CTAs have a
row as of `FILLED`: clusters of 16 leave multiprocessors idle."""

STREAMS_BETWEEN: dict[tuple[int, int, bool], tuple[Stream, ...]] = {
    (0, 1, False): (
        ALONE._replace(beyond=376832),
        FILLED._replace(beyond=229376, held=184),
        STREAMS[0, 1, False][1]._replace(beyond=196608),
        Stream(131072, 192, 1, 4, stages=0),
        STREAMS[0, 1, False][2],
        Stream(32768, 112, 2, 8, stages=0, fits=5),
    ),
    (0, 1, True): (
        Stream(819200, 320, 1, 8, stages=0, per_sm=1),
        Stream(524288, 320, 1, 5, stages=0, per_sm=1, fits=3),
    ),
    (1, 1, False): (
        Stream(262144, 128, 4, stages=2, refilled=True),
        Stream(131072, 128, 1, 8, per_sm=1, refilled=True),
        FILLED._replace(beyond=65536),
    ),
    (2, 1, False): (
        ALONE,
        Stream(245760, 160, 2, 8, per_sm=1),
        FILLED._replace(beyond=196608),
        ALONE._replace(beyond=131072),
        FILLED,
    ),
    (2, 1, True): (
        *STREAMS[2, 1, True][:-2],
        ALONE._replace(beyond=344064, stages=2),
        STREAMS[2, 1, True][-2]._replace(beyond=212992),
        ALONE._replace(beyond=131072, stages=2, fits=5),
        FILLED._replace(beyond=65536),
    ),
}
"""Of rows that are no power of two, which many threads divide badly."""

FOLLOWED = {
    1: (Stream(65536, 128), Stream(49152, 256, warps=8, stages=2)),
    2: (Stream(98304), Stream(49152, 96, 4, stages=2)),
}
"""Of short elements where a second statistic follows, and one input belongs to columns, by how many
belong to elements."""

SUMS: dict[tuple[int, bool], tuple[Stream, ...]] = {
    (1, False): (
        Stream(262144, piece=2, stages=2, refilled=True),
        Stream(65536, piece=2),
        Stream(16384, masked=True),
    ),
    (1, True): (
        Stream(524288, 128, 2, stages=2, refilled=True),
        Stream(262144, piece=2, stages=2, refilled=True),
        Stream(16384, piece=4),
    ),
    (2, False): (
        Stream(65536, 128, warps=8),
        Stream(32768, 128, 2, warps=8),
        Stream(16384, 128, 8, warps=8),
        Stream(8192, 128, 8, warps=4, per_sm=2),
        Stream(4096, warps=4, per_sm=3, rows=4096),
    ),
    (2, True): (
        Stream(524288, 256, warps=8, stages=2, per_sm=1, refilled=True),
        Stream(262144, stages=2, refilled=True),
        Stream(131072, masked=True),
        Stream(65536, 128, 8, 8, per_sm=2),
        Stream(16384, 64, 4, 8, per_sm=2),
    ),
}
"""By how many outputs are sums of columns, and whether elements have 4 bytes. Two sums of the
columns of shorter elements want all registers: of few threads, whose addresses take fewer."""

SUMS_BETWEEN: dict[tuple[int, bool], tuple[Stream, ...]] = {
    (1, False): (
        Stream(262144, 160, 2, 8, per_sm=1, refilled=True, short=True),
        Stream(237568, piece=2),
        Stream(131072, refilled=True),
        Stream(90112, piece=2),
        Stream(65536, refilled=True),
        Stream(8192, 128, warps=4, per_sm=2),
        Stream(4096, warps=4, per_sm=3),
    ),
    (1, True): (
        Stream(524288, 128, stages=2, refilled=True),
        Stream(262144, piece=2, most=80, refilled=True),
        Stream(204800, piece=2),
        Stream(131072, refilled=True),
        Stream(90112, piece=2),
        Stream(65536, refilled=True),
        Stream(21504, 128, warps=8, per_sm=1),
        Stream(16384, 128, warps=8, per_sm=1, refilled=True),
        Stream(8192, 128, warps=4, per_sm=2),
    ),
    (2, False): (
        Stream(65536, 128, warps=8, per_sm=1, refilled=True, short=True),
        Stream(22528, 128, 2, warps=8, exact=True),
        Stream(16384, 128, 2, warps=8),
        Stream(10752, 128, warps=4, per_sm=2),
        Stream(8192, 128, warps=4, per_sm=2, refilled=True),
        Stream(4096, warps=4, per_sm=3),
    ),
    (2, True): (
        Stream(786432, 256, warps=8, stages=2, per_sm=1, refilled=True),
        Stream(524288, 256, 2, 8, stages=2, per_sm=1, refilled=True),
        Stream(262144, piece=2, most=80, refilled=True),
        Stream(204800, masked=True),
        Stream(131072, refilled=True),
        Stream(90112, 128, warps=8, per_sm=1),
        Stream(65536, 128, warps=8, per_sm=1, refilled=True),
        Stream(21504, 128, warps=8, per_sm=1),
        Stream(16384, 128, warps=8, per_sm=1, refilled=True),
        Stream(8192, 128, warps=4, per_sm=2),
    ),
}
"""Of rows that are no power of two, which many threads divide badly. Where threads have few bytes
of a row, stages that are filled one by one keep the memory busy."""

OPEN_SUMS: dict[tuple[int, bool], tuple[Stream, ...]] = {
    (1, False): (Stream(65536, piece=2), Stream(16384, masked=True)),
    (1, True): (Stream(16384, piece=2),),
    (2, False): (
        Stream(24576, warps=8),
        Stream(16384, 128, 2, warps=8),
        Stream(8192, warps=8),
    ),
    (2, True): (
        Stream(131072, masked=True),
        Stream(65536, 128, warps=8, per_sm=1),
        Stream(16384, 64, 4, 8, per_sm=2),
    ),
}
"""Of rows whose length only the launch knows: where masks take registers, too, and sums want them
all, a thread has at most three quarters of what it has of known rows
(bench/results/rows_open.jsonl)."""

IN_WORDS = {1: (Stream(0, 256, warps=8, stages=2),), 2: (Stream(0, 128, stages=2),)}
"""By how many inputs belong to elements, of rows that begin anywhere in a vector."""

IN_WORDS_COLUMNS: dict[bool, tuple[Stream, ...]] = {
    False: (
        Stream(131072, 256, warps=8, stages=2, per_sm=1),
        Stream(16384, 224, warps=4, stages=2, per_sm=2),
        Stream(0, 128, warps=4, stages=2, per_sm=6),
    ),
    True: (
        Stream(114688, 128, stages=2),
        Stream(57344, 112, warps=8, stages=2, per_sm=2),
        Stream(0, 128, stages=2),
    ),
}
"""Of such rows with inputs that belong to columns, by whether elements have 4 bytes."""

IN_WORDS_SUMS: dict[tuple[int, bool], tuple[Stream, ...]] = {
    (1, False): (
        Stream(65536, 128, warps=8, per_sm=1),
        Stream(49152, 128, warps=8, stages=2, per_sm=1),
        Stream(16384, 192, warps=4, stages=2, per_sm=2),
        Stream(8192, 128, warps=4, per_sm=2),
        Stream(0, 128, warps=4, per_sm=3),
    ),
    (2, False): (
        Stream(229376, warps=8, stages=4, per_sm=1, refilled=True),
        Stream(65536, 128, warps=8, per_sm=1),
        Stream(12288, 112, warps=4, stages=2, per_sm=2),
        Stream(8192, 96, warps=4, per_sm=2),
        Stream(0, 128, warps=4, per_sm=3),
    ),
    (1, True): (Stream(0, 224, warps=8, stages=2, per_sm=1),),
    (2, True): (Stream(0, 224, warps=8, stages=2, per_sm=1),),
}
"""Of such rows, by how many outputs are sums of columns, and whether elements have 4 bytes. Three
CTAs of a multiprocessor spill registers from 4,097 columns on (bench/results/rows_gradients.jsonl).
"""
