"""Compiles a module to a stage, or explains its compilation."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lego_mlir.cache.entries import Entry
from lego_mlir.cli.streams import read, say, stdout, write
from lego_mlir.compiler.cached import PRODUCTS, compiled, key_of, produce
from lego_mlir.compiler.options import Options
from lego_mlir.compiler.stages import BINARY, DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location, printable
from lego_mlir.files import write_whole
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir.context import Source
from lego_mlir.timing import timed

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation


def inputs_of(options: Any) -> tuple[Source, Options]:
    """Return the input, and how it is compiled.

    Raises:
        LegoError: the input cannot be read, or there is no such target.
    """
    target = Target.parse(options.target or DEFAULT_TARGET)
    if options.verbose:
        say(f"legoc: target {target.name}", sys.stderr)
    if options.input.endswith(".py"):
        raise LegoError(
            "this is a Python program, and legoc compiles .mlir modules",
            location=Location(options.input),
            hint="run it by python: kernel(...) launches a kernel, and "
            "kernel.compile().save('k.lego') writes a bundle, which legoc runs",
        )
    file, text = read(options.input)
    how = Options(
        target=target,
        sizes=dict(options.sizes),
        schedule=options.schedule,
        parameters=dict(options.parameters),
        keep=options.keep is not None,
        pipelines=dict(options.pipelines),
        isolate=True,
        exact_math=options.exact_math,
        check=bool(options.check),
    )
    return Source(file, text), how


def compilation_of(source: Source, how: Options) -> Compilation:
    """Return the compilation of an input.

    Raises:
        LegoError: it is no module, or the options do not suit it.
    """
    with timed("imports"):
        from lego_mlir.compiler.driver import Compilation

    compilation = Compilation(source, how)
    for flag, value, is_used in (
        ("--param", how.parameters, compilation.schedule is not None),
        ("--keep", how.keep, compilation.has_schedule),
    ):
        if value and not is_used:
            raise LegoError(
                f"{flag} needs a schedule, and the module names no schedule",
                location=Location(source.file),
                hint="add --schedule=NAME",
            )
    return compilation


def emit(options: Any) -> int:
    """Write the stage that the options name, or explain the compilation; return the exit status."""
    stage = options.emit or ("index" if options.schedule is None else "scheduled")
    if stage in BINARY and options.output is None and sys.stdout.isatty():
        raise LegoError(
            f"{stage} is binary and the output is a terminal", hint="write it to a file: -o FILE"
        )
    # Compiling multiplies no large matrices: NumPy need not start threads for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    source, how = inputs_of(options)
    key = None
    if stage in PRODUCTS and not options.explain:
        key = key_of(source, how, stage)
    if key is not None:
        entry = compiled(key, lambda: compilation_of(source, how))
    else:
        compilation = compilation_of(source, how)
        with keeping(compilation, options.keep):
            entry = _explained(compilation) if options.explain else produce(compilation, stage)
    for warning in entry.warnings:
        say(f"warning: {warning}", sys.stderr)
    write(options.output, entry.data)
    return 0


def check_each_step(options: Any) -> int:
    """Compare the results of each step of the compilation; return the exit status."""
    from lego_mlir.runtime.npy import load_npy
    from lego_mlir.step_checks import check_each_step

    compilation = compilation_of(*inputs_of(options))
    lines = check_each_step(compilation, [load_npy(path) for path in options.arrays])
    with stdout() as out:
        for line in lines:
            say(line, out)
    return 0


def _explained(compilation: Compilation) -> Entry:
    from lego_mlir.compiler.explanation import explain

    return Entry(printable(explain(compilation), "\n").encode())


@contextlib.contextmanager
def keeping(compilation: Compilation, directory: str | None) -> Iterator[None]:
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
