"""Measuring on a real GPU: compile anywhere, run where the GPU is, report. See bench/README.md.

    python -m bench build DIR                 compile the cases; needs no GPU
    python -m bench run DIR -o FILE.jsonl     check, then measure; needs NumPy and cuda-core
    python -m bench report FILE.jsonl         tables and a figure beside the file

for matrix products a search for the best configurations:

    python -m bench tune build DIR --shapes 4096 --schedule hmma
    python -m bench tune write FILE.jsonl

counters of the same kernels, by Nsight Compute:

    python -m bench profile DIR -o FILE.jsonl

and of the compiler itself, on any machine:

    python -m bench index --json FILE.jsonl   derive index expressions: time, operations
"""
