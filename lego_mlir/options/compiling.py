"""The options of compiling, and of the files that it writes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from lego_mlir.compiler.stages import DEFAULT_TARGET, PIPELINED, STAGES
from lego_mlir.limits import DEFAULT
from lego_mlir.options import values
from lego_mlir.options.base import Fail


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    compiling = parser.add_argument_group("compiling")
    compiling.add_argument(
        "--emit",
        choices=STAGES,
        metavar="STAGE",
        help="stop at this stage and write it (default: index; with --schedule: scheduled)",
    )
    compiling.add_argument(
        "--target",
        metavar="CHIP",
        help="compile for this GPU architecture, such as sm_80 (default: "
        f"{DEFAULT_TARGET}; with --run on a GPU: that GPU's)",
    )
    compiling.add_argument(
        "--set",
        dest="sizes",
        metavar="NAME=N",
        action="append",
        default=[],
        type=values.size,
        help="replace the value of a size in the module's lego.sizes",
    )
    compiling.add_argument(
        "--schedule",
        metavar="NAME|FILE",
        help="apply this transform script, which maps tiles and loops to the hardware",
    )
    compiling.add_argument(
        "--param",
        dest="parameters",
        metavar="NAME=N",
        action="append",
        default=[],
        type=values.parameter,
        help="replace the value of a parameter of the schedule",
    )
    compiling.add_argument(
        "--keep",
        metavar="DIR",
        help="write the module after each transform step of the schedule to DIR/NN-STEP.mlir",
    )
    compiling.add_argument(
        "--pass-pipeline",
        dest="pipelines",
        metavar="STAGE=PIPELINE",
        action="append",
        default=[],
        type=values.pipeline,
        help=f"replace the pass pipeline of a stage ({', '.join(PIPELINED)}) by this text or "
        "file; only passes that change nothing but the module are allowed",
    )
    compiling.add_argument(
        "--exact-math",
        action="store_true",
        help="round quotients and roots of f32, f16 and bf16 exactly, and compute exp, log and pow "
        "more exactly, as does lego.exact_math in the module (default: faster, quotients with an "
        "error of at most 2 units in the last place)",
    )
    compiling.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        help="check in the kernels those indices and sizes that are not proven to be in range "
        "(default: only with --run in the simulator without --report)",
    )
    compiling.add_argument(
        "--check-each-step",
        action="store_true",
        help="run kernels on tiles on random inputs before and after each pass, and once compiled "
        "in the simulator, and name the first step that changes a result",
    )
    compiling.add_argument(
        "--explain",
        action="store_true",
        help="print the schedule's parameters, the launches, and each kernel's registers",
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        metavar="NAME=N",
        action="append",
        default=[],
        help="replace a limit on the work or memory that the input may use: "
        + ", ".join(f"{name} ({value})" for name, value in DEFAULT.values()),
    )
    compiling.add_argument(
        "-o", dest="output", metavar="FILE", help="write to this file instead of stdout"
    )
    compiling.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print versions, the target, and each stage with its time as it ends, to stderr",
    )
    compiling.add_argument(
        "--timing",
        action="store_true",
        help="print a table of the times of all stages and passes at the end, to stderr; the "
        "cache is left alone",
    )


def check(options: Any, fail: Fail) -> None:
    """Check that the options of compiling agree, and that files have names."""
    if options.run and (options.emit or options.output):
        fail("--run excludes --emit and -o: either run the module or write a stage")
    if options.explain and (options.run or options.emit):
        fail("--explain compiles to machine code: leave out --run and --emit")
    if options.check_each_step and (options.run or options.emit or options.explain):
        fail("--check-each-step writes no stage: leave out --run, --emit and --explain")
    if options.output == "":
        fail("-o takes the name of a file, or - for stdout")
    if options.schedule == "":
        fail("--schedule takes the name of a schedule, or of a file")
    if options.keep == "":
        fail("--keep takes the name of a folder")


def check_compiles_nothing(
    options: Any, command: str, fail: Fail, more: Mapping[str, Any] | None = None
) -> None:
    """Check that no option of compiling or running, nor of `more`, stands beside `command`."""
    others = {
        **(more or {}),
        "--emit": options.emit,
        "--run": options.run,
        "--explain": options.explain,
        "--schedule": options.schedule,
        "--param": options.parameters,
        "--keep": options.keep,
        "--target": options.target,
        "--pass-pipeline": options.pipelines,
        "--check": options.check,
        "--exact-math": options.exact_math,
        "--check-each-step": options.check_each_step,
    }
    for flag, value in others.items():
        if value:
            fail(f"{command} compiles nothing: leave out {flag}")
