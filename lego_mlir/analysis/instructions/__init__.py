"""What tensor-core and copy instructions require of layouts.

Fragments of mma, `ldmatrix`, TMA boxes, matrix descriptors of wgmma. `mlir` emits the operations.
"""
