"""Schedules: transform-dialect scripts that map a module to the hardware.

A schedule is a `.mlir` file whose module has `transform.with_named_sequence` and one or more of
three named sequences. `@__transform_placed` gets kernels on tiles when all tiles have layouts,
`@__transform_tiles` gets the module while tiles are read and written through layouts, and
`@__transform_main` gets it after the lego operations are lowered. Those that ship with the package
go by their name.

A module may name only one that ships with the package; a file is used if the user names it. The
file, too, may be a stranger's, so a script runs only if all its passes may (`allowed_passes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lego_mlir.compiler import allowed_passes
from lego_mlir.compiler.schedule_files import PLACED, is_shipped, names, read
from lego_mlir.diagnostics import LegoError, Location, with_guess
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir, transform_interpreter
from lego_mlir.mlir.context import Source, mlir_errors, parse
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.schedule.library import load_transform_dialect
from lego_mlir.mlir.schedule.transform_step import KEEP, PARAMETER, PassContext, run_in

TILES, MAIN = "__transform_tiles", "__transform_main"
"""The named sequences that the compiler runs after `PLACED`: before and after the lego operations
are lowered."""


def named_by(module: Any, source: Source) -> str | None:
    """Return the schedule that a module names by its attribute `lego.schedule`, if it has one.

    Raises:
        LegoError: the attribute is not the name of a schedule that ships with the package.
    """
    return name_in(module.operation, source)


def name_in(op: Any, source: Source) -> str | None:
    """Return the schedule that a module or a launch names by its attribute `lego.schedule`.

    Raises:
        LegoError: the attribute is not the name of a schedule that ships with the package.
    """
    if dialect.SCHEDULE not in op.attributes:
        return None
    attribute = op.attributes[dialect.SCHEDULE]
    if not isinstance(attribute, ir.StringAttr):
        raise source.error(
            f"{dialect.SCHEDULE} is a schedule's name in quotes, not '{attribute}'",
            op.location,
            hint=f'{dialect.SCHEDULE} = "cp_async"; there are: {", ".join(names())}',
        )
    name: str = ir.StringAttr(attribute).value
    if not is_shipped(name):
        raise source.error(
            f"there is no schedule '{name}' that a module may name by {dialect.SCHEDULE}",
            op.location,
            hint=f"there are: {', '.join(names())}; for a schedule in a file: --schedule=FILE",
        )
    return name


@dataclass(frozen=True)
class _Parsed:
    """The script of a schedule.

    Attributes:
        script: its text.
        library: its module.
        sequences: the named sequences of the module that the compiler runs.
    """

    script: Source
    library: Any
    sequences: Mapping[str, Any]


@dataclass(frozen=True)
class Schedule:
    """A schedule on its way through one compilation.

    Args:
        name: as `read` takes it.
        source: the payload's text.
        target: what it is compiled for.
        parameters: values that replace the defaults of the schedule's parameters.
        keep: whether to keep the payload's text after every step.

    Attributes:
        kept: names and texts of what was kept, in order.
        used_parameters: the parameters that its steps have read, with the values they took.

    Raises:
        LegoError: there is no such schedule.
    """

    name: str
    source: Source
    target: Target
    parameters: Mapping[str, int] = field(default_factory=dict)
    keep: bool = False
    kept: list[tuple[str, str]] = field(default_factory=list)
    used_parameters: dict[str, int] = field(default_factory=dict)
    _parsed: dict[Any, _Parsed] = field(default_factory=dict, init=False, repr=False, compare=False)

    def apply(self, module: Any, entry: str, layouts: Layouts) -> bool:
        """Run the named sequence `entry` on a module, in place; return whether there is one.

        Args:
            module: the module, or a launch of one.
            entry: `PLACED`, `TILES` or `MAIN`.
            layouts: reads the layouts of the module.

        Raises:
            LegoError: it does not parse, has none of the sequences, has a pass that may not run, or
                a step of it fails.
        """
        parsed = self._in_context(module.context)
        if entry not in parsed.sequences:
            return False
        script, sequence = parsed.script, parsed.sequences[entry]
        with module.context, ir.Location.unknown():
            if self.keep:
                _keep_every_step(sequence)
            with (
                run_in(self._pass_context(layouts, script)),
                mlir_errors(self.source, f"the schedule '{self.name}' failed", script),
            ):
                interpreter = transform_interpreter()
                interpreter.apply_named_sequence(
                    module.operation, sequence, parsed.library.operation
                )
        return True

    def _in_context(self, context: Any) -> _Parsed:
        """Return the script in a context, read once for all of its sequences.

        Raises:
            LegoError: as `apply`.
        """
        if self.keep or context not in self._parsed:  # steps that keep texts are put into it
            script = read(self.name)
            load_transform_dialect(context)
            library = parse(script, context)
            with context, ir.Location.unknown():
                sequences = _sequences(library, script)
                self._check_parameters(library, script)
                _check_passes(library, script)
            self._parsed[context] = _Parsed(script, library, sequences)
        return self._parsed[context]

    def _check_parameters(self, library: Any, script: Source) -> None:
        """Refuse values for parameters that the schedule does not have."""
        known = {
            op.attributes["name"].value: op.attributes["default"].value
            for op in operations_in(library.operation)
            if op.name == PARAMETER
        }
        for name in self.parameters:
            if name not in known:
                have = ", ".join(f"{n} = {default}" for n, default in known.items())
                raise LegoError(
                    f"the schedule '{self.name}' has no parameter '{name}'",
                    location=Location(script.file),
                    hint=with_guess(name, known, f"its parameters, with their defaults: {have}")
                    if have
                    else "it has none",
                )

    def _pass_context(self, layouts: Layouts, script: Source) -> PassContext:
        source, target = self.source, self.target
        return PassContext(
            source, script, layouts, target, self.parameters, self.kept, self.used_parameters
        )


def _sequences(library: Any, script: Source) -> dict[str, Any]:
    """Return the named sequences of a schedule that the compiler runs."""
    found = {
        op.operation.attributes["sym_name"].value: op.operation
        for op in library.body.operations
        if op.operation.name == "transform.named_sequence"
    }
    entries = {name: found[name] for name in (PLACED, TILES, MAIN) if name in found}
    if not entries:
        raise LegoError(
            f"the schedule has no named sequence @{MAIN}",
            location=Location(script.file, 1, 1),
            source=script.text,
            hint=f"transform.named_sequence @{MAIN}(%module: !transform.any_op {{...}}), "
            f"or @{TILES}, which runs before the lego operations are lowered, or @{PLACED}, which "
            "runs on kernels on tiles",
        )
    return entries


def _check_passes(library: Any, script: Source) -> None:
    """Refuse a script in which any sequence, run or not, has a pass that may not run.

    `apply_registered_pass` is the one operation of upstream's transform dialect by which a script
    reaches more than the payload.

    Raises:
        LegoError: at the first such operation.
    """
    for op in operations_in(library.operation):
        if op.name == "transform.apply_registered_pass":
            name = ir.StringAttr(op.attributes["pass_name"]).value
            refusal = allowed_passes.refusal(name, _pass_options(op))
            if refusal is not None:
                message, hint = refusal
                raise script.error(message, op.location, hint)


def _pass_options(op: Any) -> str | None:
    """Return the options of an `apply_registered_pass` as a pass pipeline spells them.

    `None` if not all of them are numbers and strings in the script itself.
    """
    listed = ir.DictAttr(op.attributes["options"]) if "options" in op.attributes else ()
    options = []
    for option in listed:
        match option.attr:
            case ir.StringAttr() | ir.BoolAttr() | ir.IntegerAttr() as attribute:
                options.append(f"{option.name}={attribute.value}")
            case _:
                return None
    return " ".join(options)


def _keep_every_step(sequence: Any) -> None:
    """Put a transform_lego.keep of the whole module after every step of a sequence."""
    body = sequence.regions[0].blocks[0]
    (module, *_) = body.arguments
    *steps, end = [op.operation for op in body.operations]
    for step, following in zip(steps, [*steps[1:], end], strict=True):
        name = ir.StringAttr.get(step.name.rpartition(".")[2])
        with ir.InsertionPoint(following):
            ir.Operation.create(KEEP, operands=[module], attributes={"name": name})
