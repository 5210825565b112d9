"""The papers' figures made again: printed kernels, the same with indices by hand, ours, libraries.

`cases` lists them; `triton_cases` and `cuda_cases` know how each is run; `by_hand` has the kernels
whose indices are not printed; `published` what the papers report.
"""
