"""Compiles a module to a stage, or explains its compilation."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lego_mlir.cli.streams import read, say, write
from lego_mlir.compiler.stages import BINARY, DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError, Location, printable
from lego_mlir.files import write_whole

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation


def compilation_of(options: Any) -> Compilation:
    """Return the compilation of the input with the options.

    Raises:
        LegoError: the input cannot be read, or the options do not suit it.
    """
    from lego_mlir.compiler.driver import Compilation
    from lego_mlir.compiler.options import Options
    from lego_mlir.hardware.targets import Target
    from lego_mlir.mlir.context import Source

    target = Target.parse(options.target or DEFAULT_TARGET)
    file, text = read(options.input)
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
            exact_division=options.exact_division,
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


def emit(options: Any) -> int:
    """Write the stage that the options name, or explain the compilation; return the exit status."""
    stage = options.emit or ("index" if options.schedule is None else "scheduled")
    if stage in BINARY and options.output is None and sys.stdout.isatty():
        raise LegoError(
            f"{stage} is binary and the output is a terminal", hint="write it to a file: -o FILE"
        )
    # Compiling multiplies no large matrices: NumPy need not start threads for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    compilation = compilation_of(options)
    with keeping(compilation, options.keep):
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
    write(options.output, data)
    return 0


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


def _warn(compilation: Compilation) -> None:
    for warning in compilation.cubin.warnings:
        say(f"warning: {warning}", sys.stderr)
