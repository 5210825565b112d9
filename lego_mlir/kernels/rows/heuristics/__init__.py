"""The heuristics of kernels on rows: how CTAs, clusters, warps and pieces divide them.

`choice` is what the builder asks. It asks `column_sums` for kernels with sums of columns, `odd` for
rows that begin anywhere in a vector, and `streams`, with the numbers of `stream_tables`, which rows
pass through shared memory.
"""
