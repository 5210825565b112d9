"""What becomes of operations before the pass pipeline to nvvm, and after it.

Casts of 8-bit floats, divisions, reductions, shared memory, functions of mathematics.
"""
