"""GEMMs by `mma.sync`: config and heuristic. `gemm.tile_program` has the kernel's body."""
