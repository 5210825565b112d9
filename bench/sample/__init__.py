"""Random samples of GEMM shapes: the cost model's constants are fitted on one, judged on another.

`shapes` draws them, `build` compiles candidates on all cores, `worker` checks and times them in
interleaved rounds, `fit` fits a card's constants, `report` says how the library does beside cuBLAS.
The fixed cases with their thorough checks are in `bench.gemm`.
"""
