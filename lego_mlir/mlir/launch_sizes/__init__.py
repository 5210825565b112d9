"""Sizes and strides that the launch knows: read, promised, hoisted, and passed to the kernels.

What kernels do with them, as any other index, is the matter of `mlir.lowering`; what a launch
evaluates is that of `artifact`.
"""
