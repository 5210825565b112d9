"""Measuring on a real GPU: compile anywhere, run where the GPU is, report.

    python -m bench build DIR                 compile all cases; needs no GPU
    python -m bench run DIR -o FILE.jsonl     check, then measure; needs NumPy, cuda-core, PyTorch
    python -m bench report FILE.jsonl         a table of medians and ratios

and of the compiler itself, on any machine:

    python -m bench index --json FILE.jsonl   derive index expressions: time, operations

A case is checked before it is timed: fresh random bits in, poisoned output, every element compared
with an independent result. A case that is not right has no times.
"""
