"""One small GEMM for every way to compute one: for the simulator, and for compute-sanitizer.

See README.md, "Data races and out-of-bounds accesses".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from bench.case import Case, Order
from bench.gemm.cases import OUTPUT_TYPES, layout_of
from bench.gemm.references import GemmReference, GroupedGemmReference

if TYPE_CHECKING:
    from lego_mlir import Kernel


@dataclass(frozen=True, slots=True)
class SmallGemm:
    """A small GEMM with a config of its own.

    Attributes:
        sizes: m, n and k.
        dtype: element type of A and B.
        orders: memory orders of A, B and C.
        config: the fields of a `WgmmaConfig`, or with `warps` of a `GemvConfig`; if empty, the
            schedule is `cp_async` with the library's config.
        promote: as `lego_mlir.kernels.gemm.matmul` takes it.
    """

    sizes: tuple[int, int, int]
    dtype: str = "f16"
    orders: tuple[Order, Order, Order] = ("row", "row", "row")
    config: dict[str, Any] = field(default_factory=dict)
    promote: int = 0

    @property
    def reference(self) -> GemmReference:
        """Return the reference of the GEMM."""
        return GemmReference(*self.sizes, self.dtype, OUTPUT_TYPES[self.dtype], *self.orders)

    def make(self, target: str) -> Kernel:
        """Return the kernel for a GPU architecture."""
        from lego_mlir.kernels import matmul
        from lego_mlir.kernels.gemm.gemv.config import GemvConfig
        from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

        (m, n, k), (a, b, c) = self.sizes, self.orders
        kind = GemvConfig if "warps" in self.config else WgmmaConfig
        kernel: Kernel = matmul(
            *self.sizes,
            self.dtype,
            out=OUTPUT_TYPES[self.dtype],
            a=layout_of(a, m, k),
            b=layout_of(b, k, n),
            c=layout_of(c, m, n),
            config=kind(**self.config) if self.config else None,
            schedule=None if self.config else "cp_async",
            target=target,
            promote=self.promote,
        )
        return kernel


def _wgmma(
    tile: tuple[int, int, int] = (64, 64, 64), consumers: int = 1, stages: int = 3, **more: Any
) -> dict[str, Any]:
    """Return the fields of a `WgmmaConfig`."""
    return {"tile": tile, "consumers": consumers, "stages": stages, **more}


def _gemv(
    tile: tuple[int, int, int], warps: tuple[int, int] = (1, 2), split_k: int = 1
) -> dict[str, Any]:
    """Return the fields of a `GemvConfig` of one stage."""
    return {"tile": tile, "warps": warps, "stages": 1, "split_k": split_k}


_NT: tuple[Order, Order, Order] = ("row", "col", "row")
_BYTES = (64, 64, 128)
"""The tile of 1-byte elements."""

SMALL = {
    "one_wave": SmallGemm((128, 128, 320), config=_wgmma(one_cta_per_sm=True)),
    "narrow": SmallGemm((64, 64, 320), config=_wgmma((64, 16, 64))),
    "swap_ab": SmallGemm((16, 256, 256), config=_wgmma((64, 16, 64), swap_ab=True)),
    "columns": SmallGemm((128, 136, 200), orders=("col", "row", "col"), config=_wgmma()),
    "consumers_2": SmallGemm((256, 128, 256), config=_wgmma((128, 64, 64), 2)),
    "multicast_down": SmallGemm((256, 128, 256), config=_wgmma(cluster=(2, 1))),
    "multicast_across": SmallGemm((128, 256, 256), config=_wgmma(cluster=(1, 2))),
    "multicast_4": SmallGemm((64, 256, 256), config=_wgmma(cluster=(1, 4))),
    "persistent": SmallGemm((256, 256, 320), config=_wgmma(persistent_ctas=3)),
    "persistent_multicast": SmallGemm(
        (512, 128, 320), config=_wgmma(persistent_ctas=4, cluster=(2, 1))
    ),
    "overlap_epilogue": SmallGemm(
        (256, 256, 320), config=_wgmma(persistent_ctas=3, overlap_epilogue=True)
    ),
    "overlap_epilogue_multicast": SmallGemm(
        (512, 256, 320),
        config=_wgmma((128, 64, 64), 2, persistent_ctas=4, overlap_epilogue=True, cluster=(2, 1)),
    ),
    "split_k_2": SmallGemm((128, 128, 512), config=_wgmma(split_k=2)),
    "split_k_4": SmallGemm((64, 128, 512), config=_wgmma(split_k=4)),
    "split_k_8": SmallGemm((128, 128, 512), config=_wgmma((128, 128, 64), 2, split_k=8)),
    "split_k_l2": SmallGemm((128, 128, 512), config=_wgmma(split_k=3, split_k_through="l2")),
    "split_k_l2_in_order": SmallGemm(
        (128, 128, 512), config=_wgmma(split_k=3, split_k_through="l2", deterministic=True)
    ),
    "multicast_2x2": SmallGemm((192, 192, 256), config=_wgmma(cluster=(2, 2))),
    "ping_pong": SmallGemm(
        (168, 80, 200), config=_wgmma((64, 32, 64), 2, persistent_ctas=2, ping_pong=True)
    ),
    "repitched": SmallGemm((129, 131, 133), config=_wgmma()),
    "repitched_columns": SmallGemm((129, 131, 133), orders=("col", "col", "row"), config=_wgmma()),
    "copied_4_bytes": SmallGemm((130, 134, 198), config=_wgmma(copied_by_threads="ab")),
    "copied_elements": SmallGemm((129, 131, 133), config=_wgmma(copied_by_threads="ab")),
    "copied_elements_alone": SmallGemm(
        (129, 131, 133),
        orders=("col", "col", "row"),
        config=_wgmma(copied_by_threads="ab", one_cta_per_sm=True),
    ),
    "copied_multicast": SmallGemm(
        (130, 64, 198), config=_wgmma(cluster=(2, 1), copied_by_threads="a")
    ),
    "gemv_rows": SmallGemm((72, 3, 392), config=_gemv((16, 8, 64))),
    "gemv_columns": SmallGemm(
        (72, 3, 392), orders=("col", "col", "row"), config=_gemv((64, 8, 32))
    ),
    "gemv_split_k": SmallGemm((72, 3, 392), config=_gemv((16, 8, 192), split_k=3)),
    "gemv_elements": SmallGemm((73, 3, 293), config=_gemv((16, 8, 192), split_k=3)),
    "gemv_column_elements": SmallGemm(
        (73, 3, 293), orders=("col", "row", "row"), config=_gemv((64, 8, 384), (1, 8), 3)
    ),
    "bf16": SmallGemm((128, 128, 320), "bf16", config=_wgmma()),
    "e4m3": SmallGemm((128, 128, 640), "f8E4M3FN", _NT, _wgmma(_BYTES)),
    "promote_1": SmallGemm((128, 128, 640), "f8E4M3FN", _NT, _wgmma(_BYTES), promote=1),
    "promote_4": SmallGemm((128, 128, 640), "f8E4M3FN", _NT, _wgmma(_BYTES), promote=4),
    "e5m2_split_k": SmallGemm((64, 128, 512), "f8E5M2", _NT, _wgmma(_BYTES, split_k=2)),
    "i8": SmallGemm((128, 128, 640), "i8", _NT, _wgmma(_BYTES)),
    "i8_persistent": SmallGemm((256, 128, 640), "i8", _NT, _wgmma(_BYTES, persistent_ctas=3)),
    "mma": SmallGemm((128, 96, 256)),
    "mma_columns": SmallGemm((128, 96, 256), orders=("col", "col", "row")),
    "mma_i8": SmallGemm((128, 64, 256), "i8", _NT),
    "mma_8_bytes": SmallGemm((68, 68, 204)),
    "mma_4_bytes": SmallGemm((66, 66, 198)),
    "mma_elements": SmallGemm((65, 67, 133)),
}
"""The cases: configs of TMA and `wgmma`, then `mma.sync` and the widths of its copies."""

_EQUAL, _UNEVEN = (64, 64, 64), (72, 8, 200, 64)


def _batched(target: str) -> Kernel:
    from lego_mlir.kernels import matmul
    from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

    sizes, config = (64, 128, 256), WgmmaConfig(**_wgmma())
    kernel: Kernel = matmul(*sizes, batch=len(_EQUAL), config=config, target=target)
    return kernel


def _grouped(persistent_ctas: int, target: str) -> Kernel:
    from lego_mlir.kernels import grouped_matmul
    from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig

    config = WgmmaConfig(**_wgmma(persistent_ctas=persistent_ctas))
    shapes = [(m, 136, 200) for m in _UNEVEN]
    kernel: Kernel = grouped_matmul(shapes, config=config, target=target)
    return kernel


def _grouped_case(name: str, make: Any, rows: tuple[int, ...], n: int, k: int) -> Case:
    return Case(f"small_{name}", make, "f16", GroupedGemmReference(rows, n, k, "f16", "f16"))


CASES = (
    *(
        Case(f"small_{name}", small.make, small.dtype, small.reference)
        for name, small in SMALL.items()
    ),
    _grouped_case("batched", _batched, _EQUAL, 128, 256),
    _grouped_case("grouped", partial(_grouped, 0), _UNEVEN, 136, 200),
    _grouped_case("grouped_persistent", partial(_grouped, 3), _UNEVEN, 136, 200),
)
