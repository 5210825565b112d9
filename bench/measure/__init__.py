"""Timing and checking on the machine with the GPU: the worker process, rounds, CUDA graphs.

What a correct output is stands in `bench.gemm` and `bench.permute`; who competes, in `bench.peers`.
"""
