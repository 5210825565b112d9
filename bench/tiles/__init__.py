"""Programs on tiles, measured: row-wise kernels, attention, layout conversions, gathers.

`families` makes the cases, `cases` lists them; `build` and `run` are as those of the other
benchmarks. `tables` needs no GPU: it compiles the benchmarks of papers/linear_layouts (tables 3 and
4) and counts instructions.
"""
