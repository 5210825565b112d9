"""The command line of legoc: its options, their help texts, and which of them exclude others."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, NoReturn

from lego_mlir import __version__
from lego_mlir.compiler.stages import DEFAULT_TARGET, PIPELINED, STAGES
from lego_mlir.diagnostics import printable
from lego_mlir.limits import DEFAULT

TEMPLATE_LANGUAGES = ("c", "cuda", "numpy", "python", "triton")
PRINTED = (*TEMPLATE_LANGUAGES, "cute")
"""The languages of templates, and of --print; `printers` is imported only where it is needed."""

_DESCRIPTION = """\
legoc compiles an MLIR module whose data and work are placed by LEGO layouts. With --run it also
launches the kernels, on a GPU or in a simulator.

stages of the compilation (--emit):
  placed     tiles have distributed layouts
  index      lego operations are lowered to the dialects arith, affine, memref and gpu
  scheduled  the schedule's transform script has been applied
  nvvm       the kernels are in the dialects nvvm and llvm
  llvm       LLVM IR of the kernels
  ptx        PTX of the kernels
  cubin      machine code
  bundle     one file with the code and the launches; it runs where there is no compiler

With --print, the input is the text of a layout, and legoc prints it in another language.
'legoc template FILE' fills the holes of a template of source text: legoc template --help.
"""

_TEMPLATE_DESCRIPTION = """\
legoc template fills the holes of a template, the source of a kernel with layouts in {{ }}:

  {% set A = OrderBy(Row(M, K)).TileBy([M/BM, K/BK], [BM, BK]) %}
  a = tl.load(a_ptr + {{ A["pid_m", "k", :, :] }})

A template has {{ }}, {% set %}, {% if %} and {% for %}, as Jinja writes them. Its expressions may
name the blocks, layouts and permutations of the notation, and
  layout(TEXT)                       a layout by its text
  size(NAME, DIVISOR...)             a symbolic size, and what divides it
  var(NAME, LEAST, GREATEST)         a variable of the program, and its range
  header(LAYOUT, NAME), helpers()    the functions of a layout; those that expressions call
  triton(SLICE), cute(LAYOUT)        a tile for Triton, a layout of CuTe
Names in quotes are variables of the program. docs/printers.md says more.
"""

_EPILOGUE = """\
examples:
  legoc transpose.mlir                            print the derived index arithmetic
  legoc transpose.mlir --emit=ptx --set T=16      print PTX for another tile size
  legoc transpose.mlir --run                      run on random data, compare with NumPy
  legoc transpose.mlir a.npy --run --save out     run on your data, save the outputs
  legoc transpose.mlir --run --report             count bank conflicts, sectors, instructions
  legoc matmul.mlir --schedule=hmma --param buffers=3 --param depth=2 --keep steps --emit=ptx
                                                  use tensor cores, keep each transform step
  legoc transpose.mlir --emit=bundle -o t.lego    compile here ...
  legoc t.lego --run --device=cuda                ... and run on a machine with a GPU
  legoc scale.ptx --run --kernel scale --grid 4 --block 256 x.npy 1000 0.5
                                                  run a kernel that any compiler has made
  legoc --print=cuda --name A "OrderBy(Row(M, K)).TileBy([M/128, K/64], [128, 64])"
                                                  print a layout as CUDA functions
  legoc transpose.mlir --draw A tile -o x.svg     draw two layouts of a module
  legoc "OrderBy(Row(32, 32))" --draw --access ":, 0"
                                                  draw the bank conflicts of a column

exit status: 0 on success; 1 if the input has an error or a result is wrong; 2 on wrong usage.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; on wrong usage it exits with status 2."""
    parser = _Parser(
        prog="legoc",
        description=_DESCRIPTION,
        epilog=_EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "input",
        metavar="INPUT",
        help="a .mlir file, a bundle, or - for stdin; with --run a .ptx file too, with --print or "
        "--draw a layout",
    )
    parser.add_argument(
        "arrays",
        metavar="ARRAY",
        nargs="*",
        default=[],  # else argparse says that arrays are required
        help="with --run: .npy files for the tensors of the host function, in order; "
        "tensors without a file get random data. Of a .ptx file, one argument for each parameter "
        "of the kernel: a .npy file, an array of zeros such as f32:64x64, or a number. "
        "With --draw: more layouts, or names of layouts",
    )
    parser.add_argument("--version", action="version", version=f"legoc {__version__}")
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
        type=_size,
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
        type=_parameter,
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
        type=_pipeline,
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
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print versions, the target, and each stage with its time as it ends, to stderr",
    )
    parser.add_argument(
        "--timing",
        action="store_true",
        help="print a table of the times of all stages and passes at the end, to stderr",
    )
    printing = parser.add_argument_group("printing a layout")
    printing.add_argument(
        "--print",
        dest="language",
        choices=PRINTED,
        metavar="LANGUAGE",
        help="print the layout that the input is: its functions in c, cuda, triton, python or "
        "numpy, or the layout of cute; --set gives its symbols values",
    )
    printing.add_argument(
        "--name", default=None, metavar="NAME", help="begin the names of its functions with this"
    )
    _add_drawing(parser.add_argument_group("drawing"))
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
        "--seed", type=_seed, default=0, metavar="N", help="seed of the random data"
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
    ptx = parser.add_argument_group("running a kernel of a .ptx file, in the simulator")
    ptx.add_argument("--kernel", metavar="NAME", help="the kernel (default: the only one)")
    for name, what in (
        ("--grid", "CTAs of the grid (default: 1)"),
        ("--block", "threads of a CTA (default: those that the kernel requires)"),
        ("--cluster", "CTAs of a cluster (default: those that the kernel requires, or 1)"),
    ):
        ptx.add_argument(name, metavar="X[,Y[,Z]]", type=_dim3, help=what)
    ptx.add_argument(
        "--shared-bytes",
        metavar="N",
        type=_seed,
        default=0,
        help="dynamic shared memory of a CTA (default: 0)",
    )
    ptx.add_argument(
        "--global-checks",
        action="store_true",
        help="check global memory for races and missing fences, too",
    )
    return parser


def _add_drawing(drawing: argparse._ArgumentGroup) -> None:
    drawing.add_argument(
        "--draw",
        action="store_true",
        help="draw layouts side by side, on the terminal or with -o as SVG: the texts that are "
        "given, or those of a .mlir file, all of them or those that are named behind it",
    )
    drawing.add_argument(
        "--by",
        metavar="WHAT",
        help="color cells by offset, tile, bank or sector; by thread, register or warp of a "
        "distributed layout, OrderBy(Row(warps, 32, registers))...; or order, with its path",
    )
    drawing.add_argument(
        "--access",
        metavar="SLICE|LAYOUT",
        help='outline what a warp accesses, such as ":, 0", and count its bank conflicts, or '
        "with --by sector its sectors",
    )
    drawing.add_argument("--element", type=_count, metavar="BYTES", help="bytes of an element (4)")
    drawing.add_argument(
        "--vector",
        type=_count,
        metavar="N",
        help="elements that a lane accesses at once",
    )
    drawing.add_argument(
        "--cells",
        type=_cells,
        metavar="ROWSxCOLUMNS",
        help="draw at most so many; a larger layout is sampled (default: 32x32)",
    )


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors have the form of all other errors of legoc."""

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments and check combinations that argparse cannot check."""
        options = self.parse_intermixed_args(*args, **kwargs)  # arrays may stand behind options
        if options.run and (options.emit or options.output):
            self.error("--run excludes --emit and -o: either run the module or write a stage")
        if options.explain and (options.run or options.emit):
            self.error("--explain compiles to machine code: leave out --run and --emit")
        if options.check_each_step and (options.run or options.emit or options.explain):
            self.error("--check-each-step writes no stage: leave out --run, --emit and --explain")
        if options.language is not None:
            self._check_compiles_nothing(options, "--print")
        elif options.name is not None:
            self.error("--name needs --print")
        self._check_drawing(options)
        if options.output == "":
            self.error("-o takes the name of a file, or - for stdout")
        if options.schedule == "":
            self.error("--schedule takes the name of a schedule, or of a file")
        for flag, folder in (("--keep", options.keep), ("--save", options.save)):
            if folder == "":
                self.error(f"{flag} takes the name of a folder")
        for flag in ("kernel", "grid", "block", "cluster", "shared_bytes", "global_checks"):
            if getattr(options, flag) and not (options.run and options.input.endswith(".ptx")):
                self.error(f"--{flag.replace('_', '-')} needs --run and a .ptx file")
        if options.input.endswith(".ptx") and not options.run:
            self.error("a .ptx file is compiled already: --run runs a kernel of it")
        if options.input.endswith(".ptx") and options.device == "cuda":
            self.error("a .ptx file runs in the simulator: leave out --device=cuda")
        if options.arrays and not (options.run or options.draw or options.check_each_step):
            self.error(f"'{options.arrays[0]}': arrays need --run")
        if options.save and not options.run:
            self.error("--save needs --run")
        if options.report and not options.run:
            self.error("--report needs --run")
        if options.report and options.device == "cuda":
            self.error("--report counts in the simulator: leave out --device=cuda")
        if options.sim_order is not None and not options.run:
            self.error("--sim-order needs --run")
        if options.sim_order is not None and options.device == "cuda":
            self.error("--sim-order applies to the simulator: leave out --device=cuda")
        return options

    def _check_drawing(self, options: Any) -> None:
        """Check that options of drawing stand beside --draw."""
        if options.draw:
            self._check_compiles_nothing(options, "--draw", {"--print": options.language})
            return
        drawing = {
            "--by": options.by,
            "--access": options.access,
            "--element": options.element,
            "--vector": options.vector,
            "--cells": options.cells,
        }
        for flag, value in drawing.items():
            if value:
                self.error(f"{flag} needs --draw")

    def _check_compiles_nothing(
        self, options: Any, command: str, more: Mapping[str, Any] | None = None
    ) -> None:
        """Check that no option of compiling or running stands beside a command on layouts."""
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
                self.error(f"{command} compiles nothing: leave out {flag}")

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"legoc: error: {printable(message)}\nhint: legoc --help\n")


def template_parser() -> argparse.ArgumentParser:
    """Return the parser of `legoc template`."""
    parser = _TemplateParser(
        prog="legoc template",
        description=_TEMPLATE_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("input", metavar="FILE", help="the template, or - for stdin")
    parser.add_argument(
        "--set",
        dest="values",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_value,
        help="a number, or a word, that expressions of the template may name",
    )
    parser.add_argument(
        "--language",
        choices=TEMPLATE_LANGUAGES,
        help="of the text; by default by the name of the file: .c, .cu, or .py for Triton",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="write to this file instead of stdout"
    )
    parser.add_argument(
        "--limit",
        dest="limits",
        metavar="NAME=N",
        action="append",
        default=[],
        help="replace a limit on the work of the template: template_steps, template_bytes, "
        "index_steps",
    )
    return parser


class _TemplateParser(argparse.ArgumentParser):
    """An argument parser whose errors have the form of all other errors of legoc."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"legoc: error: {printable(message)}\nhint: legoc template --help\n")


def _value(text: str) -> tuple[str, int | str]:
    name, equals, value = text.partition("=")
    is_number = value.isascii() and value.removeprefix("-").isdecimal() and len(value) < 19
    if not (name.isidentifier() and equals and (is_number or value.isidentifier())):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE with a number or a word")
    return name, int(value) if is_number else value


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    is_number = value.isdecimal() and len(value) < 19  # then it fits 64 bits
    if not (name.isidentifier() and is_number and int(value) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with a positive integer")
    return name, int(value)


def _dim3(text: str) -> tuple[int, int, int]:
    from lego_mlir.runtime.ptx_files import dim3

    try:
        return dim3(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def _parameter(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value.isdecimal() or len(value) > 18:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=N with an integer of at least 0")
    return name, int(value)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) > 0):
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive integer")
    return int(text)


def _cells(text: str) -> tuple[int, int]:
    rows, _, columns = text.partition("x")
    counts = [int(n) for n in (rows, columns) if n.isascii() and n.isdecimal() and len(n) < 4]
    if len(counts) < 2 or 0 in counts:
        raise argparse.ArgumentTypeError(f"'{text}' is not ROWSxCOLUMNS with numbers up to 999")
    return counts[0], counts[1]


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
