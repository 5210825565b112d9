"""GEMM: problem, configs, heuristics, tuned table, planner, kernel bodies.

What it shares with other families stands in `kernels`.
"""
