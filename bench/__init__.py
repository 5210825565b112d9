"""Benchmarks on a real GPU: compile anywhere, run where the GPU is, report. See bench/README.md.

python -m bench build DIR                 compile the cases; needs no GPU
python -m bench run DIR -o FILE.jsonl     check, then time; needs NumPy and cuda-core
python -m bench report FILE.jsonl         write tables and a figure beside the file
python -m bench tune build | write        search for the fastest GEMM configs
python -m bench profile DIR -o FILE.jsonl read hardware counters with Nsight Compute
python -m bench index --json FILE.jsonl   measure the derivation of index expressions; no GPU
python -m bench compile                   measure compile times; no GPU
"""
