"""Calls and returns. Source: PTX ISA 7.1 (functions), 9.7.12.4 (brx.idx), 9.7.12.5, 9.7.12.6.

A call copies its arguments into the callee's parameters, and behind the return the results into the
caller's variables. Both lie in local memory, or in registers where PTX says `.reg`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lego_mlir.sim.instructions.system_calls import SYSTEM_CALLS
from lego_mlir.sim.ptx.decoded import Call, Called, Exit, Handler, Return, Switch
from lego_mlir.sim.ptx.form import Form
from lego_mlir.sim.ptx.linking import call_operands
from lego_mlir.sim.ptx.syntax import Function, Operand, Parameter, Register, Sink, Symbol
from lego_mlir.sim.ptx.table import instruction
from lego_mlir.sim.ptx.types import B64, TYPES, U32, Array

if TYPE_CHECKING:
    from lego_mlir.sim.machine.wave import Wave

Get = Callable[["Wave"], Array]
"""Returns the bytes of a value in each lane: (lanes, size)."""
Put = Callable[["Wave", Array], None]
"""Writes such bytes in the active lanes."""


@instruction("9.7.12.4", "brx idx [uni]")
def brx(form: Form) -> Switch:
    """Branch to the label of a `.branchtargets` that an index selects."""
    form.expect(2)
    table = form.operands[1]
    tables = {} if form.symbols.linked is None else form.symbols.linked.kernel.tables
    targets = tables.get(table.name, ()) if isinstance(table, Symbol) else ()
    if not targets or any(target not in form.symbols.labels for target in targets):
        form.fail(f"{table} is no list of labels of this kernel", table)
    return Switch(form.read(form.operands[0], U32), targets)


@instruction("9.7.12.6", "ret [uni]")
def ret(form: Form) -> Exit | Return:
    """Return from a function; a kernel has no caller, so there it ends the thread."""
    form.expect(0)
    function = form.symbols.function
    if function is None:
        return Exit()
    for result in function.results:
        if result.register:
            form.read(Register(result.name), result.kind)
    return Return()


@instruction("9.7.12.5", "call [uni]")
def call(form: Form) -> Call | Handler:
    """Call a function of the module, by name or by address, or the system (`vprintf`).

    A call by address may reach each function whose address is taken and whose parameters and
    results have the sizes that are passed.
    """
    results, target, arguments = call_operands(form.instruction)
    linked, caller = form.symbols.linked, form.symbols.function
    assert linked is not None
    name = None if caller is None else caller.name
    match target:
        case Symbol(callee):
            function = form.symbols.module.functions.get(callee)
            if function is None:
                form.fail(f"{callee} is no function of this module", target)
            if function.declared:
                return _system_call(form, function, results, arguments)
            found, read = [function], None
            _check_sizes(form, function, results, arguments)
        case Register():
            read = form.read(target, B64)
            sizes = _sizes(form, results), _sizes(form, arguments)
            found = [f for f in linked.indirect if _fits(f, *sizes)]
            if not found:
                form.fail("no function whose address is taken has these parameters", target)
        case _:
            form.fail("a call without a function")
    callees = {
        form.address(Symbol(f.name), f.name)[1]: _called(form, f, results, arguments) for f in found
    }
    again = linked.recursive.get(name or "", frozenset())
    saved: tuple[int, ...] = ()
    if caller is not None and any(f.name in again for f in found):
        saved = tuple(form.symbols.registers[r][0] for r in caller.registers)
    return Call(read, callees, name, saved)


def _called(
    form: Form, function: Function, results: Sequence[Operand], arguments: Sequence[Operand]
) -> Called:
    """Return what passes values between the operands of a call and a function."""
    caller = form.symbols.function
    frame = form.symbols.frames[None if caller is None else caller.name]
    ins = [
        (_get(form, operand, p), _put(form, _formal(p), p, frame))
        for operand, p in zip(arguments, function.parameters, strict=True)
    ]
    # The callee reads these registers, where it returns.
    inner = Form(form.instruction, form.symbols, form.section)
    outs = [
        (_get(inner, _formal(p), p, frame), _put(form, operand, p))
        for operand, p in zip(results, function.results, strict=True)
    ]

    def enter(w: Wave) -> None:
        for value, put in [(get(w), put) for get, put in ins]:
            put(w, value)

    def leave(w: Wave) -> Handler:
        values = [get(w) for get, _ in outs]

        def write(w: Wave) -> None:
            for value, (_, put) in zip(values, outs, strict=True):
                put(w, value)

        return write

    return Called(function.name, enter, leave)


def _formal(parameter: Parameter) -> Operand:
    return Register(parameter.name) if parameter.register else Symbol(parameter.name)


def _place(form: Form, operand: Operand) -> int | None:
    """Return the offset in its frame of a variable that passes a value; None for a value."""
    if isinstance(operand, Symbol):
        space, at = form.symbols.addresses.get(operand.name, ("", 0))
        if space in ("local", "frame"):
            return at
    return None


def _get(form: Form, operand: Operand, parameter: Parameter, shift: int = 0) -> Get:
    """Return a reader of an argument's or result's bytes; its frame is `shift` bytes further."""
    size, at = parameter.size, _place(form, operand)
    if at is not None:
        start = at + shift
        return lambda w: w.calls.read(start, size)
    if parameter.kind.kind == "pred":
        read = form.read(operand, parameter.kind)
    elif parameter.is_array or size not in (1, 2, 4, 8):
        form.fail(f"the operand {operand} where {size} bytes should stand", operand)
    elif isinstance(operand, Register):
        read = form.read(operand, TYPES[f"b{8 * size}"], wider=True)
    else:
        typed, storage = form.read(operand, parameter.kind), parameter.kind.storage
        return lambda w: _bytes(w, typed(w).view(storage))
    return lambda w: _bytes(w, read(w))


def _bytes(w: Wave, value: Array) -> Array:
    whole = np.ascontiguousarray(np.broadcast_to(value, w.lanes))
    return whole.view(np.uint8).reshape(w.lanes, -1)


def _put(form: Form, operand: Operand, parameter: Parameter, shift: int = 0) -> Put:
    """Return a writer of an argument's or result's bytes, as `_get` reads them."""
    at = _place(form, operand)
    if at is not None:
        start = at + shift
        return lambda w, value: w.calls.write(start, value)
    if isinstance(operand, Sink):
        return lambda w, value: None
    if parameter.kind.kind == "pred":
        kind = parameter.kind
    else:
        kind = TYPES[f"b{8 * parameter.size}"]
    write, storage = form.write(operand, kind, wider=True), kind.storage
    return lambda w, value: write(w, np.ascontiguousarray(value).view(storage).reshape(-1))


# --- do a call and a function agree? ---


def _sizes(form: Form, operands: Sequence[Operand]) -> list[int | None]:
    """Return the bytes that each operand passes; None: any."""
    found: list[int | None] = []
    for operand in operands:
        size = None
        if isinstance(operand, Symbol):
            variables = form.symbols.variables
            size = variables.get(operand.name)
        elif isinstance(operand, Register) and operand.name in form.symbols.registers:
            size = max(form.symbols.registers[operand.name][1].bits // 8, 1)
        found.append(size)
    return found


def _fits(
    function: Function, results: Sequence[int | None], arguments: Sequence[int | None]
) -> bool:
    """Return whether a function takes and returns values of these sizes."""
    for sizes, parameters in ((results, function.results), (arguments, function.parameters)):
        if len(sizes) != len(parameters):
            return False
        if any(
            n is not None and n != p.size and not p.register
            for n, p in zip(sizes, parameters, strict=True)
        ):
            return False
    return True


def _check_sizes(
    form: Form, function: Function, results: Sequence[Operand], arguments: Sequence[Operand]
) -> None:
    for what, operands, parameters in (
        ("results", results, function.results),
        ("arguments", arguments, function.parameters),
    ):
        if len(operands) != len(parameters):
            form.fail(f"{len(operands)} {what} where {function.name} has {len(parameters)} of them")
        for operand, size, p in zip(operands, _sizes(form, operands), parameters, strict=True):
            if _place(form, operand) is not None and size != p.size:
                form.fail(f"{operand} of {size} bytes where {p.name} has {p.size}", operand)


def _system_call(
    form: Form, function: Function, results: Sequence[Operand], arguments: Sequence[Operand]
) -> Handler:
    perform = SYSTEM_CALLS.get(function.name)
    if perform is None:
        known = ", ".join(SYSTEM_CALLS)
        form.fail(f"{function.name} is declared without a body, and is none of {known}:")
    _check_sizes(form, function, results, arguments)
    gets = [_get(form, o, p) for o, p in zip(arguments, function.parameters, strict=True)]
    puts = [(_put(form, o, p), p.size) for o, p in zip(results, function.results, strict=True)]

    def execute(w: Wave) -> None:
        values = [_number(get(w)) for get in gets]
        result = perform(w, values)
        for put, size in puts:
            put(w, result.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :size])

    return execute


def _number(data: Array) -> Array:
    """Return the bytes of each lane as an unsigned integer."""
    whole = np.zeros((len(data), 8), np.uint8)
    whole[:, : data.shape[1]] = data
    return whole.view("<u8").reshape(-1)
