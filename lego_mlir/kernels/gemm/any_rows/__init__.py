"""GEMMs whose rows only the launch knows: few configs, each for ranges of rows.

`problem` says what the GEMM is at any number of rows, `cover` chooses the configs, and `matmul`
makes a function of each. A config serves any rows; which one is the fastest depends on them.
"""
