"""The options of `legoc --run`, which runs a module or a bundle."""

from __future__ import annotations

import argparse
from typing import Any

from lego_mlir.options import values
from lego_mlir.options.base import Fail


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    running = parser.add_argument_group("running")
    running.add_argument(
        "--run", action="store_true", help="run the host function, which launches the kernels"
    )
    running.add_argument(
        "--device",
        choices=("auto", "cuda", "sim"),
        default="auto",
        help="run on a GPU (cuda) or in the simulator (sim); auto: on a GPU if there is one",
    )
    running.add_argument(
        "--seed", type=values.seed, default=0, metavar="N", help="seed of the random data"
    )
    running.add_argument("--save", metavar="DIR", help="write each output to DIR/NAME.npy")
    running.add_argument(
        "--sim-order",
        metavar="ORDER",
        help="order in which the simulator performs asynchronous operations: late (default), "
        "early, or random[:SEED]",
    )
    running.add_argument(
        "--report",
        action="store_true",
        help="count sectors, wavefronts and instructions of each kernel in the simulator",
    )


def check(options: Any, fail: Fail) -> None:
    """Check that what needs --run stands beside it, and suits the device."""
    if options.arrays and not (options.run or options.draw or options.check_each_step):
        fail(f"'{options.arrays[0]}': arrays need --run")
    if options.save == "":
        fail("--save takes the name of a folder")
    if options.save and not options.run:
        fail("--save needs --run")
    if options.report and not options.run:
        fail("--report needs --run")
    if options.report and options.device == "cuda":
        fail("--report counts in the simulator: leave out --device=cuda")
    if options.sim_order is not None and not options.run:
        fail("--sim-order needs --run")
    if options.sim_order is not None and options.device == "cuda":
        fail("--sim-order applies to the simulator: leave out --device=cuda")
