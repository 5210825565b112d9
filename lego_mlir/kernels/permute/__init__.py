"""Permutations of dimensions, transposes among them: problem, heuristic, kernel bodies."""
