"""An interpreter of conversion plans on arrays: what hardware would do, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from lego_mlir.analysis.distributed import Conversion, DistributedLayout
from lego_mlir.analysis.distributed.conversions.memory_layouts import owning_cta

EMPTY = -1
"""What a register holds before anything is written to it."""


def registers_of(layout: DistributedLayout, values: np.ndarray) -> np.ndarray:
    """Return what the registers of a layout hold: (ctas, warps, 32, registers)."""
    return np.asarray(values).reshape(-1)[layout.elements()]


def run(plan: Conversion, held: np.ndarray) -> np.ndarray:
    """Return the target's registers after a conversion of the source's."""
    if plan.registers is not None:
        return held[..., list(plan.registers)]
    found = np.full(plan.target.sizes, EMPTY, held.dtype)
    cta, warp, lane = np.indices(plan.target.sizes[:3])
    if plan.exchange is not None:
        for shuffles in plan.exchange.rounds:
            other = shuffles.lane.at(cta, warp, lane)
            assert ((other >= 0) & (other < 32)).all()
            for word in shuffles.words:
                for sent, received in zip(word.sent, word.received, strict=True):
                    # Every lane supplies one register; every lane reads one lane's.
                    supplied = held[cta, warp, lane, sent.at(cta, warp, lane)]
                    values = supplied[cta, warp, other]
                    for copy in received:
                        found[cta, warp, lane, copy.at(cta, warp, lane)] = values
        return found
    assert plan.shared is not None
    return _through_memory(plan, held, found)


def _through_memory(plan: Conversion, held: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Store vectors at the address of their first element, and load them likewise."""
    assert plan.shared is not None
    memory = plan.shared.memory
    buffers = np.full((plan.source.ctas, memory.elements), EMPTY, held.dtype)

    def addresses(layout: DistributedLayout, vector: tuple[int, ...]) -> tuple[Any, Any]:
        part, offset = memory.offsets[:, layout.elements()[..., vector[0]]]
        assert (offset % len(vector) == 0).all()
        return part, offset[..., None] + np.arange(len(vector))

    cta = np.arange(plan.source.ctas)[:, None, None, None]
    for vector in plan.shared.store.vectors:
        _, at = addresses(plan.source, vector)
        buffers[cta, at] = held[..., list(vector)]
    for vector in plan.shared.load.vectors:
        part, at = addresses(plan.target, vector)
        owner = owning_cta(plan.source, part, cta[..., 0])
        found[..., list(vector)] = buffers[owner[..., None], at]
    return found
