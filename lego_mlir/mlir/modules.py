"""Operations on whole modules: clone, walk, merge gpu.modules, keep launches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir

Functions: TypeAlias = dict[str, tuple[Any, dict[str, list[Any]]]]
"""Functions by their names, each with the operations inside of it by theirs."""


def clone_module(module: Any) -> Any:
    """Return a copy of a module, with its attributes and locations."""
    copy = ir.Module.create(module.operation.location)
    for name, attribute in named_attributes(module.operation).items():
        copy.operation.attributes[name] = attribute
    for op in module.body.operations:
        copy.body.append(op.operation.clone())
    return copy


def named_attributes(op: Any) -> dict[str, Any]:
    """Return the attributes of an operation by name."""
    return {name: op.attributes[name] for name in list(op.attributes)}


def body_of(op: Any) -> Any:
    """Return the block of a loop, role or launch."""
    return op.regions[0].blocks[0]


def surroundings(op: Any) -> Iterator[Any]:
    """Yield the operations around one, the innermost first."""
    around = op.parent
    while around is not None:
        yield around.operation
        around = around.operation.parent


def operations_in(op: Any, closed: Collection[str] = ()) -> Iterator[Any]:
    """Return the operations inside of one, outer before inner, as they are at the call.

    Args:
        op: the operation.
        closed: names of operations whose regions are skipped.
    """
    if not len(op.regions):
        return iter(())
    found: list[Any] = []
    append, advance, skip = found.append, ir.WalkResult.ADVANCE, ir.WalkResult.SKIP

    def note(inner: Any) -> Any:
        append(inner)
        return advance

    def note_closed(inner: Any) -> Any:
        append(inner)
        return skip if inner.name in closed else advance

    op.walk(note_closed if closed else note, ir.WalkOrder.PRE_ORDER)
    return itertools.islice(found, 1, None)


def first_inside(op: Any, is_wanted: Callable[[Any], bool]) -> Any | None:
    """Return the first operation in one that is wanted, `None` if there is none."""
    found = None

    def look(inner: Any) -> Any:
        nonlocal found
        if not is_wanted(inner) or inner == op:
            return ir.WalkResult.ADVANCE
        found = inner
        return ir.WalkResult.INTERRUPT

    op.walk(look, ir.WalkOrder.PRE_ORDER)
    return found


def has_inside(op: Any, is_wanted: Callable[[Any], bool]) -> bool:
    """Return whether an operation that is wanted is in one, which is not asked itself."""
    return first_inside(op, is_wanted) is not None


def launches_in(module: Any) -> list[Any]:
    """Return the gpu.launch_func's of a module, which stand outside of its gpu.modules."""
    outside = operations_in(module.operation, ("gpu.module",))
    return [op for op in outside if op.name == "gpu.launch_func"]


def keep_launches(module: Any) -> None:
    """Keep launches of kernels that store nothing, which MLIR would remove as dead code.

    Each gets `llvm.sideeffect`, which may not be removed and becomes no instruction.

    Args:
        module: changed in place; its context is the current one.
    """
    for op in operations_in(module.operation, ("gpu.launch",)):
        if op.name == "gpu.launch" and not _has_effect(op, dialect.FILLED in op.attributes):
            block = op.regions[0].blocks[0]
            held = {
                "intrin": ir.StringAttr.get("llvm.sideeffect"),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
                "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
            }
            with ir.InsertionPoint.at_block_begin(block), op.location:
                ir.Operation.create("llvm.call_intrinsic", attributes=held)


def _has_effect(launch: Any, has_tiles: bool) -> bool:
    """Return whether a kernel has an operation with a side effect.

    Stores of tiles stand in branches, and a mask that is proven to be false folds them away.
    """
    found = False

    def look(op: Any) -> Any:
        nonlocal found
        if has_tiles and op.name == "scf.if":
            return ir.WalkResult.SKIP
        is_structure = op.name.startswith(("scf.", "affine.", "cf.")) or op.name == _TERMINATOR
        found = not (list(op.results) or is_structure or op.name == "gpu.launch")
        found = found or op.name in _STORES
        return ir.WalkResult.INTERRUPT if found else ir.WalkResult.ADVANCE

    launch.walk(look, ir.WalkOrder.PRE_ORDER)
    return found


_TERMINATOR = "gpu.terminator"
_STORES = ("affine.store", "affine.vector_store")


def symbols_in(module: Any) -> Iterator[Any]:
    """Yield the functions and variables of a module's gpu.modules, as they are at the call."""
    for container in list(module.body.operations):
        if container.operation.name == "gpu.module":
            inside = container.operation.regions[0].blocks[0].operations
            yield from [op.operation for op in inside]


def functions_in(module: Any) -> Functions:
    """Return the functions of a module's one gpu.module, in the llvm dialect, as they are now."""
    found: Functions = {}
    for function in symbols_in(module):
        if function.name == "llvm.func":
            inside: dict[str, list[Any]] = {}
            for op in operations_in(function):
                inside.setdefault(op.name, []).append(op)
            found[function.attributes["sym_name"].value] = function, inside
    return found


def merge_gpu_modules(module: Any) -> None:
    """Move all kernels into the first gpu.module, so that one PTX text holds them.

    Outlining makes one gpu.module for each launch, and names the kernels of one function alike.
    Clashing names get a number; a declaration that several modules have is kept once.
    """
    containers = [
        op.operation for op in module.body.operations if op.operation.name == "gpu.module"
    ]
    if len(containers) < 2:
        return
    first, *others = containers
    home, target = _symbol(first), first.regions[0].blocks[0]
    taken = {_symbol(op.operation) for op in target.operations}
    moved: dict[tuple[Any, ...], Any] = {}
    for container in others:
        operations = [op.operation for op in container.regions[0].blocks[0].operations]
        kept = [op for op in operations if not (_symbol(op) in taken and _is_declaration(op))]
        # All are renamed where they still see one another, then all move.
        for op in kept:
            old = _symbol(op)
            if old is None:
                continue
            new = _fresh(old, taken)
            if new != old:
                ir.SymbolTable.replace_all_symbol_uses(old, new, container)
                ir.SymbolTable.set_symbol_name(op, new)
            taken.add(new)
            moved[_symbol(container), old] = new
        for op in kept:
            op.detach_from_parent()
            target.append(op)
    for op in launches_in(module):
        kernel = tuple(op.attributes["kernel"].value)
        if kernel in moved:
            op.attributes["kernel"] = ir.SymbolRefAttr.get([home, moved[kernel]])
    for container in others:
        container.erase()


def _fresh(name: str, taken: Collection[Any]) -> str:
    """Return the name, with the first number that makes it new if it is taken."""
    candidates = itertools.chain((name,), (f"{name}_{n}" for n in itertools.count()))
    return next(candidate for candidate in candidates if candidate not in taken)


def _is_declaration(op: Any) -> bool:
    return op.name == "llvm.func" and not list(op.regions[0].blocks)


def _symbol(op: Any) -> Any:
    return op.attributes["sym_name"].value if "sym_name" in op.attributes else None
