"""Proofs about index expressions: intervals and bounds, sample points, Z3.

The rewrite rules ask these for their conditions; see `index.rules`.
"""
