"""legoc, the command: compiles `.mlir` files with LEGO layouts, and runs them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn, TextIO

from lego_mlir.artifact import Artifact
from lego_mlir.compiler.stages import BINARY, DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location, printable, shown_warnings
from lego_mlir.files import write_whole
from lego_mlir.limits import Limits
from lego_mlir.options import parser, template_parser
from lego_mlir.timing import reported, timed

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation
    from lego_mlir.runtime.references import Comparison

_BUNDLE = b"PK\x03\x04"  # a zip file
_STDIN, _STDOUT = "<stdin>", "<stdout>"
_INTERRUPTED = 130  # as shells say it: 128 and the signal's number
_TRACEBACK = "LEGO_MLIR_TRACEBACK"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack some of our characters
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    command: Callable[[Any], int]
    if words[:1] == ["template"]:
        options, command = template_parser().parse_args(words[1:]), _fill
    else:
        options = parser().parse_args(words)
        command = _command(options)
    interruption = _Interruption()
    try:
        with (
            interruption,
            shown_warnings(_warned),
            Limits.parse(options.limits).applied(),
            reported(options, lambda text: _say(text, sys.stderr, keep="\n")),
        ):
            return command(options)
    except KeyboardInterrupt as e:
        return _interrupted(str(e))
    except Exception as e:
        return _interrupted("") if interruption.came else _failed(e)


def _command(options: Any) -> Callable[[Any], int]:
    """Return what the options of the main command ask for."""
    if options.language:
        return _print
    if options.draw:
        return _draw
    if options.check_each_step:
        return _check_each_step
    return _run if options.run else _emit


def _warned(text: str) -> None:
    _say(text, sys.stderr, keep="\n")


def _interrupted(what: str) -> int:
    """Print that Ctrl-C ended the command, in one line, and return the exit status."""
    _say(f"legoc: interrupted{': ' if what else ''}{what}", sys.stderr)
    return _INTERRUPTED


class _Interruption:
    """Records whether Ctrl-C was pressed: MLIR replaces exceptions that its callbacks raise."""

    came = False

    def __enter__(self) -> None:
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._before = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt


@contextlib.contextmanager
def _stdout() -> Iterator[TextIO]:
    """Provide the standard output, and flush it at the end.

    Raises:
        BrokenPipeError: whoever reads it has gone.
        LegoError: it cannot be written.
    """
    try:
        if sys.stdout is None:  # closed by the caller, as by >&-
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        yield sys.stdout
        sys.stdout.flush()
    except OSError as e:
        sys.stdout = None  # else Python tries again when it exits
        if isinstance(e, BrokenPipeError):
            raise
        raise LegoError(f"cannot be written: {e.strerror}", location=Location(_STDOUT)) from None


def _failed(error: Exception) -> int:
    """Print the error and return the exit status."""
    try:
        raise error
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        return 0
    except MemoryError:
        print(
            "error: this needs more memory than there is\nhint: use smaller sizes", file=sys.stderr
        )
        return 1
    except RecursionError:
        print("error: the input is nested too deeply to be read", file=sys.stderr)
        return 1
    except Exception as e:
        if os.environ.get(_TRACEBACK):
            import traceback

            traceback.print_exc()
        print(
            f"error: legoc has a bug here ({printable(f'{type(e).__name__}: {e}')})\n"
            f"hint: {_TRACEBACK}=1 shows where; please report it with the input",
            file=sys.stderr,
        )
        return 1


# Printing.
def _print(options: Any) -> int:
    from lego_mlir.printers.command import printed_layout

    name = options.name or "layout"
    text = printed_layout(options.input, options.language, name, dict(options.sizes))
    _write(options.output, text.encode())
    return 0


def _fill(options: Any) -> int:
    from lego_mlir.printers.templates import language_of, render

    file, text = _read(options.input, "a template")
    language = options.language or language_of(file)
    filled = render(text, dict(options.values), language, file)
    _write(options.output, filled.encode())
    return 0


# Compiling.
def _compilation(options: Any) -> Compilation:
    with timed("imports"):
        from lego_mlir.compiler.driver import Compilation, Options
        from lego_mlir.hardware.targets import Target
        from lego_mlir.mlir.context import Source

    target = Target.parse(options.target or DEFAULT_TARGET)
    if options.verbose:
        _say(f"legoc: target {target.name}", sys.stderr)
    file, text = _read(options.input)
    compilation = Compilation(
        Source(file, text),
        Options(
            target=target,
            sizes=dict(options.sizes),
            schedule=options.schedule,
            parameters=dict(options.parameters),
            keep=options.keep is not None,
            pipelines=dict(options.pipelines),
            isolate=True,
            exact_math=options.exact_math,
            check=bool(options.check),
        ),
    )
    for flag, value, is_used in (
        ("--param", options.parameters, compilation.schedule is not None),
        ("--keep", options.keep, compilation.has_schedule),
    ):
        if value and not is_used:
            raise LegoError(
                f"{flag} needs a schedule, and the module names no schedule",
                location=Location(file),
                hint="add --schedule=NAME",
            )
    return compilation


def _read(file: str, what: str = "a .mlir file") -> tuple[str, str]:
    """Return the name and the text of the input, which should be `what`."""
    name = _STDIN if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        if data.startswith(_BUNDLE):
            raise LegoError(
                "the input is a bundle, compiled already",
                location=Location(name),
                hint="run it from its file: legoc FILE.lego --run",
            )
        text = data.decode("utf-8-sig")  # some editors put a byte-order mark first
        return name, text
    except OSError as e:
        raise LegoError(
            f"cannot read the input: {e.strerror}",
            location=Location(name),
            hint=f"give {what}, or - for stdin",
        ) from None
    except UnicodeDecodeError:
        raise LegoError(
            "the input is no text",
            location=Location(name),
            hint="legoc reads .mlir files, and with --run the bundles it makes",
        ) from None


def _emit(options: Any) -> int:
    stage = options.emit or ("index" if options.schedule is None else "scheduled")
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

            data = printable(explain(compilation), "\n").encode()
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
        if directory is not None:
            try:
                Path(directory).mkdir(parents=True, exist_ok=True)
            except OSError as e:
                raise LegoError(
                    f"cannot make the folder of --keep: {e.strerror}", location=Location(directory)
                ) from None
            for number, (name, text) in enumerate(compilation.schedules.kept):
                write_whole(Path(directory, f"{number:02}-{name}.mlir"), text.encode())


def _warn(compilation: Compilation) -> None:
    for warning in compilation.cubin.warnings:
        _say(f"warning: {warning}", sys.stderr)


def _write(output: str | None, data: bytes) -> None:
    """Write the whole output, or nothing."""
    if output is None or output == "-":
        with _stdout() as out:
            out.buffer.write(data)
        return
    try:
        write_whole(output, data)
    except LegoError as e:
        e.hint = e.hint or "-o names a file in a folder that exists; without it, stdout is written"
        raise


def _check_each_step(options: Any) -> int:
    from lego_mlir.runtime.npy import load_npy
    from lego_mlir.step_checks import check_each_step

    compilation = _compilation(options)
    lines = check_each_step(compilation, [load_npy(path) for path in options.arrays])
    with _stdout() as out:
        for line in lines:
            _say(line, out)
    return 0


# Drawing.
def _draw(options: Any) -> int:
    from lego_mlir.pictures import command

    sizes = dict(options.sizes)
    if options.input == "-" or options.input.endswith(".mlir"):
        from lego_mlir.mlir.context import Source
        from lego_mlir.mlir.named_layouts import named_layouts

        module = named_layouts(Source(*_read(options.input)), sizes)  # outlives its layouts
        layouts = module.chosen(options.arrays)
    else:
        layouts = command.layouts_of([options.input, *options.arrays], options.access, sizes)
    draw, columns = command.drawing(layouts, options, sizes)
    if options.output is None:
        with _stdout() as out:
            command.print_fitting(draw, columns, out)
    else:
        _write(options.output, draw(columns=columns).svg().encode())
    return 0


# Running.
def _run_ptx(options: Any) -> int:
    """Run a kernel of a PTX file in the simulator."""
    from lego_mlir.runtime.npy import save_npy
    from lego_mlir.runtime.ptx_files import PtxLaunch, run_ptx

    _check_compiled(options)
    file, text = _read(options.input)
    try:
        done = run_ptx(text, file, PtxLaunch.of(options))
    except LegoError as e:
        raise e.at(Location(file)) from None
    saved = save_npy(options.save, done.outputs()) if options.save else ()
    with _stdout() as out:
        for line in done.lines():
            _say(line, out)
        for path in saved:
            _say(f"saved    {path}", out)
        if done.costs is not None:
            from lego_mlir.sim.cost.report import report

            _say(report(done.costs), out, keep="\n")
    return 0


def _run(options: Any) -> int:
    if options.input.endswith(".ptx"):
        return _run_ptx(options)
    from lego_mlir import runtime

    device = runtime.select(options.device, costs=options.report, order=options.sim_order)
    artifact = _loaded(options)
    functions: Mapping[str, Callable[..., Any]] = {}
    if artifact is None:
        options.target = options.target or device.target
        if options.check is None:  # what is counted is the kernel as a GPU gets it
            options.check = device.name == "sim" and not options.report
        compilation = _compilation(options)
        with _keeping(compilation, options.keep):
            artifact = compilation.artifact(assemble=device.name == "cuda")
        functions = compilation.functions
        _check_reference(artifact, compilation)
    try:
        result = runtime.run(
            artifact, options.arrays, device=device, seed=options.seed, functions=functions
        )
    except LegoError as e:
        raise e.at(Location(_STDIN if options.input == "-" else options.input)) from None
    saved = result.save(options.save) if options.save else ()
    with _stdout() as out:
        _describe(artifact, result.device, options, out)
        for path in saved:
            _say(f"saved    {path}", out)
        if options.report:
            from lego_mlir.sim.cost.report import report

            for costs in result.costs:
                _say(report(costs), out, keep="\n")
        _say(f"check    {_verdict(artifact, result.comparison)}", out)
    return 0 if result.comparison is None or result.comparison.equal else 1


def _check_reference(artifact: Artifact, compilation: Compilation) -> None:
    """Refuse a module that names a reference which there is none of, at the line that names it."""
    from lego_mlir.mlir import dialect
    from lego_mlir.runtime import references

    if artifact.reference is None:
        return
    try:
        references.find(artifact.reference)
    except LegoError as e:
        text = compilation.source.text
        before, found, _ = text.partition(dialect.REFERENCE)
        if not found:
            raise
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise e.at(Location(compilation.source.file, line, column), text) from None


def _verdict(artifact: Artifact, comparison: Comparison | None) -> str:
    """Return a sentence on how the outputs compare with the reference."""
    if comparison is None:
        return "none: the module names no lego.reference"
    right = "equal to" if comparison.exact else "agrees with"
    verdict = right if comparison.equal else "DIFFERENT from"
    return f"{verdict} NumPy's {artifact.reference}: {comparison}"


def _loaded(options: Any) -> Artifact | None:
    """Return the artifact that the input is; `None` if it is a module.

    Raises:
        LegoError: an option asks to compile it.
    """
    path = Path(options.input)
    if options.input != "-" and path.is_file() and os.access(path, os.R_OK):
        with path.open("rb") as f:
            if f.read(len(_BUNDLE)) == _BUNDLE:
                _check_compiled(options)
                return Artifact.load(path)
    return None


def _check_compiled(options: Any) -> None:
    """Reject options of the compiler if the input is compiled already."""
    compiler_options = {
        "--target": options.target,
        "--set": options.sizes,
        "--schedule": options.schedule,
        "--param": options.parameters,
        "--keep": options.keep,
        "--pass-pipeline": options.pipelines,
        "--check": options.check,
    }
    for flag, value in compiler_options.items():
        if value:
            raise LegoError(
                f"{flag} is for compiling, and the input is compiled already",
                location=Location(options.input),
                hint="give it when the input is made, such as with --emit=bundle",
            )


def _describe(artifact: Artifact, device: str, options: Any, out: IO[str]) -> None:
    _say(f"device   {device}", out)
    for launch in artifact.launches:
        _say(f"kernel   {launch}", out)
    tensors = [a for a in artifact.arguments if a.shape is not None]
    origins = [*options.arrays, *([f"random, seed {options.seed}"] * len(tensors))]
    for argument, origin in zip(tensors, origins, strict=False):
        shape = "×".join(str(n) for n in argument.shape or ())
        is_read = argument.access in ("read", "readwrite")
        source = origin if is_read else "written"
        _say(f"tensor   {argument.name}  {argument.dtype} {shape}  {source}", out)


def _say(text: str, out: IO[str], keep: str = "") -> None:
    """Print what may have names of a stranger's in it; `keep` is as `printable` takes it."""
    print(printable(text, keep), file=out)


if __name__ == "__main__":
    sys.exit(main())
