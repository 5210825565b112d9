"""The transform steps on what one thread does, one file each; those on tiles are in `tile_steps`.

Each rewrites loops of a kernel whose accesses still have layouts, or, in a schedule's
`@__transform_main`, are lowered. `dialects/transform_lego.irdl.mlir` declares each operation.
"""
