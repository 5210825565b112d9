"""The passes of the transform_lego dialect, one file each, from which schedules are composed.

Each pass rewrites tiles that are accessed through layouts into accesses through other layouts;
`lower_lego` derives the index expressions. `dialects/transform_lego.irdl.mlir` declares each
operation. What several passes share is in `mlir/tiles`, `fragments` and `warp_specialized`.
"""
