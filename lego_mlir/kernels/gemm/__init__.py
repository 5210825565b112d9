"""GEMM kernels: one GEMM or a batch (`matmul`), grouped (`grouped`), ragged grouped (`ragged`).

`problem` → `planner` (`config`, `heuristic`, `tuned_table`) → `tile_program`. What a GEMM shares
with other families stands in `kernels`; schedules in `transforms/` make its pipeline.
"""
