"""Control flow of kernels: loops, conditions, and choices by an index."""
