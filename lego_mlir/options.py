"""The command line of legoc: its options, what they mean, and which of them go together."""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

from lego_mlir import __version__
from lego_mlir.compiler.stages import DEFAULT_TARGET, PIPELINED, STAGES
from lego_mlir.diagnostics import printable
from lego_mlir.limits import DEFAULT

_DESCRIPTION = """\
legoc compiles an MLIR module whose tensors and work are placed by LEGO layouts.

stages (--emit):
  index      every lego operation lowered to arith, affine, memref and gpu
  scheduled  after the schedule's transform script
  nvvm       kernels in the nvvm and llvm dialects
  llvm       their LLVM IR
  ptx        what a GPU's assembler gets
  cubin      machine code
  bundle     code and launches in one file, to run where there is no compiler
"""

_EPILOGUE = """\
examples:
  legoc transpose.mlir                            the derived index arithmetic
  legoc transpose.mlir --emit=ptx --set T=16      the PTX, with another tile size
  legoc transpose.mlir --run                      run on random data, compare with NumPy
  legoc transpose.mlir a.npy --run --save out     run on your data, keep the results
  legoc transpose.mlir --run --report             count bank conflicts, sectors, instructions
  legoc matmul.mlir --schedule=hmma --param depth=2 --keep steps --emit=ptx
                                                  tensor cores, the way there kept
  legoc transpose.mlir --emit=bundle -o t.lego    compile here ...
  legoc t.lego --run --device=cuda                ... and run there

exit status: 0 if all went well, 1 on an error in the input or a wrong result, 2 on wrong usage.
"""


def parser() -> argparse.ArgumentParser:
    """The parser; wrong usage ends the process with status 2."""
    parser = _Parser(
        prog="legoc",
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("input", metavar="INPUT", help="a .mlir file, a bundle, or - for stdin")
    parser.add_argument(
        "arrays",
        metavar="ARRAY",
        nargs="*",
        default=[],  # else argparse says that arrays are required
        help="with --run: .npy files for the host function's tensors, in order; "
        "what is left out is random",
    )
    parser.add_argument("--version", action="version", version=f"legoc {__version__}")
    compiling = parser.add_argument_group("compiling")
    compiling.add_argument(
        "--emit",
        choices=STAGES,
        metavar="STAGE",
        help="stop at this stage (default: index, with --schedule scheduled)",
    )
    compiling.add_argument(
        "--target",
        metavar="CHIP",
        help="the GPU architecture, such as sm_80 (default: "
        f"{DEFAULT_TARGET}; with --run on a GPU, its own)",
    )
    compiling.add_argument(
        "--set",
        dest="sizes",
        metavar="NAME=N",
        action="append",
        default=[],
        type=_size,
        help="another value for a size in the module's lego.sizes",
    )
    compiling.add_argument(
        "--schedule",
        metavar="NAME|FILE",
        help="the transform script that maps tiles and loops to the hardware",
    )
    compiling.add_argument(
        "--param",
        dest="parameters",
        metavar="NAME=N",
        action="append",
        default=[],
        type=_parameter,
        help="another value for a parameter of the schedule",
    )
    compiling.add_argument(
        "--keep",
        metavar="DIR",
        help="write the module after every step of the schedule to DIR/NN-STEP.mlir",
    )
    compiling.add_argument(
        "--pass-pipeline",
        dest="pipelines",
        metavar="STAGE=PIPELINE",
        action="append",
        default=[],
        type=_pipeline,
        help=f"another pass pipeline for a stage ({', '.join(PIPELINED)}): text or a file; "
        "of passes that only change the module",
    )
    compiling.add_argument(
        "--exact-division",
        action="store_true",
        help="round quotients of f32, f16 and bf16 exactly, as lego.exact_division in the module "
        "does (default: off by at most 2 units in the last place, and faster)",
    )
    compiling.add_argument(
        "--check",
        action=argparse.BooleanOptionalAction,
        help="check in the kernels what of indices and sizes is not proven; "
        "the default with --run in the simulator, but not with --report",
    )
    compiling.add_argument(
        "--explain",
        action="store_true",
        help="say what was made: the schedule's parameters, launches, registers",
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        metavar="NAME=N",
        action="append",
        default=[],
        help="another limit on the work or memory that the input may ask for: "
        + ", ".join(f"{name} ({value})" for name, value in DEFAULT.values()),
    )
    compiling.add_argument("-o", dest="output", metavar="FILE", help="write here, not to stdout")
    running = parser.add_argument_group("running")
    running.add_argument("--run", action="store_true", help="execute the host function")
    running.add_argument(
        "--device",
        choices=("auto", "cuda", "sim"),
        default="auto",
        help="auto is cuda where a GPU answers, else sim, the simulator",
    )
    running.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the random data")
    running.add_argument(
        "--save", metavar="DIR", help="keep the outputs as DIR/NAME.npy, all of them or none"
    )
    running.add_argument(
        "--sim-order",
        metavar="ORDER",
        help="when the simulator does asynchronous work: late (the default), early, or "
        "random[:SEED]",
    )
    running.add_argument(
        "--report",
        action="store_true",
        help="count in the simulator what each kernel costs: sectors, wavefronts, instructions",
    )
    return parser


class _Parser(argparse.ArgumentParser):
    """argparse, with our way of saying what is wrong."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parse, and check what argparse cannot."""
        options = self.parse_intermixed_args(*args, **kwargs)  # arrays may stand behind options
        if options.run and (options.emit or options.output):
            self.error("--run executes the module; --emit and -o write a stage: choose one")
        if options.explain and (options.run or options.emit):
            self.error("--explain compiles, and says what it made; leave out --run and --emit")
        if options.output == "":
            self.error("-o takes the name of a file, or - for stdout")
        if options.schedule == "":
            self.error("--schedule takes the name of a schedule, or of a file")
        for flag, folder in (("--keep", options.keep), ("--save", options.save)):
            if folder == "":
                self.error(f"{flag} takes the name of a folder")
        if options.arrays and not options.run:
            self.error(f"'{options.arrays[0]}': arrays are for --run")
        if options.save and not options.run:
            self.error("--save is for --run")
        if options.report and not options.run:
            self.error("--report is for --run")
        if options.report and options.device == "cuda":
            self.error("--report counts in the simulator: leave out --device=cuda")
        if options.sim_order is not None and not options.run:
            self.error("--sim-order is for --run")
        if options.sim_order is not None and options.device == "cuda":
            self.error("--sim-order is for the simulator: leave out --device=cuda")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"legoc: error: {printable(message)}\nhint: legoc --help\n")


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    is_number = value.isdecimal() and len(value) < 19  # then it fits 64 bits
    if not (name.isidentifier() and is_number and int(value) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with a positive integer")
    return name, int(value)


def _parameter(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.isdecimal() or len(value) > 18:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with an integer of at least 0")
    return name, int(value)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least 0")
    return int(text)


def _pipeline(text: str) -> tuple[str, str]:
    stage, _, pipeline = text.partition("=")
    if stage not in PIPELINED or not pipeline:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not STAGE=PIPELINE with a stage of {', '.join(PIPELINED)}"
        )
    return stage, pipeline
