"""One small product of every way to compute one: for the simulator, and for compute-sanitizer.

See README.md, "Races and stray accesses".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.cases import Case
from bench.gemm.cases import OUTPUTS, layout_of
from bench.gemm.groups import Groups
from bench.gemm.product import Product
from bench.movement import Order

if TYPE_CHECKING:
    from lego_mlir import Kernel


@dataclass(frozen=True, slots=True)
class Small:
    """A small product, divided in a way of its own.

    Attributes:
        sizes: m, n and k.
        dtype: element type of A and B.
        orders: where the elements of A, B and C lie.
        division: the fields of a `WgmmaConfig`; empty for the schedule `hmma`, which then has the
            library's choice.
        promote: as `lego_mlir.kernels.gemm.matmul` takes it.
    """

    sizes: tuple[int, int, int]
    dtype: str = "f16"
    orders: tuple[Order, Order, Order] = ("row", "row", "row")
    division: dict[str, Any] = field(default_factory=dict)
    promote: int = 0

    @property
    def reference(self) -> Product:
        """What it must give."""
        return Product(*self.sizes, self.dtype, OUTPUTS[self.dtype], *self.orders)

    def make(self, target: str) -> Kernel:
        """The kernel."""
        from lego_mlir.kernels import matmul
        from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

        (m, n, k), (a, b, c) = self.sizes, self.orders
        kernel: Kernel = matmul(
            *self.sizes,
            self.dtype,
            out=OUTPUTS[self.dtype],
            a=layout_of(a, m, k),
            b=layout_of(b, k, n),
            c=layout_of(c, m, n),
            config=WgmmaConfig(**self.division) if self.division else None,
            schedule=None if self.division else "hmma",
            target=target,
            promote=self.promote,
        )
        return kernel


def _divided(
    tile: tuple[int, int, int] = (64, 64, 64), consumers: int = 1, stages: int = 3, **more: Any
) -> dict[str, Any]:
    """The fields of a `WgmmaConfig`."""
    return {"tile": tile, "consumers": consumers, "stages": stages, **more}


_NT: tuple[Order, Order, Order] = ("row", "col", "row")
_BYTES = (64, 64, 128)
"""A tile of elements of a byte."""

SMALL = {
    "one_wave": Small((128, 128, 320), division=_divided(one_cta_per_sm=True)),
    "narrow": Small((64, 64, 320), division=_divided((64, 16, 64))),
    "swap_ab": Small((16, 256, 256), division=_divided((64, 16, 64), swap_ab=True)),
    "columns": Small((128, 136, 200), orders=("col", "row", "col"), division=_divided()),
    "consumers_2": Small((256, 128, 256), division=_divided((128, 64, 64), 2)),
    "multicast_down": Small((256, 128, 256), division=_divided(cluster=(2, 1))),
    "multicast_across": Small((128, 256, 256), division=_divided(cluster=(1, 2))),
    "multicast_4": Small((64, 256, 256), division=_divided(cluster=(1, 4))),
    "persistent": Small((256, 256, 320), division=_divided(persistent_ctas=3)),
    "persistent_multicast": Small(
        (512, 128, 320), division=_divided(persistent_ctas=4, cluster=(2, 1))
    ),
    "overlap_epilogue": Small(
        (256, 256, 320), division=_divided(persistent_ctas=3, overlap_epilogue=True)
    ),
    "deferred_multicast": Small(
        (512, 256, 320),
        division=_divided(
            (128, 64, 64), 2, persistent_ctas=4, overlap_epilogue=True, cluster=(2, 1)
        ),
    ),
    "parts_2": Small((128, 128, 512), division=_divided(split_k=2)),
    "parts_4": Small((64, 128, 512), division=_divided(split_k=4)),
    "parts_8": Small((128, 128, 512), division=_divided((128, 128, 64), 2, split_k=8)),
    "bf16": Small((128, 128, 320), "bf16", division=_divided()),
    "e4m3": Small((128, 128, 640), "f8E4M3FN", _NT, _divided(_BYTES)),
    "promote_1": Small((128, 128, 640), "f8E4M3FN", _NT, _divided(_BYTES), promote=1),
    "promote_4": Small((128, 128, 640), "f8E4M3FN", _NT, _divided(_BYTES), promote=4),
    "e5m2_parts": Small((64, 128, 512), "f8E5M2", _NT, _divided(_BYTES, split_k=2)),
    "i8": Small((128, 128, 640), "i8", _NT, _divided(_BYTES)),
    "i8_persistent": Small((256, 128, 640), "i8", _NT, _divided(_BYTES, persistent_ctas=3)),
    "hmma": Small((128, 96, 256)),
    "hmma_columns": Small((128, 96, 256), orders=("col", "col", "row")),
    "hmma_i8": Small((128, 64, 256), "i8", _NT),
    "hmma_8_bytes": Small((68, 68, 204)),
    "hmma_4_bytes": Small((66, 66, 198)),
    "hmma_elements": Small((65, 67, 133)),
}
"""By name: the ways of TMA and `wgmma`, then `mma.sync` and the widths of its copies."""

_EQUAL, _UNEVEN = (64, 64, 64), (72, 8, 200, 64)


def _batched(target: str) -> Kernel:
    from lego_mlir.kernels import matmul
    from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

    sizes, config = (64, 128, 256), WgmmaConfig(**_divided())
    kernel: Kernel = matmul(*sizes, batch=len(_EQUAL), config=config, target=target)
    return kernel


def _grouped(persistent_ctas: int, target: str) -> Kernel:
    from lego_mlir.kernels import grouped_matmul
    from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

    config = WgmmaConfig(**_divided(persistent_ctas=persistent_ctas))
    shapes = [(m, 136, 200) for m in _UNEVEN]
    kernel: Kernel = grouped_matmul(shapes, config=config, target=target)
    return kernel


def _groups(name: str, make: Any, rows: tuple[int, ...], n: int, k: int) -> Case:
    return Case(f"small_{name}", make, "f16", Groups(rows, n, k, "f16", "f16"), peers=())


CASES = (
    *(
        Case(f"small_{name}", small.make, small.dtype, small.reference, peers=())
        for name, small in SMALL.items()
    ),
    _groups("batched", _batched, _EQUAL, 128, 256),
    _groups("grouped", partial(_grouped, 0), _UNEVEN, 136, 200),
    _groups("grouped_persistent", partial(_grouped, 3), _UNEVEN, 136, 200),
)
