"""Special registers. Source: PTX ISA 10.

The clocks count executed instructions: the simulator has no time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.hardware.limits import HOPPER_SMS
from lego_mlir.sim.ptx.types import PRED, TYPES, Array, Type

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

_U32, _U64 = TYPES["u32"], TYPES["u64"]
_ONE = np.uint32(1)


def _lanes(name: str, make: Callable[[Wave], Array]) -> Callable[[Wave], Array]:
    """Return a special register's reader that is computed once for each wave."""

    def read(w: Wave) -> Array:
        found = w.specials.get(name)
        if found is None:
            found = w.specials[name] = make(w)
        return found

    return read


def _thread(axis: int) -> Callable[[Wave], Array]:
    def make(w: Wave) -> Array:
        x, y, _ = w.launch.block
        t = w.thread_of_lane
        return (t % x, t // x % y, t // (x * y))[axis].astype(np.uint32)

    return make


def _block(axis: int) -> Callable[[Wave], Array]:
    def make(w: Wave) -> Array:
        x, y, _ = w.launch.grid
        b = w.cta_of_lane if len(w.ctas) > 1 else w.ctas
        return (b % x, b // x % y, b // (x * y))[axis].astype(np.uint32)

    return make


def _cluster(axis: int) -> Callable[[Wave], Array]:
    """Return the linear id of each lane's cluster in the grid."""

    def make(w: Wave) -> Array:
        return _block(axis)(w) // np.uint32(w.launch.cluster[axis])

    return make


def _in_cluster(axis: int) -> Callable[[Wave], Array]:
    """Return the rank of each lane's CTA in its cluster."""

    def make(w: Wave) -> Array:
        return _block(axis)(w) % np.uint32(w.launch.cluster[axis])

    return make


def _clusters(axis: int) -> Callable[[Wave], Array]:
    return lambda w: np.array([w.launch.grid[axis] // w.launch.cluster[axis]], np.uint32)


def _size(of: str, axis: int) -> Callable[[Wave], Array]:
    return lambda w: np.array([getattr(w.launch, of)[axis]], np.uint32)


def _lane(w: Wave) -> Array:
    return (w.thread_of_lane % 32).astype(np.uint32)


def _bit(w: Wave) -> Array:
    return _ONE << _lane(w)


def _clock(dtype: type[np.generic], shift: int = 0) -> Callable[[Wave], Array]:
    return lambda w: np.array([(w.executed >> shift) % (1 << 8 * np.dtype(dtype).itemsize)], dtype)


def _constant(value: int, dtype: type[np.generic] = np.uint32) -> Callable[[Wave], Array]:
    fixed = np.array([value], dtype)
    return lambda w: fixed


def _multiprocessor(w: Wave) -> Array:
    """Return a multiprocessor for each lane: CTAs go to them in turn."""
    found: Array = w.cta_of_lane % HOPPER_SMS
    return found.astype(np.uint32)


_MAKERS: dict[str, Callable[[Wave], Array]] = {
    **{f"%tid.{c}": _thread(i) for i, c in enumerate("xyz")},
    **{f"%ctaid.{c}": _block(i) for i, c in enumerate("xyz")},
    **{f"%ntid.{c}": _size("block", i) for i, c in enumerate("xyz")},
    **{f"%nctaid.{c}": _size("grid", i) for i, c in enumerate("xyz")},
    **{f"%clusterid.{c}": _cluster(i) for i, c in enumerate("xyz")},
    **{f"%cluster_ctaid.{c}": _in_cluster(i) for i, c in enumerate("xyz")},
    **{f"%nclusterid.{c}": _clusters(i) for i, c in enumerate("xyz")},
    **{f"%cluster_nctaid.{c}": _size("cluster", i) for i, c in enumerate("xyz")},
    "%cluster_ctarank": lambda w: (w.cta_index_of_lane % w.cluster_size).astype(np.uint32),
    "%cluster_nctarank": lambda w: np.array([w.cluster_size], np.uint32),
    "%laneid": _lane,
    "%warpid": lambda w: (w.thread_of_lane // 32).astype(np.uint32),
    "%nwarpid": lambda w: np.array([-(-w.threads // 32)], np.uint32),
    "%lanemask_eq": _bit,
    "%lanemask_lt": lambda w: _bit(w) - _ONE,
    "%lanemask_le": lambda w: (_bit(w) - _ONE) | _bit(w),
    "%lanemask_gt": lambda w: ~((_bit(w) - _ONE) | _bit(w)),
    "%lanemask_ge": lambda w: ~(_bit(w) - _ONE),
    "%smid": _multiprocessor,
    "%nsmid": _constant(HOPPER_SMS),
    "%aggr_smem_size": lambda w: np.array([w.launch.shared], np.uint32),
    "%dynamic_smem_size": lambda w: np.array([w.launch.dynamic_shared], np.uint32),
    "%total_smem_size": lambda w: np.array([w.launch.shared], np.uint32),
}

SPECIAL: dict[str, tuple[Type, Callable[[Wave], Array]]] = {
    **{name: (_U32, _lanes(name, make)) for name, make in _MAKERS.items()},
    "%is_explicit_cluster": (PRED, lambda w: np.array([w.launch.clustered])),
    "%clock": (_U32, _clock(np.uint32)),
    "%clock_hi": (_U32, _clock(np.uint32, 32)),
    "%clock64": (_U64, _clock(np.uint64)),
    # Nanoseconds: an instruction takes one.
    "%globaltimer": (_U64, _clock(np.uint64)),
    "%globaltimer_lo": (_U32, _clock(np.uint32)),
    "%globaltimer_hi": (_U32, _clock(np.uint32, 32)),
    # There is one grid, no graph, and no driver or profiler that sets the others.
    "%gridid": (_U64, _constant(1, np.uint64)),
    "%current_graph_exec": (_U64, _constant(0, np.uint64)),
    **{f"%envreg{n}": (_U32, _constant(0)) for n in range(32)},
    **{f"%pm{n}": (_U32, _constant(0)) for n in range(8)},
    **{f"%pm{n}_64": (_U64, _constant(0, np.uint64)) for n in range(8)},
    **{
        f"%reserved_smem_offset_{word}": (_U32, _constant(0))
        for word in ("begin", "end", "cap", "0", "1")
    },
}
"""Name → its type and the function that reads it in all lanes of a wave."""
