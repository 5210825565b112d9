"""Host functions: their arguments, and their launches one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from lego_mlir.algebra import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Sym
from lego_mlir.limits import check_limit
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.lowering.argument_names import argument_names
from lego_mlir.mlir.lowering.indices.index_reader import cluster_size, launch_sizes
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.interpreter import pointwise
from lego_mlir.mlir.tile_ir.interpreter.machine import Code, Machine, Steps, grid_points
from lego_mlir.mlir.tile_ir.interpreter.pipelines import Cluster, Pipelines
from lego_mlir.mlir.tile_ir.interpreter.roles import Role, run_roles
from lego_mlir.mlir.tile_ir.interpreter.values import Array, Value, cast, dtype_of, is_float

_LAUNCH = "gpu.launch"


@dataclass(frozen=True)
class HostArgument:
    """An argument of a host function.

    Attributes:
        name: its name.
        dtype: of its elements, or of the number that it is.
        shape: of its buffer; `None` of a number.
        layout: of the tensor in the buffer; `None` if that is the buffer itself.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...] | None
    layout: Layout | None

    @property
    def tensor_shape(self) -> tuple[int, ...]:
        """The shape of the tensor."""
        if self.layout is None:
            return self.shape or ()
        return tuple(int(n) for n in self.layout.tensor_shape)

    def array(self, value: Any) -> Array:
        """Return a tensor, or a number, as an array of the argument's dtype.

        Args:
            value: of `tensor_shape`; its elements are of the dtype, or have as many bits.

        Raises:
            LegoError: it has another shape, or elements of another size.
        """
        if self.shape is None:
            return cast(value, self.dtype).reshape(())
        array = np.asarray(value)
        if array.shape != self.tensor_shape or array.dtype.itemsize != self.dtype.itemsize:
            raise LegoError(
                f"argument '{self.name}' is a tensor {list(self.tensor_shape)} of {self.dtype}, "
                f"not {list(array.shape)} of {array.dtype}"
            )
        return np.ascontiguousarray(array).view(self.dtype).reshape(self.tensor_shape)

    def buffer(self, tensor: Any) -> Array:
        """Return a buffer that holds a copy of a tensor.

        Raises:
            LegoError: as `array`.
        """
        array = self.array(tensor)
        if self.layout is None:
            return array.copy()
        found = np.zeros(prod(self.shape or ()), self.dtype)
        found[self.layout.offsets()] = array
        return found

    def tensor(self, buffer: Array) -> Array:
        """Return a copy of the tensor in a buffer."""
        if self.layout is None:
            return buffer.reshape(self.shape or ()).copy()
        found: Array = buffer.reshape(-1)[self.layout.offsets()]
        return found


@dataclass(frozen=True)
class Interpretation:
    """What a run left in the arguments.

    Attributes:
        tensors: of each argument that is a buffer, by name.
    """

    tensors: Mapping[str, Array]


def host_function(module: Any, source: Source) -> Any:
    """Return the function of a module that launches kernels.

    Raises:
        LegoError: there is none, or there are several.
    """
    found = [
        op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
        and any(inner.name == _LAUNCH for inner in operations_in(op.operation))
    ]
    if len(found) != 1:
        raise source.error(
            f"the interpreter of tile IR runs the function that launches kernels, and {len(found)} "
            "do",
            module.operation.location,
            hint="a module to run has one func.func with gpu.launch in it",
        )
    return found[0]


def arguments_of(
    module: Any, layouts: Layouts, source: Source, given: Sequence[Any] = ()
) -> list[HostArgument]:
    """Return the arguments of the function that launches kernels.

    Args:
        module: has the function.
        layouts: reads its layouts.
        source: the module's text, for errors.
        given: tensors by position, which say the sizes that only a launch knows; `None`, and what
            is left out, has those that others say.

    Raises:
        LegoError: the module has no such function, or nothing says the shape of an argument.
    """
    func = host_function(module, source)
    block = func.regions[0].blocks[0]
    names = argument_names(func, source)
    has_attributes = "arg_attrs" in func.attributes
    attributes = ir.ArrayAttr(func.attributes["arg_attrs"]) if has_attributes else None
    every: list[tuple[Any, Layout | None]] = []
    sizes: dict[str, int] = {}
    for number, value in enumerate(block.arguments):
        layout = None
        for entry in ir.DictAttr(attributes[number]) if attributes is not None else ():
            if entry.name == dialect.ARGUMENT_LAYOUT:
                layout = layouts(entry.attr, func.location)
        array = given[number] if number < len(given) else None
        if layout is not None and array is not None:
            named = zip(layout.tensor_shape, np.shape(array), strict=False)
            sizes |= {n.name: size for n, size in named if isinstance(n, Sym)}
        every.append((value.type, layout))
    found = []
    for number, (name, (kind, layout)) in enumerate(zip(names, every, strict=True)):
        shape: tuple[int, ...] | None = None
        if isinstance(kind, ir.MemRefType):
            array = given[number] if number < len(given) else None
            layout = None if layout is None else _with_sizes(layout, sizes)
            known = _shape_of(ir.MemRefType(kind), layout, array)
            if known is None:
                raise source.error(
                    f"argument '{name}' has the type {kind}: to run, its shape must be known",
                    func.location,
                    hint="pass an array for it",
                )
            shape = known
        found.append(HostArgument(name, dtype_of(kind), shape, layout))
    return found


def _with_sizes(layout: Layout, sizes: Mapping[str, int]) -> Layout:
    return layout.substitute({s: sizes[s.name] for s in layout.symbols if s.name in sizes})


def _shape_of(kind: Any, layout: Layout | None, array: Any) -> tuple[int, ...] | None:
    """Return the shape of a buffer: that of its type, of its layout, or of an array."""
    if kind.has_static_shape:
        return tuple(kind.shape)
    if layout is None:
        return None if array is None else tuple(np.shape(array))
    if layout.symbols:
        return None
    tensor = tuple(int(n) for n in layout.tensor_shape)
    return tensor if len(tensor) == kind.rank else (int(layout.size),)


def random_inputs(arguments: Sequence[HostArgument], seed: int = 0) -> list[Array]:
    """Return random values for arguments: tensors, and small numbers.

    Floats are normally distributed; integers small enough that sums of products stay exact.
    """
    found = []
    for position, argument in enumerate(arguments):
        rng = np.random.default_rng([seed, position])
        shape = argument.tensor_shape
        check_limit(
            "tensor_bytes",
            prod(shape) * argument.dtype.itemsize,
            f"argument '{argument.name}' has {{}} bytes",
        )
        match argument.dtype.kind:
            case "b":
                data: Any = rng.integers(0, 2, shape)
            case "i" | "u":
                data = rng.integers(1 if argument.shape is None else -8, 9, shape)
            case _:
                data = rng.standard_normal(shape)
        found.append(cast(data, argument.dtype))
    return found


def interpret(
    module: Any,
    inputs: Sequence[Any],
    layouts: Layouts | None = None,
    source: Source | None = None,
) -> Interpretation:
    """Run a module's host function on tile IR, before or after tiles are placed.

    Args:
        module: with one host function, which launches kernels on tiles.
        inputs: a tensor or a number for each argument, in order; they are copied. Tensors of
            formats that NumPy has not are of ml_dtypes, or hold bits in integers of that size.
        layouts: reads the layouts of the module; by default with the sizes that it states.
        source: the module's text, for errors.

    Raises:
        LegoError: an input does not fit its argument, a kernel does what tiles do not, or accesses
            an element that there is not.
    """
    source = source or Source("<module>", "")
    layouts = layouts or Layouts.of_module(module, source)
    with module.context, ir.Location.unknown(), np.errstate(all="ignore"):
        func = host_function(module, source)
        block = func.regions[0].blocks[0]
        arguments = arguments_of(module, layouts, source, inputs)
        if len(inputs) != len(arguments):
            raise LegoError(f"{len(inputs)} values for {len(arguments)} arguments")
        buffers: dict[Any, Array] = {}
        values: dict[Any, Value] = {}
        for value, argument, given in zip(block.arguments, arguments, inputs, strict=True):
            if argument.shape is None:
                values[value] = Value.of(argument.array(given))
            else:
                buffers[value] = argument.buffer(given)
        shapes = {
            value: argument.shape
            for value, argument in zip(block.arguments, arguments, strict=True)
            if argument.shape is not None
        }
        _run_host(block, buffers, shapes, values, layouts, source)
        tensors = {
            argument.name: argument.tensor(buffers[value])
            for value, argument in zip(block.arguments, arguments, strict=True)
            if argument.shape is not None
        }
    return Interpretation(tensors)


def _run_host(
    block: Any,
    buffers: dict[Any, Array],
    shapes: Mapping[Any, tuple[int, ...]],
    values: dict[Any, Value],
    layouts: Layouts,
    source: Source,
) -> None:
    """Run the operations of a host function: arithmetic of sizes, workspaces and launches."""
    steps = Steps()
    host = Machine(layouts, source, buffers, False, {}, steps, values)
    for each in block.operations:
        op = each.operation
        match op.name:
            case "memref.dim":
                shape = shapes[op.operands[0]]
                dim = values[op.operands[1]].number()
                values[op.results[0]] = Value.of(np.int64(shape[dim]))
            case "memref.extract_strided_metadata":  # buffers are dense here
                shape = shapes[op.operands[0]]
                numbers = (0, *shape, *(prod(shape[k + 1 :]) for k in range(len(shape))))
                for result, n in zip(list(op.results)[1:], numbers, strict=True):
                    values[result] = Value.of(np.int64(n))
            case name if name in pointwise.POINTWISE:
                host.define(op, host.pointwise(op))
            case "arith.constant":
                values[op.results[0]] = Value.of(pointwise.constant(op))
            case "gpu.alloc":
                kind = ir.MemRefType(op.results[0].type)
                dtype = dtype_of(kind)
                zeroed = dialect.ZEROED in op.attributes or not is_float(dtype)
                sizes = iter(values[x].number() for x in op.operands)
                dims = zip(kind.shape, map(kind.is_dynamic_dim, range(kind.rank)), strict=True)
                shape = tuple(next(sizes) if is_open else n for n, is_open in dims)
                buffers[op.results[0]] = np.full(shape, 0 if zeroed else np.nan, dtype)
            case "gpu.launch":
                _launch(op, buffers, values, layouts, source, steps)
            case "gpu.dealloc" | "func.return":
                continue
            case _:
                raise source.error(
                    f"a host function only launches kernels; '{op.name}' cannot run here",
                    op.location,
                )


def _launch(
    op: Any,
    buffers: dict[Any, Array],
    values: Mapping[Any, Value],
    layouts: Layouts,
    source: Source,
    steps: Steps,
) -> None:
    """Run the CTAs of a launch: clusters one after another.

    Of a cluster whose CTAs hold tiles together one runs for all. Those that run programs of their
    own, and exchange tiles, run beside one another.
    """
    sizes = []
    for size in launch_sizes(op):
        if size not in values:
            raise source.error("a size of this launch is not a known number", op.location)
        sizes.append(values[size].number())
    grid, block = sizes[:3], sizes[3:]
    check_limit("ctas", prod(grid), "the grid has {} CTAs")
    body = op.regions[0].blocks[0]
    ids, threads, grid_sizes, cta_sizes = (list(body.arguments)[k : k + 3] for k in (0, 3, 6, 9))
    del threads  # no operation on tiles is about one thread
    filled = dialect.FILLED in op.attributes
    own_programs = dialect.OWN_PROGRAMS in op.attributes
    ctas = 1 if own_programs else cluster_size(op)
    meets = own_programs and any(o.name == tiles.REDUCE_SCATTER for o in operations_in(op))
    together = cluster_size(op) if meets else 1
    code: dict[Any, Code] = {}
    waiting: list[Machine] = []
    for at in grid_points(grid):
        if at[0] % ctas:
            continue
        cluster = (at[0] // ctas, *at[1:])
        numbers = {"block_id": at, "grid_dim": grid, "block_dim": block, "cluster_id": cluster}
        machine = Machine(layouts, source, buffers, filled, numbers, steps, dict(values), code=code)
        for names, given in ((ids, at), (grid_sizes, grid), (cta_sizes, block)):
            machine.values.update(
                (name, Value.of(np.int64(number)))
                for name, number in zip(names, given, strict=True)
            )
        waiting.append(machine)
        if len(waiting) == together:
            _run_together(waiting, body)
            waiting = []


def _run_together(machines: Sequence[Machine], body: Any) -> None:
    """Run the CTAs of a cluster, or one."""
    if len(machines) == 1:
        machines[0].run(body)
        return
    cluster, bodies = Cluster(len(machines)), []
    for rank, machine in enumerate(machines):
        role = Role(f"CTA {rank} of the cluster")
        machine.pipelines = Pipelines(role, cluster=cluster)
        bodies.append((role, partial(machine.run, body)))
    run_roles(bodies, body.owner.context)
