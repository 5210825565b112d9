"""Cache hints of a kernel's loads, where its launch asks for them.

    %v = llvm.load %p {alignment = 16} : !llvm.ptr -> vector<4xf32>

of an argument of a kernel whose `gpu.launch` has `lego.eviction = "evict_last"` becomes

    %policy = llvm.inline_asm "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;"
    %w = llvm.inline_asm "ld.global.L2::cache_hint.v4.b32 {$0, $1, $2, $3}, [$4], $5;" %p, %policy

and so do its copies by cp.async; with "evict_first" loads have `L1::evict_first`. With
`lego.prefetch = 128` both have `.L2::128B`, too. LLVM has no operation for any of them.

On an H200 kernels that read and write large matrices once are fastest where what they read is
evicted last, which is after what they write, and those that read short pieces of rows are faster
where a load brings the whole line into the L2 cache.

Source: PTX ISA 9.7.9.8 (ld), 9.7.9.16 (createpolicy), 9.7.9.25.3.1 (cp.async).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.targets import Target
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.emit.operations import assembly, make
from lego_mlir.mlir.modules import Functions, launches_in

LAST, FIRST = "evict_last", "evict_first"

PREFETCHES = 64, 128, 256
"""Bytes that a load may bring into the L2 cache."""

_CAPABILITY = (8, 0)
"""The least compute capability with cache policies, and prefetches of all sizes."""

_BITS = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8}
_BYTES = (1, 2, 4, 8, 16)
"""The bytes that a load may have."""

_POLICY = "createpolicy.fractional.L2::evict_last.b64 $0, 1.0;"
_COPY = "cp.async.{cache}.shared.global{hints} [$0], [$1], {size}{count}{policy};"


def check_cache_hints(operations: Sequence[Any], source: Source) -> None:
    """Check the attributes of launches that `set_cache_hints` is about.

    Raises:
        LegoError: one is no priority, or no size that a load may bring into the cache.
    """
    for op in operations:
        for name, values in ((dialect.EVICTION, (LAST, FIRST)), (dialect.PREFETCH, PREFETCHES)):
            if name not in op.attributes:
                continue
            attribute = op.attributes[name]
            if getattr(attribute, "value", None) in values:
                continue
            shown = [f"'{v}'" if isinstance(v, str) else str(v) for v in values]
            usual = f'"{LAST}"' if name == dialect.EVICTION else PREFETCHES[1]
            error: LegoError = source.error(
                f"'{name}' is {', '.join(shown[:-1])} or {shown[-1]}, not {attribute}",
                op.location,
                hint=f"{{{name} = {usual}}} on the gpu.launch, or leave it out",
            )
            raise error


def set_cache_hints(
    module: Any,
    functions: Functions,
    attributes_of_launches: Sequence[Mapping[str, Any]],
    target: Target,
) -> None:
    """Give the loads of kernels the cache hints that their launches ask for.

    Args:
        module: after outlining and lowering to the llvm dialect.
        functions: those of its gpu.module.
        attributes_of_launches: those of each launch.
        target: one without cache policies has none.
    """
    if target.capability < _CAPABILITY:
        return
    done: set[str] = set()
    for launch, attributes in zip(launches_in(module), attributes_of_launches, strict=False):
        *_, name = launch.attributes["kernel"].value
        hints = [attributes.get(each) for each in (dialect.EVICTION, dialect.PREFETCH)]
        if any(hints) and name in functions and name not in done:
            done.add(name)
            eviction, prefetch = (None if a is None else a.value for a in hints)
            _Kernel(*functions[name], eviction, prefetch).rewrite()


class _Kernel:
    """The rewrite of one kernel.

    Args:
        entry: its function.
        inside: the operations of it, by name.
        eviction: the priority of its loads, if they have one.
        prefetch: bytes that they bring into the L2 cache, if they are to bring more than they load.
    """

    def __init__(
        self,
        entry: Any,
        inside: Mapping[str, list[Any]],
        eviction: str | None,
        prefetch: int | None,
    ) -> None:
        self._block = entry.regions[0].blocks[0]
        self._inside = inside
        self._eviction = eviction
        self._prefetch = "" if prefetch is None else f".L2::{prefetch}B"
        self._policy: Any = None

    def rewrite(self) -> None:
        """Rewrite the loads and copies of the kernel's arguments."""
        for op in self._inside.get("llvm.load", ()):
            size = _bytes_of(op)
            if size and self._is_argument(op.operands[0]):
                with ir.InsertionPoint(op), op.location:
                    op.results[0].replace_all_uses_with(self._load(op, size))
                op.erase()
        if self._eviction == LAST or self._prefetch:
            for op in self._inside.get("nvvm.cp.async.shared.global", ()):
                with ir.InsertionPoint(op), op.location:
                    self._copy(op)
                op.erase()

    def _is_argument(self, pointer: Any) -> bool:
        """Return whether a pointer is into an argument of the kernel."""
        while not isinstance(pointer, ir.BlockArgument):
            if pointer.owner.name != "llvm.getelementptr":
                return False
            pointer = pointer.owner.operands[0]
        return bool(pointer.owner == self._block)

    def _load(self, op: Any, size: int) -> Any:
        """Build the load of an operation's result, of so many bytes."""
        pointer = ir.Type.parse("!llvm.ptr<1>")
        address = make("llvm.addrspacecast", pointer, op.operands[0])
        bits, count = min(32, 8 * size), max(1, size // 4)
        # The least registers of inline PTX have two bytes.
        register = ir.IntegerType.get_signless(max(16, bits))
        hints, policy = self._hints()
        operands = [address, *policy]
        constraints = ["=h" if bits < 32 else "=r"] * count + ["l"] * len(operands)
        if self._eviction == FIRST:
            hints = f".L1::evict_first{hints}"
        listed = ", ".join(f"${k}" for k in range(count))
        target, kind, width = listed, register, ""
        if count > 1:
            target, width = f"{{{listed}}}", f".v{count}"
            kind = ir.Type.parse(f"!llvm.struct<({', '.join(['i32'] * count)})>")
        last = f", ${count + 1}" if policy else ""
        text = f"ld.global{hints}{width}.b{bits} {target}, [${count}]{last};"
        # A load without effects could move before a wait for the launch that writes the memory.
        whole = assembly(text, ",".join(constraints), operands, kind, has_effects=True)
        if count > 1:
            whole = _vector_of(whole, count)
        elif bits < 16:
            whole = make("llvm.trunc", ir.IntegerType.get_signless(bits), whole)
        if whole.type == op.results[0].type:
            return whole
        return make("llvm.bitcast", op.results[0].type, whole)

    def _copy(self, op: Any) -> None:
        """Build the copy of an operation."""
        size = ir.IntegerAttr(op.attributes["size"]).value
        cache = str(op.attributes["modifier"]).rpartition(" ")[2].rstrip(">")
        hints, policy = self._hints()
        operands = [*op.operands, *policy]
        constraints = ["l", "l", *["r"] * (len(op.operands) - 2), *["l"] * len(policy)]
        count = ", $2" if len(op.operands) > 2 else ""
        last = f", ${len(op.operands)}" if policy else ""
        text = _COPY.format(cache=cache, hints=hints, size=size, count=count, policy=last)
        assembly(text, ",".join(constraints), operands)

    def _hints(self) -> tuple[str, list[Any]]:
        """Return the hints for the L2 cache, and the policy, if there is one."""
        if self._eviction == LAST:
            return f".L2::cache_hint{self._prefetch}", [self._of_last()]
        return self._prefetch, []

    def _of_last(self) -> Any:
        """Return the policy of evicting last, which is made once."""
        if self._policy is None:
            with ir.InsertionPoint.at_block_begin(self._block), ir.Location.current:
                i64 = ir.IntegerType.get_signless(64)
                self._policy = assembly(_POLICY, "=l", [], i64)
        return self._policy


def _bytes_of(op: Any) -> int:
    """Return the bytes of a load, if it is one instruction that may have a priority; 0 if not."""
    attributes = op.attributes
    if "volatile_" in attributes or ir.IntegerAttr(attributes["ordering"]).value:
        return 0  # other threads write the memory meanwhile
    kind = op.results[0].type
    is_vector = isinstance(kind, ir.VectorType)
    count, element = (int(kind.shape[0]), kind.element_type) if is_vector else (1, kind)
    size = count * _BITS.get(str(element), 0) // 8
    alignment = 0 if is_vector else size
    if "alignment" in attributes:
        alignment = ir.IntegerAttr(attributes["alignment"]).value
    return size if size in _BYTES and alignment >= size else 0


def _vector_of(words: Any, count: int) -> Any:
    """Build the vector of the words of a structure."""
    i32 = ir.IntegerType.get_signless(32)
    vector = make("llvm.mlir.undef", ir.VectorType.get([count], i32))
    for k in range(count):
        word = make("llvm.extractvalue", i32, words, position=_position(k))
        at = make("llvm.mlir.constant", i32, value=ir.IntegerAttr.get(i32, k))
        vector = make("llvm.insertelement", vector.type, vector, word, at)
    return vector


def _position(k: int) -> Any:
    return ir.DenseI64ArrayAttr.get([k])
