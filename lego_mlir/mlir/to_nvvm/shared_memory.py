"""Shared memory of kernels: how much they have, and dynamic memory where static memory ends.

A kernel may declare 48 KiB of shared memory. What it has beyond is dynamic: one buffer without a
size, whose bytes each launch names. So where the variables of a kernel in the llvm dialect,

    llvm.mlir.global internal @a() {addr_space = 3} : !llvm.array<20480 x f32>
    %a = llvm.mlir.addressof @a

together exceed that, they become parts of the dynamic buffer, behind what the kernel has there
already, and its launches get so many bytes more:

    %memory = llvm.mlir.addressof @__dynamic_shmem__0
    %a = llvm.getelementptr %memory[0]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir.bindings import arith, ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.lowering.buffers import DYNAMIC_ALIGNMENT, dynamic_type
from lego_mlir.mlir.modules import (
    Functions,
    functions_in,
    launches_in,
    named_attributes,
    symbols_in,
)

LEAST_ALIGNMENT = 128
"""Bytes: the banks once, so that what a layout says of them is true of the addresses."""

_DYNAMIC = "__dynamic_shmem__0"  # as gpu.dynamic_shared_memory is lowered
_SPACE = 3
_ADDRESS_OF = "llvm.mlir.addressof"
_POINTER = f"!llvm.ptr<{_SPACE}>"
_SIZE = 10
"""The index of the dynamic shared memory's size among the groups of a launch's operands."""


@dataclass(frozen=True, slots=True)
class TargetMemory:
    """The shared memory of a target.

    Attributes:
        target: its name, for errors.
        most: bytes that a block may have.
        static: bytes that a kernel may declare.
    """

    target: str
    most: int
    static: int = 48 * 1024

    def too_much(self, size: int) -> str:
        """Return the message for a kernel that needs more than a CTA may have."""
        return (
            f"the kernel needs {size} bytes of shared memory, {size - self.most} more than the "
            f"{self.most} that a CTA on {self.target} may have"
        )


def dynamic_size(launch: Any) -> Any:
    """Return a launch's operand for the bytes of dynamic shared memory, or `None`."""
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    return launch.operands[sum(segments[:_SIZE])] if segments[_SIZE] else None


def with_dynamic_size(launch: Any, size: int) -> Any:
    """Make a launch anew with so many bytes of dynamic shared memory; the old one is to erase.

    Args:
        launch: a gpu.launch or gpu.launch_func.
        size: in bytes.
    """
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    place = sum(segments[:_SIZE])
    operands = list(launch.operands)
    del operands[place : place + segments[_SIZE]]
    segments[_SIZE] = 1
    attributes = named_attributes(launch)
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    with ir.InsertionPoint(launch), launch.location:
        i32 = ir.IntegerType.get_signless(32)
        operands.insert(place, arith.ConstantOp(i32, size).result)
        made = ir.Operation.create(
            launch.name,
            results=[result.type for result in launch.results],
            operands=operands,
            attributes=attributes,
            regions=len(launch.regions),
        )
    for old, new in zip(launch.regions, made.regions, strict=True):
        for block in list(old.blocks):
            block.append_to(new)
    for result, replacement in zip(launch.results, made.results, strict=True):
        result.replace_all_uses_with(replacement)
    return made


def fit_shared(module: Any, functions: Functions, memory: TargetMemory, source: Source) -> None:
    """Make the shared memory of kernels dynamic where it is more than they may declare.

    Args:
        module: with one gpu.module in the llvm dialect, changed in place.
        functions: those of its gpu.module, from `functions_in`.
        memory: of the target.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: a kernel needs more than a CTA may have.
    """
    sizes = {_name(op): _bytes(op) for op in symbols_in(module) if _is_static_shared(op)}
    launches = launches_in(module)
    dynamic_sizes = [_known_size(launch) for launch in launches]
    if sum(sizes.values()) <= memory.static and max([0, *map(int, dynamic_sizes)]) <= memory.static:
        return
    kernels, addresses = _kernels(module, functions, sizes, launches)
    for kernel in kernels:
        kernel.check(memory, source)
    large = [k for k in kernels if k.static > memory.static and not k.is_open]
    if large:
        _make_dynamic(module, large, kernels, addresses, sizes, memory, source)


def check_static_shared(module: Any, memory: TargetMemory, source: Source) -> None:
    """Check that no kernel declares more static shared memory than a launch accepts.

    After `fit_shared` only a kernel whose dynamic shared memory has no known size can do so.

    Args:
        module: with one gpu.module in the llvm dialect.
        memory: of the target.
        source: the module's text, in which errors are shown.

    Raises:
        LegoError: a kernel does.
    """
    sizes = {_name(op): _bytes(op) for op in symbols_in(module) if _is_static_shared(op)}
    if sum(sizes.values()) <= memory.static:
        return
    launches = launches_in(module)
    kernels, _ = _kernels(module, functions_in(module), sizes, launches)
    for kernel in kernels:
        if kernel.static > memory.static:
            raise source.error(
                f"the kernel declares {kernel.static} bytes of static shared memory, "
                f"a launch accepts {memory.static}",
                kernel.op.location,
                hint="launch it with a constant dynamic_shared_memory_size, so that the static "
                "memory can become dynamic, or use smaller tiles",
            )


class _Kernel:
    """A kernel, with what it has in shared memory.

    Attributes:
        op: the llvm.func.
        variables: the names of its static variables.
        static: their bytes.
        launches: the gpu.launch_func's of it.
        dynamic: bytes of dynamic shared memory that its launches name at most.
        is_open: whether it has dynamic memory of unknown size.
    """

    def __init__(
        self,
        op: Any,
        named: Sequence[str],
        sizes: Mapping[str, int],
        launches: Sequence[Any],
    ) -> None:
        self.op = op
        self.variables = [name for name in sizes if name in named]
        self.static = _end(self.variables, sizes, 0)
        self.launches = launches
        self.dynamic = max((_known_size(launch) or 0 for launch in launches), default=0)
        has_dynamic = any(name not in sizes for name in named)
        self.is_open = has_dynamic and (not launches or any(map(_is_unknown, launches)))

    def check(self, memory: TargetMemory, source: Source) -> None:
        """Check that a CTA has room for it."""
        size = self.static + self.dynamic
        if size > memory.most:
            raise _too_much(self, size, memory, source)


def _too_much(kernel: _Kernel, size: int, memory: TargetMemory, source: Source) -> LegoError:
    return source.error(
        memory.too_much(size), kernel.op.location, hint="take smaller tiles or fewer buffers"
    )


def _make_dynamic(
    module: Any,
    large: Sequence[_Kernel],
    kernels: Sequence[_Kernel],
    addresses: Sequence[Any],
    sizes: Mapping[str, int],
    memory: TargetMemory,
    source: Source,
) -> None:
    """Place the variables of large kernels in dynamic memory."""
    moved = {name for kernel in large for name in kernel.variables}
    touched = [k for k in kernels if not moved.isdisjoint(k.variables)]
    users = Counter(name for k in touched for name in k.variables if name in moved)
    common = [name for name in sizes if users[name] > 1]  # at one offset in all kernels
    sharing = [k for k in touched if set(common) & set(k.variables)]
    start = max((_aligned(k.dynamic) for k in sharing), default=0)
    offsets = _placed(common, sizes, start)
    end = _aligned(_end(common, sizes, start))
    for kernel in touched:
        own = [name for name in kernel.variables if name in moved and name not in common]
        first = end if kernel in sharing else _aligned(kernel.dynamic)
        offsets |= _placed(own, sizes, first)
        here = [name for name in kernel.variables if name in offsets]
        size = max(offsets[name] + sizes[name] for name in here)
        left = sum(sizes[name] for name in kernel.variables if name not in offsets)
        if size + left > memory.most:
            raise _too_much(kernel, size + left, memory, source)
        for launch in kernel.launches:
            with_dynamic_size(launch, size)
            launch.erase()
    _ensure_dynamic(module)
    for op in addresses:
        if (at := _variable(op)) in offsets:
            _replace_address(op, offsets[at])
    for op in symbols_in(module):
        if _is_shared(op) and _name(op) in offsets:
            op.erase()


def _placed(names: Sequence[str], sizes: Mapping[str, int], start: int) -> dict[str, int]:
    """Return the offsets of variables one behind the other."""
    found = {}
    for name in names:
        found[name] = start
        start = _aligned(start + sizes[name])
    return found


def _end(names: Sequence[str], sizes: Mapping[str, int], start: int) -> int:
    """Return where the last of these variables ends, if they begin at `start`."""
    offsets = _placed(names, sizes, start)
    return max((at + sizes[name] for name, at in offsets.items()), default=start)


def _aligned(at: int) -> int:
    return -(-at // LEAST_ALIGNMENT) * LEAST_ALIGNMENT


def _replace_address(op: Any, offset: int) -> None:
    """Let an address of a variable be one in the dynamic memory."""
    attributes = {"global_name": ir.FlatSymbolRefAttr.get(_DYNAMIC)}
    pointer = ir.Type.parse(_POINTER)
    with ir.InsertionPoint(op), op.location:
        buffer = ir.Operation.create(op.name, results=[pointer], attributes=attributes).result
        byte = ir.TypeAttr.get(ir.IntegerType.get_signless(8))
        place = {"rawConstantIndices": ir.DenseI32ArrayAttr.get([offset]), "elem_type": byte}
        at = ir.Operation.create(
            "llvm.getelementptr", results=[pointer], operands=[buffer], attributes=place
        ).result
    op.results[0].replace_all_uses_with(at)
    op.erase()


def _ensure_dynamic(module: Any) -> None:
    """Declare the dynamic shared memory where no kernel has any."""
    symbols = list(symbols_in(module))
    if any(_name(op) == _DYNAMIC for op in symbols):
        return
    static = next(op for op in symbols if _is_static_shared(op))
    i64 = ir.IntegerType.get_signless(64)
    attributes = named_attributes(static) | {
        "sym_name": ir.StringAttr.get(_DYNAMIC),
        "global_type": ir.TypeAttr.get(dynamic_type()),
        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
        "alignment": ir.IntegerAttr.get(i64, DYNAMIC_ALIGNMENT),
    }
    with ir.InsertionPoint(static), static.location:
        ir.Operation.create(static.name, attributes=attributes, regions=1)


def _kernels(
    module: Any, functions: Functions, sizes: Mapping[str, int], launches: Sequence[Any]
) -> tuple[list[_Kernel], list[Any]]:
    """Return the kernels of a module, with the variables that they and what they call name.

    Beside them the operations that take addresses of variables.
    """
    shared = {_name(op) for op in symbols_in(module) if _is_shared(op)}
    named: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    addresses: list[Any] = []
    for name, (_, inside) in functions.items():
        own_addresses = inside.get(_ADDRESS_OF, [])
        named[name] = {v for o in own_addresses if (v := _variable(o)) in shared}
        called[name] = functions.keys() & set(map(_callee, inside.get("llvm.call", ())))
        addresses += own_addresses
    found = []
    for name, (op, _) in functions.items():
        if "nvvm.kernel" not in op.attributes:
            continue
        reached = set(_reached(name, called))
        variables = set[str]().union(*(named[f] for f in reached))
        own = [x for x in launches if list(x.attributes["kernel"].value)[-1] == name]
        found.append(_Kernel(op, sorted(variables), sizes, own))
    return found, addresses


def _reached(name: str, called: Mapping[str, set[str]]) -> Iterator[str]:
    """Return a function and those that it calls, directly or not."""
    pending, seen = [name], set()
    while pending:
        function = pending.pop()
        if function not in seen:
            seen.add(function)
            pending += called[function]
            yield function


def _variable(op: Any) -> Any:
    """Return the variable whose address an operation takes."""
    return op.attributes["global_name"].value


def _callee(op: Any) -> Any:
    """Return the function that a call names, if it does."""
    return op.attributes["callee"].value if "callee" in op.attributes else None


def _known_size(launch: Any) -> int:
    """Return the bytes of dynamic shared memory of a launch; 0 where they are no constant."""
    value = dynamic_size(launch)
    if value is None or _is_unknown(launch):
        return 0
    return int(ir.IntegerAttr(value.owner.attributes["value"]).value)


def _is_unknown(launch: Any) -> bool:
    """Return whether a launch names a number of bytes that is no constant."""
    value = dynamic_size(launch)
    if value is None:
        return False
    return isinstance(value, ir.BlockArgument) or value.owner.name != "arith.constant"


def _is_shared(op: Any) -> bool:
    if op.name != "llvm.mlir.global":
        return False
    space: int = ir.IntegerAttr(op.attributes["addr_space"]).value
    return space == _SPACE


def _is_static_shared(op: Any) -> bool:
    return _is_shared(op) and op.attributes["global_type"].value != dynamic_type()


def _bytes(op: Any) -> int:
    """Return the size of a variable: arrays of arrays of numbers or of vectors of numbers."""
    kind = str(op.attributes["global_type"].value)
    *counts, element = kind.removeprefix("!llvm.").replace("array<", "").split(" x ")
    element = element.rstrip(">") + (">" if "vector<" in element else "")
    vector = re.fullmatch(r"vector<((?:\d+x)+)(\w+)>", element)
    lanes = prod(int(n) for n in vector[1].split("x")[:-1]) if vector else 1
    width: int = ir.Type.parse(vector[2] if vector else element).width
    return prod(map(int, counts)) * lanes * max(1, width // 8)


def _name(op: Any) -> Any:
    return op.attributes["sym_name"].value if "sym_name" in op.attributes else None
