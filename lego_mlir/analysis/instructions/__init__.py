"""What tensor-core and copy instructions demand of layouts.

Fragments, `ldmatrix`, TMA boxes, wgmma operands. Operations that issue them stand in `mlir`.
"""
