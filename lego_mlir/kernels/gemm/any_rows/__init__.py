"""GEMMs whose rows only the launch knows: few configs, each for ranges of rows.

`cover` chooses the configs, `matmul` makes a function of each. A config serves any rows; which one
is the fastest depends on them.
"""
