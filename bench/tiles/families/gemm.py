"""GEMMs: by wgmma and persistent CTAs, and by mma.sync from buffers that cp.async fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bench.tiles.case import TileCase

if TYPE_CHECKING:
    from lego_mlir import Kernel


def pipelined_gemm(
    m: int,
    n: int,
    k: int,
    tile: tuple[int, int, int] = (128, 256, 64),
    *,
    warps: int = 8,
    swap: bool = False,
    **params: int,
) -> TileCase:
    """Return a GEMM of f16 by the schedule `persistent`, beside that of `lego_mlir.kernels`.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        tile: the sizes of a CTA's tile.
        warps: that hold the tile.
        swap: whether the tile is one of the transpose of C, a product of transposes.
        params: parameters of the schedule.
    """
    given = {"stages": 4, "producer_registers": 40, "consumer_registers": 232} | params

    def make() -> Kernel:
        import lego_mlir as lg

        rows, columns, depth = tile
        down, across = (n, m) if swap else (m, n)

        def gemm(a: Any, b: Any, c: Any) -> None:
            i, j = lg.block_id("y"), lg.block_id("x")
            if not swap:
                c.tile(rows, columns)[i, j] = _product(a, b, i, j, k, tile).to("f16")
                return

            @lg.fold(-(-k // depth), lg.zeros((rows, columns), "f32"))
            def sums(step: Any, sums: Any) -> Any:
                first, second = b.tile(depth, rows)[step, i], a.tile(columns, depth)[j, step]
                return lg.dot(first.T, second.T, sums)

            c.tile(columns, rows)[j, i] = sums.to("f16").T

        gemm.__annotations__ = _tensors(m, n, k)
        grid = (-(-across // columns), -(-down // rows))
        options: dict[str, Any] = {"schedule": "persistent", "params": given, "pdl": True}
        return lg.kernel(grid=grid, warps=warps, **options)(gemm)

    def kernels() -> Kernel:
        from lego_mlir.kernels import matmul

        return matmul(m, n, k, target="sm_90a")

    name = f"{n}_pipelined" if m == n == k else f"{m}x{n}x{k}_pipelined"
    return _case(name, m, n, k, make, {"kernels.matmul": kernels})


def narrow_gemm(
    m: int, n: int, k: int, tile: tuple[int, int, int] = (128, 128, 128), **params: int
) -> TileCase:
    """Return a GEMM of f8E4M3FN by the schedule `persistent`, sums of 4 iterations added in f32.

    B is transposed: it is contiguous along k, as `wgmma` takes elements of 8 bits.

    Args:
        m: rows of A.
        n: columns of B.
        k: columns of A.
        tile: the sizes of a CTA's tile.
        params: parameters of the schedule.
    """
    given = {"stages": 4, "producer_registers": 40, "consumer_registers": 232, "promote": 4}
    rows, columns, depth = tile

    def make() -> Kernel:
        import lego_mlir as lg

        def gemm(a: Any, b: Any, c: Any) -> None:
            i, j = lg.block_id("y"), lg.block_id("x")

            @lg.fold(-(-k // depth), lg.zeros((rows, columns), "f32"))
            def sums(step: Any, sums: Any) -> Any:
                second = b.tile(columns, depth)[j, step]
                return lg.dot(a.tile(rows, depth)[i, step], second.T, sums)

            c.tile(rows, columns)[i, j] = sums.to("f16")

        kinds = zip("abc", ("f8E4M3FN", "f8E4M3FN", "f16"), ((m, k), (n, k), (m, n)), strict=True)
        gemm.__annotations__ = {name: lg.Tensor[kind, shape, 16] for name, kind, shape in kinds}
        grid = (-(-n // columns), -(-m // rows))
        options: dict[str, Any] = {"schedule": "persistent", "params": given | params, "pdl": True}
        return lg.kernel(grid=grid, warps=8, **options)(gemm)

    def kernels() -> Kernel:
        from lego_mlir.algebra import Col, OrderBy
        from lego_mlir.kernels import matmul

        b = OrderBy(Col(k, n))
        return matmul(m, n, k, "f8E4M3FN", out="f16", b=b, promote=4, target="sm_90a")

    return TileCase(
        f"gemm_e4m3_{m}x{n}x{k}_pipelined",
        make,
        ((m, k), (n, k), (m, n)),
        ("float8_e4m3fn", "float8_e4m3fn", "float16"),
        lambda a, b: a @ b.T,
        (),
        2e-3,
        programs={"kernels.matmul": kernels},
        flops=2 * m * n * k,
    )


def _product(a: Any, b: Any, i: Any, j: Any, k: int, tile: tuple[int, int, int]) -> Any:
    """Return a tile of A times B, inside of a kernel.

    Args:
        a: matrix A.
        b: matrix B.
        i: the row of the tile among the tiles.
        j: its column.
        k: columns of A.
        tile: the tile's sizes.
    """
    import lego_mlir as lg

    rows, columns, depth = tile

    @lg.fold(-(-k // depth), lg.zeros((rows, columns), "f32"))
    def sums(step: Any, sums: Any) -> Any:
        return lg.dot(a.tile(rows, depth)[i, step], b.tile(depth, columns)[step, j], sums)

    return sums


def _shapes(m: int, n: int, k: int) -> tuple[tuple[int, int], ...]:
    return (m, k), (k, n), (m, n)


def _tensors(m: int, n: int, k: int) -> dict[str, Any]:
    """Return the annotations of a kernel's arguments."""
    import lego_mlir as lg

    shapes = zip("abc", _shapes(m, n, k), strict=True)
    return {name: lg.Tensor["f16", shape, 16] for name, shape in shapes}


def _case(
    name: str,
    m: int,
    n: int,
    k: int,
    make: Callable[[], Kernel],
    programs: dict[str, Callable[[], Kernel]],
    target: str | None = None,
) -> TileCase:
    """Return the case of a kernel.

    Args:
        name: of the case, after its element type.
        m: rows of A.
        n: columns of B.
        k: columns of A.
        make: returns the kernel.
        programs: what is measured beside it, by name.
        target: as `TileCase` has it.
    """
    return TileCase(
        f"gemm_f16_{name}",
        make,
        _shapes(m, n, k),
        ("float16",) * 3,
        lambda a, b: a @ b,
        ("torch mm",),
        2e-3,
        programs=programs,
        flops=2 * m * n * k,
        target=target,
    )
