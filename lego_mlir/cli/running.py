"""Runs a module, a bundle or a kernel of a PTX file, and compares the outputs."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lego_mlir.artifact import Artifact
from lego_mlir.cli.compiling import compilation_of, inputs_of, keeping
from lego_mlir.cli.streams import BUNDLE, STDIN, read, say, stdout
from lego_mlir.compiler.cached import compiled, key_of
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.mlir.context import Source

if TYPE_CHECKING:
    from lego_mlir.compiler.driver import Compilation
    from lego_mlir.runtime import RunResult
    from lego_mlir.runtime.references import Comparison


def run(options: Any) -> int:
    """Run the input, print what ran and the comparison, and return the exit status."""
    if options.input.endswith(".ptx"):
        return _run_ptx(options)
    from lego_mlir import runtime

    device = runtime.select(options.device, costs=options.report, order=options.sim_order)
    artifact = _loaded(options)
    compilation = None
    if artifact is None:
        options.target = options.target or device.target
        if options.check is None:  # what is counted is the kernel as a GPU gets it
            options.check = device.name == "sim" and not options.report
        artifact, compilation = _compiled(options, is_assembled=device.name == "cuda")
    functions = {} if compilation is None else compilation.functions  # which it must outlive
    try:
        arrays, shapes = _given(artifact, options.arrays)
        result = runtime.run(
            artifact, arrays, device=device, seed=options.seed, functions=functions, shapes=shapes
        )
    except LegoError as e:
        raise e.at(Location(STDIN if options.input == "-" else options.input)) from None
    saved = result.save(options.save) if options.save else ()
    with stdout() as out:
        _describe(artifact, result, options, out)
        for path in saved:
            say(f"saved    {path}", out)
        if options.report:
            from lego_mlir.sim.cost.report import report

            for costs in result.costs:
                say(report(costs), out, keep="\n")
        say(f"check    {_verdict(artifact, result.comparison)}", out)
    return 0 if result.comparison is None or result.comparison.equal else 1


def _given(
    artifact: Artifact, arrays: Sequence[str]
) -> tuple[list[str | None], dict[str, tuple[int, ...]]]:
    """Return the arrays by position, and by name the shapes of those that only have one."""
    given: list[str | None] = list(arrays)
    shapes = {}
    for number, (argument, text) in enumerate(zip(artifact.arguments, arrays, strict=False)):
        if argument.shape is None or not _SHAPE.fullmatch(text):
            continue
        shape = tuple(map(int, text.split("x")))
        given[number], shapes[argument.name] = None, shape
    return given, shapes


_SHAPE = re.compile(r"[0-9]{1,15}(x[0-9]{1,15})*")
"""What stands for a random tensor: its sizes, `64x100`."""


def _compiled(options: Any, *, is_assembled: bool) -> tuple[Artifact, Compilation | None]:
    """Return the artifact of the module that the input is.

    Returns:
        The artifact; and the compilation, if arguments have layouts that name its functions.
    """
    source, how = inputs_of(options)
    compilation = functools.cache(lambda: compilation_of(source, how))
    key = key_of(source, how, "bundle", is_assembled=is_assembled)
    if key is not None:
        artifact = compiled(key, compilation).artifact
    else:
        with keeping(compilation(), options.keep):
            artifact = compilation().artifact(assemble=is_assembled)
    _check_reference(artifact, source)
    has_functions = any("@" in (argument.layout or "") for argument in artifact.arguments)
    return artifact, compilation() if has_functions else None


def _check_reference(artifact: Artifact, source: Source) -> None:
    """Refuse a module that names a reference which there is none of, at the line that names it."""
    from lego_mlir.mlir import dialect
    from lego_mlir.runtime import references

    if artifact.reference is None:
        return
    try:
        references.find(artifact.reference)
    except LegoError as e:
        before, found, _ = source.text.partition(dialect.REFERENCE)
        if not found:
            raise
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise e.at(Location(source.file, line, column), source.text) from None


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
            if f.read(len(BUNDLE)) == BUNDLE:
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


def _describe(artifact: Artifact, result: RunResult, options: Any, out: IO[str]) -> None:
    say(f"device   {result.device}", out)
    for launch in result.launches:
        say(f"kernel   {launch}", out)
    tensors = [a for a in artifact.arguments if a.shape is not None]
    drawn = f"random, seed {options.seed}"
    origins = [drawn if _SHAPE.fullmatch(text) else text for text in options.arrays]
    origins += [drawn] * len(tensors)
    for argument, origin in zip(tensors, origins, strict=False):
        sizes: tuple[int | None, ...] = argument.shape or ()
        if None in sizes:
            sizes = {**result.inputs, **result.outputs}[argument.name].shape
        shape = "×".join(str(n) for n in sizes)
        is_read = argument.access in ("read", "readwrite")
        source = origin if is_read else "written"
        say(f"tensor   {argument.name}  {argument.dtype} {shape}  {source}", out)


def _run_ptx(options: Any) -> int:
    """Run a kernel of a PTX file in the simulator."""
    from lego_mlir.runtime.npy import save_npy
    from lego_mlir.runtime.ptx_files import PtxLaunch, run_ptx

    _check_compiled(options)
    file, text = read(options.input)
    try:
        done = run_ptx(text, file, PtxLaunch.of(options))
    except LegoError as e:
        raise e.at(Location(file)) from None
    saved = save_npy(options.save, done.outputs()) if options.save else ()
    with stdout() as out:
        for line in done.lines():
            say(line, out)
        for path in saved:
            say(f"saved    {path}", out)
        if done.costs is not None:
            from lego_mlir.sim.cost.report import report

            say(report(done.costs), out, keep="\n")
    return 0
