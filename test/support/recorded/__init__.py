"""Small PTX programs with the results of a GPU, for comparison with the simulator.

`programs` has them all; `record` runs them on a GPU and writes the results to `answers/`; the
tests run them in the simulator and compare, bit by bit or within the accuracy that the ISA
states. Nothing here imports the compiler, so recording needs NumPy and cuda-bindings alone.
"""
