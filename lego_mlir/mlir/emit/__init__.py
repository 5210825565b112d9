"""Build operations: index expressions as `arith` and `affine`, and operations of `nvvm`.

`block_printers` decides where an expression is printed and which values are reused.
"""
