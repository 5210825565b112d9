"""Measuring on a real GPU: compile anywhere, run where the GPU is, report. See bench/README.md.

    python -m bench build DIR                 compile the cases; needs no GPU
    python -m bench run DIR -o FILE.jsonl     check, then measure; needs NumPy and cuda-core
    python -m bench report FILE.jsonl         tables and a figure beside the file

and of the compiler itself, on any machine:

    python -m bench index --json FILE.jsonl   derive index expressions: time, operations
"""
