"""Small PTX programs whose answers a GPU gave, kept for the simulator to be compared with.

`programs` has them all; `record` runs them on a GPU and writes the answers to `answers/`; the
tests of the simulator run them there and compare, bit by bit or within the accuracy that the ISA
states. Nothing here imports the compiler, so recording needs NumPy and cuda-bindings alone.
"""
