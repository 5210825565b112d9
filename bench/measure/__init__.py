"""Timing and checking on the machine with the GPU: the worker process, rounds, CUDA graphs.

`bench.gemm` and `bench.permute` define correct outputs, and `bench.peers` the other contenders.
"""
