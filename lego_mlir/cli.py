"""legoc, the command: compiles `.mlir` files with LEGO layouts, and runs them."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from lego_mlir import __version__
from lego_mlir.artifact import Artifact, write_whole
from lego_mlir.compiler.stages import BINARY, DEFAULT_TARGET, PIPELINED, STAGES
from lego_mlir.diagnostics import LegoError, Place

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation

_BUNDLE = b"PK\x03\x04"  # a zip file
_STDIN = "<stdin>"
_TRACEBACK = "LEGO_MLIR_TRACEBACK"

_DESCRIPTION = """\
legoc compiles an MLIR module whose tensors and work are placed by LEGO layouts.

stages (--emit):
  index      every lego operation lowered to arith, affine, memref and gpu (the default)
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
  legoc transpose.mlir --run a.npy --save out     run on your data, keep the results
  legoc transpose.mlir --run --report             count bank conflicts, sectors, instructions
  legoc matmul.mlir --schedule=hmma --param stages=4 --keep steps --emit=ptx
                                                  tensor cores, the way there kept
  legoc transpose.mlir --emit=bundle -o t.lego    compile here ...
  legoc t.lego --run --device=cuda                ... and run there

exit status: 0 if all went well, 1 on an error in the input or a wrong result, 2 on wrong usage.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command's entry point: the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack some of our characters
            stream.reconfigure(errors="replace")
    options = _parser().parse_args(arguments)
    try:
        return _run(options) if options.run else _emit(options)
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        sys.stdout = None
        return 0
    except KeyboardInterrupt:
        return 130
    except MemoryError:
        print("error: this needs more memory than there is\nhint: smaller sizes", file=sys.stderr)
        return 1
    except RecursionError:
        print("error: the input is nested too deeply to be read", file=sys.stderr)
        return 1
    except Exception as e:
        if os.environ.get(_TRACEBACK):
            import traceback

            traceback.print_exc()
        print(
            f"error: legoc has a bug here ({type(e).__name__}: {e})\n"
            f"hint: {_TRACEBACK}=1 shows where; please report it with the input",
            file=sys.stderr,
        )
        return 1


def _parser() -> argparse.ArgumentParser:
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
    compiling.add_argument("--emit", choices=STAGES, metavar="STAGE", help="stop at this stage")
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
        help=f"another pass pipeline for a stage ({', '.join(PIPELINED)}): text or a file",
    )
    compiling.add_argument(
        "--explain",
        action="store_true",
        help="say what was made: the schedule's parameters, launches, registers",
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
    running.add_argument("--save", metavar="DIR", help="keep each output as DIR/NAME.npy")
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
        options = super().parse_args(*args, **kwargs)
        if options.run and (options.emit or options.output):
            self.error("--run executes the module; --emit and -o write a stage: choose one")
        if options.explain and (options.run or options.emit):
            self.error("--explain compiles, and says what it made; leave out --run and --emit")
        if options.output == "":
            self.error("-o takes the name of a file, or - for stdout")
        made = options.emit or options.run or options.explain
        if options.schedule is not None and not made:
            self.error("--schedule comes after index: add --emit=scheduled or a later stage")
        for flag, given in (("--param", options.parameters), ("--keep", options.keep)):
            if given and options.schedule is None:
                self.error(f"{flag} is about a schedule's steps: add --schedule=NAME")
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
        self.exit(2, f"legoc: error: {message}\nhint: legoc --help\n")


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


# Compiling.
def _compilation(options: Any) -> Compilation:
    from lego_mlir.compiler.driver import Compilation, Options
    from lego_mlir.compiler.targets import Target
    from lego_mlir.mlir.context import Source

    target = Target.parse(options.target or DEFAULT_TARGET)
    file, text = _read(options.input)
    return Compilation(
        Source(file, text),
        Options(
            target=target,
            sizes=dict(options.sizes),
            schedule=options.schedule,
            parameters=dict(options.parameters),
            keep=options.keep is not None,
            pipelines=dict(options.pipelines),
            isolate=True,
        ),
    )


def _read(file: str) -> tuple[str, str]:
    """The name and the text of the input."""
    name = _STDIN if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        if data.startswith(_BUNDLE):
            raise LegoError(
                "the input is a bundle, compiled already",
                place=Place(name),
                hint="run it from its file: legoc FILE.lego --run",
            )
        text = data.decode()
        if file == "-":  # where a run looks for the lines that its errors show
            import linecache

            linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        return name, text
    except OSError as e:
        raise LegoError(
            f"cannot read the input: {e.strerror}",
            place=Place(name),
            hint="give a .mlir file, or - for stdin",
        ) from None
    except UnicodeDecodeError:
        raise LegoError(
            "the input is no text",
            place=Place(name),
            hint="legoc reads .mlir files, and with --run the bundles it makes",
        ) from None


def _emit(options: Any) -> int:
    stage = options.emit or "index"
    if stage in BINARY and options.output is None and sys.stdout.isatty():
        raise LegoError(
            f"{stage} is binary and the output is a terminal", hint="write it to a file: -o FILE"
        )
    # Compiling multiplies no large matrices: NumPy need not start threads for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    compilation = _compilation(options)
    with _keeping(compilation, options.keep):
        if options.explain:
            from lego_mlir.compiler.explanation import explain

            data = explain(compilation).encode()
        elif stage == "bundle":
            data = compilation.artifact().to_bytes()
        elif stage == "cubin":
            data = compilation.cubin.code
        else:
            data = compilation.text(stage).encode()
    if stage in BINARY:
        _warn(compilation)
    _write(options.output, data)
    return 0


@contextlib.contextmanager
def _keeping(compilation: Compilation, directory: str | None) -> Iterator[None]:
    """Write the steps of the schedule to a directory, even if what comes after them fails."""
    try:
        yield
    finally:
        schedule = compilation.schedule if directory is not None else None
        if directory is not None and schedule is not None:
            try:
                Path(directory).mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise LegoError(
                    f"cannot make the folder of --keep: {e.strerror}", place=Place(directory)
                ) from None
            for number, (name, text) in enumerate(schedule.kept):
                write_whole(Path(directory, f"{number:02}-{name}.mlir"), text.encode())


def _warn(compilation: Compilation) -> None:
    for warning in compilation.cubin.warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _write(output: str | None, data: bytes) -> None:
    """Write the whole output, or nothing."""
    if output is None or output == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        write_whole(output, data)
    except LegoError as e:
        e.hint = e.hint or "-o names a file in a folder that exists; without it, stdout is written"
        raise


# Running.
def _run(options: Any) -> int:
    from lego_mlir import runtime

    device = runtime.select(options.device, costs=options.report, order=options.sim_order)
    artifact = _loaded(options)
    functions: Mapping[str, Callable[..., Any]] = {}
    if artifact is None:
        options.target = options.target or device.target
        compilation = _compilation(options)
        with _keeping(compilation, options.keep):
            artifact = compilation.artifact(assemble=device.name == "cuda")
        functions = compilation.functions
    try:
        result = runtime.run(
            artifact, options.arrays, device=device, seed=options.seed, functions=functions
        )
    except LegoError as e:
        raise e.at(Place(_STDIN if options.input == "-" else options.input)) from None
    saved = result.save(options.save) if options.save else ()
    _describe(artifact, result.device, options, sys.stdout)
    for path in saved:
        print(f"saved    {path}")
    if options.report:
        from lego_mlir.sim.report import report

        for costs in result.costs:
            print(report(costs))
    comparison = result.comparison
    if comparison is None:
        print("check    none: the module names no lego.reference")
        return 0
    right = "equal to" if comparison.exact else "agrees with"
    verdict = right if comparison.equal else "DIFFERENT from"
    print(f"check    {verdict} NumPy's {artifact.reference}: {comparison}")
    return 0 if comparison.equal else 1


def _loaded(options: Any) -> Artifact | None:
    """The artifact that the input is; `None` if it is a module."""
    path = Path(options.input)
    if options.input != "-" and path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as f:
            if f.read(len(_BUNDLE)) == _BUNDLE:
                return Artifact.load(path)
    return None


def _describe(artifact: Artifact, device: str, options: Any, out: IO[str]) -> None:
    print(f"device   {device}", file=out)
    for launch in artifact.launches:
        print(f"kernel   {launch}", file=out)
    tensors = [a for a in artifact.arguments if a.shape is not None]
    origins = [*options.arrays, *([f"random, seed {options.seed}"] * len(tensors))]
    for argument, origin in zip(tensors, origins, strict=False):
        shape = "×".join(str(n) for n in argument.shape or ())
        is_read = argument.access in ("read", "readwrite")
        source = origin if is_read else "written"
        print(f"tensor   {argument.name}  {argument.dtype} {shape}  {source}", file=out)


if __name__ == "__main__":
    sys.exit(main())
