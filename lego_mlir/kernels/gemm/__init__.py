"""GEMM kernels: one GEMM or a batch (`matmul`), grouped (`grouped`), ragged grouped (`ragged`).

`problem` → `planner` (`config`, `heuristic`, `tuned_table`) → `kernel`. What a GEMM shares with
other families stands in `kernels`; the instructions are found by the schedules in `transforms/`.
"""
