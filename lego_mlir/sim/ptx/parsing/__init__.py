"""PTX text to a syntax tree: tokens, operands, variables, statements, kernels and functions."""
