"""Several GEMMs in one launch: grouped, of known sizes, and ragged, whose rows the device knows.

`ragged` has groups of rows of C, `ragged_k` groups of rows that are summed.
"""
