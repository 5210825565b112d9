"""Data movement: the transposes and permutations that are measured, their reference, the figure."""
