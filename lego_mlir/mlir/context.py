"""Create contexts, parse modules, and turn MLIR's diagnostics into LegoErrors."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from lego_mlir import data
from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.mlir.bindings import ir, load_irdl, passmanager
from lego_mlir.mlir.encodings import note_kinds
from lego_mlir.mlir.nesting import check_nesting
from lego_mlir.mlir.pass_times import captured_report
from lego_mlir.timing import recording


@dataclass(frozen=True, slots=True)
class Source:
    """A text, and the name that errors and debug information have for it."""

    file: str
    text: str

    def error(
        self,
        message: str,
        location: Any,
        hint: str | None = None,
        kind: type[LegoError] = LegoError,
    ) -> LegoError:
        """Return an error at an MLIR location, with the source line if it lies in this text."""
        position = position_of(location)
        if position is None:
            return kind(message, hint=hint)
        text = self.text if position.file == self.file else None
        return kind(message, location=position, hint=hint, source=text)


def position_of(location: Any) -> Location | None:
    """Return the file position of an MLIR location, `None` if it has none.

    A diagnostic gives its location as the base class, so it is narrowed here first.
    """
    match ir.Location.from_attr(location.attr, location.context):
        case ir.FileLineColLoc() as at:
            return Location(at.filename, at.start_line, at.start_col)
        case ir.NameLoc() as named:
            return position_of(named.child_loc)
        case ir.CallSiteLoc() as call:
            return position_of(call.callee)
        case ir.FusedLoc() as fused:
            positions = (position_of(part) for part in fused.locations)
            return next((position for position in positions if position is not None), None)
    return None


@cache
def _dialect_text() -> str:
    return (data.dialects() / "lego.irdl.mlir").read_text()


def new_context() -> Any:
    """Return a new context with the lego dialect.

    Multithreading is off: with operations and passes defined in Python, MLIR's threads and
    Python's lock wait for each other.
    """
    context = ir.Context()
    context.enable_multithreading(False)
    with context:
        load_irdl(ir.Module.parse(_dialect_text()))
        note_kinds()
    return context


_of_thread = threading.local()

_MOST_USES = 32
"""How often a thread gets the same context: what modules bring into one stays in it."""


def shared_context() -> Any:
    """Return a context as `new_context` does; it may have had other modules of this thread.

    To load all dialects takes as long as to lower a small kernel.
    """
    uses_left = getattr(_of_thread, "uses_left", 0)
    if uses_left == 0:
        _of_thread.context, uses_left = new_context(), _MOST_USES
    _of_thread.uses_left = uses_left - 1
    return _of_thread.context


def parse(source: Source, context: Any) -> Any:
    """Parse a text and return its module, verified.

    Raises:
        LegoError: at the position where MLIR cannot parse it, or where it exceeds a limit.
    """
    check_nesting(source.file, source.text)
    # The parser names its input "-"; a file-line-column location of our own gives it its name.
    with context, mlir_errors(source):
        module = ir.Module.parse(source.text)
    rename_locations(module, source.file)
    return module


def rename_locations(module: Any, file: str) -> None:
    """Give the operations that were parsed from `-` the file's name."""

    def visit(op: Any) -> Any:
        location = op.location
        if position_of(location) is not None and location.filename == "-":
            op.location = ir.Location.file(
                file, location.start_line, location.start_col, context=op.context
            )
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)


def run_pipeline(
    module: Any, pipeline: str, source: Source, name: str, *, verify_each: bool = True
) -> None:
    """Run a textual pass pipeline in place.

    Args:
        module: the module.
        pipeline: its passes.
        source: the module's text, in which errors are shown.
        name: of the pipeline, for errors.
        verify_each: verify the module after every pass, which takes as long as the passes do; else
            only after the last.

    Raises:
        LegoError: the pipeline does not parse, or a pass fails; with MLIR's own words.
    """
    with module.context:
        try:
            manager = passmanager.PassManager.parse(pipeline)
        except (ValueError, ir.MLIRError) as e:
            reason = str(e).strip().splitlines()[0].rpartition(" error: ")[2]
            raise LegoError(
                f"the pass pipeline '{name}' is not understood: {reason}",
                hint="one pass a line or separated by commas, as in mlir-opt's --pass-pipeline",
            ) from None
        timings = recording()
        if timings is None or not timings.has_parts:
            _run(manager, module, source, name, verify_each)
            return
        manager.enable_timing()
        with captured_report() as report:
            try:
                _run(manager, module, source, name, verify_each)
            finally:
                del manager  # which prints the report
        timings.add_parts(report)


def _run(manager: Any, module: Any, source: Source, name: str, verify_each: bool) -> None:
    with mlir_errors(source, f"the pass pipeline '{name}' failed"):
        manager.enable_verifier(verify_each)
        manager.run(module.operation)
        if not verify_each:
            module.operation.verify()


@contextmanager
def mlir_errors(source: Source, what: str | None = None, *more: Source) -> Iterator[None]:
    """Turn MLIR's diagnostics into a LegoError: the first error, with its location.

    Args:
        source: the text that MLIR reads or works on.
        what: what failed, to begin the message with.
        more: other texts that a diagnostic may point into.
    """
    texts = {s.file: s.text for s in (source, *more)}
    try:
        yield
    except ValueError as e:  # how the transform interpreter tells of a failure
        found = _INTERPRETER_ERROR.search(str(e))
        if found is None:
            raise
        where = _FILE_LOCATION.match(found[1])
        position = Location(where[1], int(where[2]), int(where[3])) if where else None
        text = texts.get(where[1]) if where else None
        message = f"{what or 'MLIR'}: {_one_line(found[2])}"
        raise LegoError(message, location=position, source=text) from None
    except ir.MLIRError as e:
        diagnostics = list(e.error_diagnostics)
        if not diagnostics:
            raise LegoError(f"{what or 'MLIR'}: {_one_line(e)}") from None
        first = diagnostics[0]
        detail = _ASIDE.split(_one_line(first.message))[0]
        message = detail if what is None else f"{what}: {detail}"
        position = position_of(first.location)
        if position is None:
            raise LegoError(message) from None
        if position.file == "-":
            position = Location(source.file, position.line, position.column)
        hint = _hint(first.message)
        raise LegoError(
            message, location=position, source=texts.get(position.file), hint=hint
        ) from None


# What MLIR adds for the users of its own tools: an option that legoc has not, the operation's text.
_ASIDE = re.compile(r"\. If this is intended| that was explicitly marked illegal|, has \"\w")
_INTERPRETER_ERROR = re.compile(r"Diagnostic message at loc\((.*?)\): (.*)", re.DOTALL)
_FILE_LOCATION = re.compile(r'"(.*)":(\d+):(\d+)')


def _hint(message: str) -> str | None:
    if "unregistered operation 'lego." in message:
        names = re.findall(r"irdl\.operation @(\w+)", _dialect_text())
        return f"lego has: {', '.join(names)} (dialects/lego.irdl.mlir)"
    if "unregistered dialect" in message or "not found for custom op" in message:
        return "legoc knows lego and the dialects of upstream MLIR"
    if "failed to legalize operation 'gpu.func'" in message:
        return "a kernel takes memrefs of known shape, numbers and indices"
    if "does not dominate this use" in message:
        return (
            "what is made in a loop is not known after it: the loop carries it out, "
            "by iter_args, in Python by lg.fold"
        )
    if "expected dynamic attribute" in message:
        return 'the attribute of the lego dialect is #lego.layout<"...">'
    return None


def _one_line(e: object) -> str:
    return " ".join(str(e).split())
