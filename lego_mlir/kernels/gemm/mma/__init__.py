"""GEMMs by `mma.sync`: config and heuristic. The body is that of tiled GEMMs (`gemm.kernel`)."""
