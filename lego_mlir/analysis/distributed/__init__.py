"""Distributed layouts: where a tile's elements lie among CTAs, warps, lanes and registers.

A tile is a value, and its distributed layout is part of its type. It is a bijection between
(element, replica) and (CTA, warp, lane, register), held as a table of size factors of any size.
Here are the tables, those that instructions have, and views of them. No MLIR here: passes read and
write these layouts as text. Linear layouts over F2, which swizzles need, are in `analysis.linear`.
"""

from lego_mlir.analysis.distributed.blocked import blocked, coalesced, replicated
from lego_mlir.analysis.distributed.conversions.plan import (
    Conversion,
    Cost,
    Road,
    estimate_conversion,
    plan_conversion,
    road_of,
)
from lego_mlir.analysis.distributed.f2 import from_linear, to_linear
from lego_mlir.analysis.distributed.factors import REPLICA, Factor, Place, replicas
from lego_mlir.analysis.distributed.layout import DistributedLayout, Element, Position
from lego_mlir.analysis.distributed.reduction import Reduction, plan_reduction
from lego_mlir.analysis.distributed.scan import Scan, plan_scan
from lego_mlir.analysis.distributed.sort import Sort, plan_sort
from lego_mlir.analysis.distributed.tensor_cores import (
    mma_accumulator,
    mma_operand_a,
    mma_operand_b,
    wgmma_accumulator,
    wgmma_operand_a,
)
from lego_mlir.analysis.distributed.text import from_layout
from lego_mlir.analysis.distributed.views import (
    block,
    broadcast,
    broadcast_registers,
    joined,
    reduced,
    reshaped,
    sliced,
    split,
    squeezed,
    transposed,
    unsqueezed,
)

__all__ = [
    "REPLICA",
    "Conversion",
    "Cost",
    "DistributedLayout",
    "Element",
    "Factor",
    "Place",
    "Position",
    "Reduction",
    "Road",
    "Scan",
    "Sort",
    "block",
    "blocked",
    "broadcast",
    "broadcast_registers",
    "coalesced",
    "estimate_conversion",
    "from_layout",
    "from_linear",
    "joined",
    "mma_accumulator",
    "mma_operand_a",
    "mma_operand_b",
    "plan_conversion",
    "plan_reduction",
    "plan_scan",
    "plan_sort",
    "reduced",
    "replicas",
    "replicated",
    "reshaped",
    "road_of",
    "sliced",
    "split",
    "squeezed",
    "to_linear",
    "transposed",
    "unsqueezed",
    "wgmma_accumulator",
    "wgmma_operand_a",
]
