"""The options of `legoc FILE.ptx --run`, which runs a kernel of a PTX file in the simulator."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir.options import values
from lego_mlir.options.base import Fail


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    ptx = parser.add_argument_group("running a kernel of a .ptx file, in the simulator")
    ptx.add_argument("--kernel", metavar="NAME", help="the kernel (default: the only one)")
    for name, what in (
        ("--grid", "CTAs of the grid (default: 1)"),
        ("--block", "threads of a CTA (default: those that the kernel requires)"),
        ("--cluster", "CTAs of a cluster (default: those that the kernel requires, or 1)"),
    ):
        ptx.add_argument(name, metavar="X[,Y[,Z]]", type=values.dim3, help=what)
    ptx.add_argument(
        "--shared-bytes",
        metavar="N",
        type=values.seed,
        default=0,
        help="dynamic shared memory of a CTA (default: 0)",
    )
    ptx.add_argument(
        "--global-checks",
        action="store_true",
        help="check global memory for races and missing fences, too",
    )


def check(options: Any, fail: Fail) -> None:
    """Check that a PTX file is only run, in the simulator, and that only it has its options."""
    for flag in ("kernel", "grid", "block", "cluster", "shared_bytes", "global_checks"):
        if getattr(options, flag) and not (options.run and options.input.endswith(".ptx")):
            fail(f"--{flag.replace('_', '-')} needs --run and a .ptx file")
    if options.input.endswith(".ptx") and not options.run:
        fail("a .ptx file is compiled already: --run runs a kernel of it")
    if options.input.endswith(".ptx") and options.device == "cuda":
        fail("a .ptx file runs in the simulator: leave out --device=cuda")
