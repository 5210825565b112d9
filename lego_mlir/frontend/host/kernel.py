"""`@kernel`: from a Python function to a module, an artifact, and a launch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lego_mlir.compiler.schedule_files import read, takes_tiles
from lego_mlir.diagnostics import LegoError, Location, checks_arguments
from lego_mlir.frontend.host.argument_types import (
    EmptyType,
    Parameter,
    ScalarType,
    TensorType,
)
from lego_mlir.frontend.host.grids import Grid, Size, dim3, grid_of
from lego_mlir.frontend.host.host_function import HostFunction
from lego_mlir.frontend.host.launch_body import TracedFunction, launch_operation
from lego_mlir.frontend.host.launch_classes import ANY_SIZES, LaunchClass, RunTimeSizes
from lego_mlir.frontend.host.parameters import (
    checked_eviction,
    checked_multiple,
    checked_params,
    checked_pdl,
    checked_prefetch,
    cluster_size,
    cta_size,
    occupancy,
)
from lego_mlir.frontend.tiles.sizes import TILE_MULTIPLES
from lego_mlir.frontend.trace import Trace, user_location
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES
from lego_mlir.index import construct
from lego_mlir.index.integers import takes_numpy_integers

if TYPE_CHECKING:
    from lego_mlir.compiler.options import Options


class KernelCall(NamedTuple):
    """A kernel in a sequence.

    Attributes:
        kernel: the kernel.
        names: for each of its parameters, the name of the argument or workspace that it is.
    """

    kernel: Kernel
    names: Mapping[str, str]


class Kernel(HostFunction):
    """A traced kernel, and the host function that launches it once.

    Attributes:
        name: the function's; what an identifier of PTX cannot have is `_`.
        grid: CTAs along x, y and z; of a kernel with clusters, clusters along x.
        cluster: the CTAs of a cluster.
        own_programs: whether each of them runs the program by itself, instead of all together.
        ctas_per_sm: the CTAs for which a multiprocessor has registers at least.
        tile_multiple: what divides the sizes that tiles have in registers as the program says.
        block: threads of a CTA along x, y and z.
        warps: of a CTA, if the kernel is one on tiles; `None` for a kernel of threads.
        schedule: the schedule that maps tiles to threads and instructions, if any.
        params: values of the schedule's parameters; others have their defaults.
        explanation: returns a description of how the kernel was made, if there is one.
        pdl: whether the kernel may begin before the launch ahead of it on the stream ends. It
            waits by itself, before it reads or writes anything.
        pdl_ctas: the CTAs of a launch up to which it may; 0 for any number.
        contract: whether products may be added before they are rounded.
        eviction: when the cache evicts what the kernel loads, `None` for no preference.
        prefetch: bytes that its loads bring into the L2 cache, `None` for what they load.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        grid: Size | Callable[..., Size],
        block: Size | None,
        reference: str | None = None,
        parameters: Mapping[str, Parameter] | None = None,
        schedule: str | None = None,
        params: Mapping[str, int] | None = None,
        strict: bool = False,
        explanation: Callable[[], str] | None = None,
        exact_math: bool = False,
        in_place: bool = False,
        pdl: bool | Literal["wait"] = False,
        warps: int | None = None,
        cluster: int = 1,
        ctas_per_sm: int = 1,
        tile_multiple: int = TILE_MULTIPLES[0],
        pdl_ctas: int = 0,
        own_programs: bool = False,
        contract: bool = False,
        eviction: Literal["first", "last"] | None = None,
        prefetch: Literal[64, 128, 256] | None = None,
    ) -> None:
        if not isinstance(function, FunctionType):
            raise LegoError(
                f"a kernel is a function, not {function!r}",
                hint="write @lg.kernel(...) above a def",
            )
        name = re.sub(r"\W", "_", function.__name__, flags=re.ASCII)  # as PTX takes names
        self._grid = grid if callable(grid) else dim3(grid, "grid", name)
        self.warps = warps
        self.block = cta_size(block, warps, name)
        self.cluster = cluster_size(cluster, warps, name)
        self.own_programs = own_programs and self.cluster > 1
        self.ctas_per_sm = occupancy(ctas_per_sm, self.block, name)
        self.tile_multiple = checked_multiple(tile_multiple, warps, name)
        self.schedule = schedule
        self.params = checked_params(params or {}, schedule, name)
        self.explanation = explanation
        self.contract = contract
        self.eviction = checked_eviction(eviction, name)
        self.prefetch = checked_prefetch(prefetch, name)
        self.pdl, self.pdl_ctas = pdl, checked_pdl(pdl, pdl_ctas, name)
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._declared = parameters
        super().__init__(
            name,
            reference,
            strict=strict,
            exact_math=exact_math,
            in_place=in_place,
        )
        if warps is not None and schedule is not None and not takes_tiles(schedule):
            raise LegoError(
                f"kernel '{name}' has warps and the schedule '{schedule}', which has no steps for "
                "kernels on tiles",
                hint='schedule="pipelined" has',
            )

    @cached_property
    def grid(self) -> Grid:
        """CTAs along x, y and z: numbers, or expressions of sizes that the launch knows.

        Of a kernel with clusters it counts clusters along x.

        Raises:
            LegoError: the function that computes them fails, or gives no grid.
        """
        return grid_of(self._grid, self.parameters(), self.name)

    def __repr__(self) -> str:
        grid, block = ("×".join(str(n) for n in size) for size in (self.grid, self.block))
        clusters = f" clusters of {self.cluster}" if self.cluster > 1 else ""
        return f"<kernel {self.name}  grid {grid}{clusters}  block {block}>"

    def explain(self) -> str:
        """Describe the kernel: its launch, its schedule, and how its config was chosen.

        Of a kernel on tiles it has the layouts of the tiles, and what conversions, reductions and
        scans do, for the default target.
        """
        if self.substitute is not None:
            return self.substitute.explain()
        config = self.explain_config(lambda: self.compilation().explain_tiles()[0])
        return "\n".join([repr(self), *self._explain_classes(), *config])

    def explain_config(self, tiles: Callable[[], list[str]]) -> list[str]:
        """Return the schedule and how the config was chosen, a line for each item.

        Args:
            tiles: describes the tiles of a kernel on tiles, which take a compilation to know: a
                kernel of a sequence may have sizes that only the sequence's arguments tell.
        """
        if self.explanation is not None:
            return [self.explanation()]
        if self.warps is not None:
            return tiles()
        if self.schedule is None:
            return ["no schedule"]
        params = ", ".join(f"{name} = {n}" for name, n in self.params.items())
        return [f"schedule   {self.schedule}", f"params     {params or 'the defaults'}"]

    @property
    def _location(self) -> Location:
        code = self.__wrapped__.__code__
        return Location(code.co_filename, code.co_firstlineno)

    def on(self, **names: str) -> KernelCall:
        """Return this kernel for a `sequence`, in which its parameters have other names.

        Args:
            names: by the kernel's parameter, the name of an argument or workspace of the sequence;
                other parameters have their own names there.

        Raises:
            LegoError: the kernel has no such parameter.
        """
        parameters = self.parameters()
        for name in names:
            if name not in parameters:
                raise LegoError(
                    f"kernel '{self.name}' has no parameter '{name}'",
                    location=user_location(),
                    hint=f"its parameters are: {', '.join(parameters)}",
                )
        return KernelCall(self, {name: names.get(name, name) for name in parameters})

    def _launch_kernels(
        self, trace: Trace, arguments: Mapping[str, Any], promised: LaunchClass
    ) -> None:
        self.launch(trace, arguments, promised)

    def _traced(self) -> Any:
        script = None if self.schedule is None else read(self.schedule).text
        grid = tuple(map(str, self.grid))
        cluster = self.cluster, self.own_programs
        size = grid, cluster, self.block, self.warps, self.tile_multiple
        how = self.ctas_per_sm, self.contract, self.pdl, self.pdl_ctas
        launch = *size, *how, self.eviction, self.prefetch, self.schedule, script, self.params
        return self.name, launch, dict(self.parameters()), self.__wrapped__

    def _options(self, options: Options) -> Options:
        if options.schedule is not None:
            return options
        params = {**self.params, **options.parameters}
        return replace(options, schedule=self.schedule, parameters=params)

    def launch(
        self,
        trace: Trace,
        buffers: Mapping[str, Any],
        promised: LaunchClass = ANY_SIZES,
        sizes: RunTimeSizes | None = None,
    ) -> Any:
        """Make a gpu.launch of this kernel at the current insertion point, and return it.

        Args:
            trace: records it.
            buffers: the memref, or the number, for each parameter by name.
            promised: what the code relies on of sizes that only the launch knows.
            sizes: those of the sequence that the kernel belongs to.

        Raises:
            LegoError: at the Python line of a mistake.
        """
        types = (sizes or self.run_time_sizes).promised_types(promised, self.parameters())
        programs, y, z = grid_of(self._grid, types, self.name)
        together, own = (1, self.cluster) if self.own_programs else (self.cluster, 1)
        trace.launch = launch_operation(
            self, (construct.mul(programs, together), y, z), trace, self._location
        )
        trace.warps, trace.cluster, trace.programs = self.warps, together, own
        trace.tile_multiple, trace.pdl = self.tile_multiple, self.pdl
        function = TracedFunction(self.name, self.__wrapped__, self._location, self._source)
        function.trace(trace, buffers, types, self.pdl)
        return trace.launch

    def parameters(self) -> Mapping[str, Parameter]:
        return self._types

    @cached_property
    def _types(self) -> dict[str, Parameter]:
        try:
            annotations = self._declared or inspect.get_annotations(self.__wrapped__, eval_str=True)
        except NameError as e:
            raise LegoError(
                f"the annotations of kernel '{self.name}' cannot be read: {e}",
                location=self._location,
                source=self._source.text,
                hint="names in annotations must be global where the file has "
                "'from __future__ import annotations'",
            ) from None
        found: dict[str, Parameter] = {}
        names = inspect.signature(self.__wrapped__).parameters
        unknown = [name for name in self._declared or () if name not in names]
        if unknown:
            raise LegoError(
                f"kernel '{self.name}': parameters names '{unknown[0]}', which is no parameter of "
                "its function",
                location=self._location,
                source=self._source.text,
                hint=f"its parameters are: {', '.join(names) or 'none'}; values of a schedule's "
                "parameters are params={...}",
            )
        for name in names:
            kind = annotations.get(name)
            if not isinstance(kind, TensorType | EmptyType | ScalarType):
                raise LegoError(
                    f"parameter '{name}' of kernel '{self.name}' is not annotated as a tensor",
                    location=self._location,
                    source=self._source.text,
                    hint=f'{name}: lg.Tensor["f32", layout], or lg.Scalar["f32"]',
                )
            if self.warps is not None and isinstance(kind, TensorType) and kind.alignment == 1:
                kind = replace(kind, alignment=MAX_ACCESS_BYTES)
            found[name] = kind
        return found


@takes_numpy_integers
@checks_arguments
def kernel(
    *,
    grid: Size | Callable[..., Size],
    block: Size | None = None,
    warps: int | None = None,
    cluster: int = 1,
    ctas_per_sm: int = 1,
    tile_multiple: int = TILE_MULTIPLES[0],
    reference: str | None = None,
    parameters: Mapping[str, Parameter] | None = None,
    schedule: str | None = None,
    params: Mapping[str, int] | None = None,
    strict: bool = False,
    explanation: Callable[[], str] | None = None,
    exact_math: bool = False,
    in_place: bool = False,
    pdl: bool | Literal["wait"] = False,
    pdl_ctas: int = 0,
    own_programs: bool = False,
    contract: bool = False,
    eviction: Literal["first", "last"] | None = None,
    prefetch: Literal[64, 128, 256] | None = None,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a function a kernel.

    Args:
        grid: CTAs along x, or a sequence of up to three numbers; or a function that returns it. The
            function takes parameters of the kernel by name, and gets their types: `x.dims` are the
            sizes that an index of `x` has.
        block: threads of a CTA along x, or a sequence of up to three numbers. The function is what
            each thread does.
        warps: of a CTA, instead of `block`. The function is what the CTA does on tiles, which its
            threads hold together; the compiler distributes them.
        cluster: with `warps`, the CTAs of a cluster, up to 16, which hold tiles together: for rows
            that are too long for one CTA. The grid counts clusters along x, and so does
            `lg.block_id()`. More than 8 need a GPU that has so large clusters.
        ctas_per_sm: how many CTAs a multiprocessor is to hold at once, as far as registers go: a
            thread gets no more than its share of them. Without it a thread has what it needs.
        tile_multiple: what divides the sizes of tiles, up to 256, that they have in registers, too;
            others are rounded up to powers of two. With 8, dots by `wgmma` have 24 columns, not 32;
            operands of `mma.sync` need 16 along k.
        reference: a known reference (`lego_mlir.runtime.references`) that `run` compares with.
        parameters: the types of the function's parameters, where they are not its annotations.
        schedule: the name or file of a schedule, which distributes tiles among threads.
        params: values of the schedule's parameters, by name.
        strict: refuse machine code that spills registers, or that the assembler slows down.
        explanation: what `explain` says of how the kernel was made.
        exact_math: round quotients and square roots of f32, f16 and bf16 exactly, and compute exp,
            log, log2 and pow to a few units in the last place; else quotients are off by at most
            2 units, functions by what their instructions lose, and all are faster.
        in_place: the kernel may get arrays that overlap, of which it writes some. Otherwise a
            launch on such arrays is an error.
        pdl: programmatic dependent launch: the CTAs begin while the launch ahead of them on the
            stream ends, and wait for that before they do anything. With `"wait"` the launch behind
            begins when these CTAs end, or call `lg.launch_dependents()`, not when they have begun:
            so its CTAs are spread evenly over the multiprocessors.
        pdl_ctas: of a kernel with `pdl`, the CTAs of a launch up to which it is one; 0 for any
            number. CTAs of dependent launches begin one after the other.
        own_programs: each CTA of a cluster runs the program by itself, and holds its own tiles. The
            grid and `lg.block_id()` count CTAs. `lg.reduce_scatter` adds up what they hold.
        contract: let products be added before they are rounded: one instruction, `fma`, instead of
            two. Which products are depends on the code that is made.
        eviction: when the L2 cache is to evict what loads bring, of tensors that are much
            larger than it and are read once: `last` where the kernel writes as much, so that what
            it writes leaves first; `first` to leave the cache to others. On targets before sm_80
            it says nothing.
        prefetch: bytes that a load brings from device memory into the L2 cache, of which it needs
            only some: 64, 128 or 256, aligned. For kernels that read whole tensors in short pieces
            that the cache meets one after another. On targets before sm_80 it says nothing.

    Raises:
        LegoError: a size is no positive integer, or `params` is wrong.
    """
    return lambda function: Kernel(
        function,
        grid,
        block,
        reference,
        parameters,
        schedule,
        params,
        strict,
        explanation,
        exact_math,
        in_place,
        pdl,
        warps,
        cluster,
        ctas_per_sm,
        tile_multiple,
        pdl_ctas,
        own_programs,
        contract,
        eviction,
        prefetch,
    )
