"""The gpu.launch of a kernel, and its body: what its function does when it is called once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.frontend.host.argument_types import Parameter
from lego_mlir.frontend.host.grids import Grid
from lego_mlir.frontend.host.host_arithmetic import HostArithmetic
from lego_mlir.frontend.host.parameters import call, traced_argument
from lego_mlir.frontend.host.python_errors import is_ours, python_error
from lego_mlir.frontend.trace import Trace, location_of_traceback, relative_name
from lego_mlir.index import symbols
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source

if TYPE_CHECKING:
    from lego_mlir.frontend.host.kernel import Kernel


def launch_operation(kernel: Kernel, grid: Grid, trace: Trace, location: Location) -> Any:
    """Make a gpu.launch with an empty body at the current insertion point, and return it.

    Args:
        kernel: has the sizes of CTAs and clusters, and how the launch begins.
        grid: CTAs along x, y and z: numbers, or expressions of sizes that the launch knows.
        trace: knows these sizes.
        location: of the kernel's function, for errors.

    Raises:
        LegoError: the grid needs a size that no tensor has.
    """
    index = ir.IndexType.get()
    known = {s.name: value for s, value in trace.sizes.items()}
    unknown = [s.name for n in grid for s in sorted(symbols(n), key=str) if s.name not in known]
    if unknown:
        raise LegoError(
            f"kernel '{kernel.name}': the grid needs the size {unknown[0]}, which no tensor has",
            location=location,
            hint=f"the sizes that the launch knows are {', '.join(known) or 'none'}",
        )
    arithmetic = HostArithmetic(known)
    sizes = [arithmetic(n) for n in (*grid, *kernel.block)]
    segments = ir.DenseI32ArrayAttr.get([0, *([1] * 6), 0, 0, 0, 0])
    op = ir.Operation.create(
        "gpu.launch",
        operands=sizes,
        attributes={"operandSegmentSizes": segments},
        regions=1,
    )
    i64 = ir.IntegerType.get_signless(64)
    for name, count in (
        (dialect.CLUSTER, kernel.cluster),
        (dialect.CTAS_PER_SM, kernel.ctas_per_sm),
        (dialect.PREFETCH, kernel.prefetch or 1),
    ):
        if count > 1:
            op.attributes[name] = ir.IntegerAttr.get(i64, count)
    units = (dialect.OWN_PROGRAMS, kernel.own_programs), (dialect.CONTRACT, kernel.contract)
    for name, holds in units:
        if holds:
            op.attributes[name] = ir.UnitAttr.get()
    if kernel.eviction is not None:
        op.attributes[dialect.EVICTION] = ir.StringAttr.get(f"evict_{kernel.eviction}")
    if kernel.pdl:
        most = ir.IntegerAttr.get(i64, kernel.pdl_ctas) if kernel.pdl_ctas else ir.UnitAttr.get()
        op.attributes[dialect.PDL] = most
    here = ir.Location.current
    op.regions[0].blocks.append(*([index] * 12), arg_locs=[here] * 12)
    return op


@dataclass(frozen=True)
class TracedFunction:
    """A kernel's function, whose mistakes are reported at its lines.

    Attributes:
        name: of the kernel.
        function: is called on values that record what is done with them.
        location: where it begins.
        source: the file's text.
    """

    name: str
    function: Callable[..., Any]
    location: Location
    source: Source

    def trace(
        self,
        trace: Trace,
        buffers: Mapping[str, Any],
        types: Mapping[str, Parameter],
        pdl: bool | Literal["wait"],
    ) -> None:
        """Call the function, and leave what it does in the body of the trace's launch.

        Args:
            trace: records it.
            buffers: the memref, or the number, for each parameter by name.
            types: of the parameters.
            pdl: whether the kernel waits for the launch ahead of it, and when the next one begins.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        arguments = {
            name: traced_argument(name, buffers[name], kind, trace) for name, kind in types.items()
        }
        with trace.inside(trace.launch.regions[0].blocks[0], is_isolated=True):
            if pdl:
                _wait_for_launch_ahead(pdl)
            self._check_end(self._call(arguments), trace)
            ir.Operation.create("gpu.terminator")

    def _call(self, arguments: Mapping[str, Any]) -> Any:
        try:
            return call(self.function, arguments)
        except (LegoError, TypeError, AttributeError, RecursionError) as e:
            if isinstance(e, AttributeError) and not is_ours(e):
                raise
            location = location_of_traceback(e) or self.location
            is_here = relative_name(location.file) == self.source.file
            text = self.source.text if is_here else None
            if isinstance(e, LegoError):
                raise e.at(location, text) from None
            raise python_error(e, location, text) from e

    def _check_end(self, result: Any, trace: Trace) -> None:
        if result is not None:
            raise LegoError(
                f"kernel '{self.name}' returns a value; kernels store their results",
                location=self.location,
                source=self.source.text,
            )
        if trace.left_loop is not None:
            raise LegoError(
                "a traced loop was left before its end",
                location=trace.left_loop,
                source=self.source.text,
                hint="there is no break or return out of lg.loop",
            )


def _wait_for_launch_ahead(pdl: bool | Literal["wait"]) -> None:
    from lego_mlir.mlir.emit import nvvm

    # The next launch does not begin while this one waits: else CTAs of many launches would wait
    # on multiprocessors where those of the first one should run.
    nvvm.griddepcontrol("wait")
    if pdl != "wait":
        nvvm.griddepcontrol("launch_dependents")
