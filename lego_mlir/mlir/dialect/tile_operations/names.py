"""Names of the operations on tiles, and of their attributes."""

from __future__ import annotations

from typing import Literal, TypeAlias

GATHER = "lego.gather"
SCATTER = "lego.scatter"
FULL = "lego.full"
ITEM = "lego.item"
VOTE = "lego.vote"
IOTA = "lego.iota"
IN_RANGE = "lego.in_range"
RESTRICT = "lego.restrict"
FILL = "lego.fill"
BROADCAST = "lego.broadcast"
RESHAPE = "lego.reshape"
TRANSPOSE = "lego.transpose"
JOIN = "lego.join"
SPLIT = "lego.split"
CONVERT = "lego.convert"
EXTRACT_PART = "lego.extract_part"
EXTRACT_SLICE = "lego.extract_slice"
REDUCE = "lego.reduce"
REDUCE_WITH = "lego.reduce_with"
REDUCE_SCATTER = "lego.reduce_scatter"
SCAN = "lego.scan"
SCAN_WITH = "lego.scan_with"
SORT_WITH = "lego.sort_with"
DOT = "lego.dot"
TAKE = "lego.take"
LOAD_PARTS = "lego.load_parts"
COPY_PARTS = "lego.copy_parts"
COPY_BOX = "lego.copy_box"
STORE_PARTS = "lego.store_parts"
SEND_PARTS = "lego.send_parts"
LOAD_MATRICES = "lego.load_matrices"
STORE_MATRICES = "lego.store_matrices"
MATRIX_DESCRIPTOR = "lego.matrix_descriptor"
END_READS = "lego.end_reads"

INSTRUCTION = "instruction"
"""On a lego.dot: what multiplies, one of `DOT_INSTRUCTIONS`."""

DotInstruction: TypeAlias = Literal["wgmma", "mma.sync"]
DOT_INSTRUCTIONS: tuple[DotInstruction, ...] = ("wgmma", "mma.sync")

ORDER = "order"
OFFSETS = "offsets"
DIM = "dim"
SIZE = "size"
KIND = "kind"
EXCLUSIVE = "exclusive"
REVERSE = "reverse"
IDENTITY = "identity"
VALUE = "value"
WORD = "word"
REGISTERS = "registers"
TARGET = "target"
TARGET_REGISTERS = "target_registers"
"""On a copy_parts: the layout and the register factors of the memory that is written."""

TARGET_SLICE = "target_slice"
"""On a copy_box: the dimensions of the target that are copied whole."""

IN_BOUNDS = "in_bounds"
"""A unit attribute of an access of parts: no element lies past the end of a dimension."""

SCATTER_NUMBER = "scatter"
"""On a store_parts: which lego.scatter of the kernel it is a part of. Of the elements that one
scatter stores at one index any one stays, so its parts are made in any order."""

MATRICES = "matrices"
TRANSPOSED = "transposed"
"""A unit attribute: the instruction transposes each matrix."""

KINDS = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "xor")
"""What a reduction or scan combines by."""

MOST_COMBINED = 4
"""The most tiles that a lego.reduce_with, scan_with or sort_with combines together."""

DIVISOR = "divisor"
OPERAND_SEGMENTS = "operandSegmentSizes"
RESULT_SEGMENTS = "resultSegmentSizes"

LAYOUT = "layout"

ARRIVES = "arrives"
"""A unit attribute of a lego.send_parts: the thread arrives at the mbarrier behind its stores."""
