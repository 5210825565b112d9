"""What a CTA of a kernel on rows does: whole rows, rows in pieces, and sums of columns.

Configs are chosen in `rows.heuristic`, kernels are made in `rows.builder`.
"""
