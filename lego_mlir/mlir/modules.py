"""Whole modules: copies, and kernels brought together."""

from __future__ import annotations

from typing import Any

from lego_mlir.mlir.bindings import ir


def clone_module(module: Any) -> Any:
    """A copy of a module, with its attributes and locations."""
    copy = ir.Module.create(module.operation.location)
    for name, attribute in named_attributes(module.operation).items():
        copy.operation.attributes[name] = attribute
    for op in module.body.operations:
        copy.body.append(op.operation.clone())
    return copy


def named_attributes(op: Any) -> dict[str, Any]:
    """The attributes of an operation by name."""
    return {name: op.attributes[name] for name in list(op.attributes)}


def merge_gpu_modules(module: Any) -> None:
    """Bring all kernels into the first gpu.module, so that one PTX text holds them.

    Outlining makes one gpu.module a launch. Their kernels have different names; a declaration
    that several need is kept once.
    """
    containers = [op.operation for op in module.body.operations if op.operation.name == "gpu.module"]
    if len(containers) < 2:
        return
    first, *others = containers
    target = first.regions[0].blocks[0]
    known = {_symbol(op.operation) for op in target.operations}
    for container in others:
        for op in list(container.regions[0].blocks[0].operations):
            name = _symbol(op.operation)
            if name is None or name not in known:
                op.operation.detach_from_parent()
                target.append(op)
                known.add(name)
    home = _symbol(first)
    merged = {_symbol(container) for container in others}
    for func in module.body.operations:
        _redirect(func.operation, merged, home)
    for container in others:
        container.erase()


def _redirect(op: Any, merged: set[Any], home: Any) -> None:
    """Point launches of kernels that moved at where they are now."""
    if op.name == "gpu.launch_func":
        container, kernel = list(op.attributes["kernel"].value)
        if container in merged:
            op.attributes["kernel"] = ir.SymbolRefAttr.get([home, kernel])
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _redirect(inner.operation, merged, home)


def _symbol(op: Any) -> Any:
    return op.attributes["sym_name"].value if "sym_name" in op.attributes else None
