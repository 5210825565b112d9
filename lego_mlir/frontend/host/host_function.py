"""A host function made in Python, which is launched on arrays.

`Kernel` launches one kernel, `KernelSequence` several.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from lego_mlir import runtime, step_checks
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.stages import DEFAULT_TARGET
from lego_mlir.diagnostics import LegoError
from lego_mlir.frontend.host.argument_types import TensorType
from lego_mlir.frontend.host.compiled_function import CompiledFunction
from lego_mlir.frontend.host.parameters import unknown_keyword
from lego_mlir.frontend.trace import is_tracing, user_location
from lego_mlir.runtime.npy import load_npy


class HostFunction(CompiledFunction):
    """A host function that launches traced kernels.

    Calling it launches them, in place, on buffers: NumPy arrays or anything with DLPack.
    """

    @cached_property
    def _repeated(self) -> runtime.RepeatedLaunches:
        """What remembers launches, for each class of sizes its own."""
        sizes = self.run_time_sizes
        return runtime.RepeatedLaunches(sizes.key if sizes else None)

    def __call__(
        self,
        *arrays: Any,
        device: str | runtime.Device = "auto",
        stream: Any = None,
        check: bool | None = None,
        **unknown: Any,
    ) -> None:
        """Launch on arrays, in place.

        Args:
            arrays: one a parameter, in order; numbers for scalars. An array is the tensor, with the
                strides of the parameter's layout, or its buffer.
            device: `auto`, `cuda`, `sim`, or a device from `runtime.select`.
            stream: a CUDA stream; the call does not wait for the work. With PyTorch tensors it is
                PyTorch's current stream by default. With other arrays and no stream, the call
                returns when the work is done.
            check: whether the kernel checks what of its indices and sizes is not proven; by default
                in the simulator.
            unknown: keyword arguments that there are none of: an error.

        Raises:
            LegoError: the kernel does not compile, or an array does not fit.
        """
        if unknown:
            raise unknown_keyword(self.name, self.parameters(), unknown, user_location())
        repeated = self._repeated if device in ("auto", "cuda") and check is None else None
        if repeated is None or not repeated.launch(arrays, stream):
            runtime.launch_on(
                arrays,
                device,
                stream,
                lambda chosen: self._compiled_for(chosen, check, arrays),
                repeated,
            )

    def run(
        self,
        *arrays: Any,
        device: str | runtime.Device = "auto",
        seed: int = 0,
        costs: bool = False,
        check: bool | None = None,
        sizes: Mapping[str, int] | None = None,
        **unknown: Any,
    ) -> runtime.RunResult:
        """Run on copies of logical tensors, with random data for those that are missing.

        Args:
            arrays: one a parameter, in order.
            device: `auto`, `cuda`, `sim`, or a device from `runtime.select`.
            seed: of the random data.
            costs: count what the launch costs, in `sim`. (For a device from `runtime.select`,
                pass `costs` to `select`.)
            check: whether the kernel checks what of its indices and sizes is not proven; by default
                in the simulator, unless costs are counted.
            sizes: by name, of tensors that are left out, where only launches know them.
            unknown: keyword arguments that there are none of: an error.

        Returns:
            What was read, what was written, and how that compares with the reference.
        """
        if unknown:
            raise unknown_keyword(self.name, self.parameters(), unknown, user_location())
        chosen = runtime.device.chosen(device, costs=costs)
        check = False if costs and check is None else check
        sizes = self.run_time_sizes.checked(sizes or {})
        given = [load_npy(x) if isinstance(x, str | os.PathLike) else x for x in arrays]
        artifact = self._compiled_for(chosen, check, given, sizes)
        return runtime.run(
            artifact,
            given,
            device=chosen,
            seed=seed,
            functions=self._functions(),
            shapes=self.run_time_sizes.shapes(sizes),
        )

    def check_each_step(
        self, *arrays: Any, orders: Sequence[str] = step_checks.ORDERS
    ) -> list[str]:
        """Run kernels on tiles before and after each pass of the compiler, and once compiled.

        The interpreter of tile IR runs what the passes make, the simulator the PTX.

        Args:
            arrays: tensors, one a parameter, in order; random where they are `None` or left out.
            orders: of the simulator, one run each: `late`, `early`, `random`, `random:SEED`.

        Returns:
            A line for each step.

        Raises:
            LegoError: a step changes a result: names the first that does; or there are no tiles.
        """
        known = self.run_time_sizes
        compilation = self.compilation(sizes=known.of_launch(arrays) if known else None)
        return step_checks.check_each_step(compilation, arrays, orders)

    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions of the permutations in the parameters' layouts."""
        return {
            f.__name__: f
            for kind in self.parameters().values()
            if isinstance(kind, TensorType)
            for f in kind.layout.functions
        }

    def _compiled_for(
        self,
        device: runtime.Device,
        check: bool | None,
        arrays: Sequence[Any],
        sizes: Mapping[str, int] | None = None,
    ) -> Artifact:
        """Compile the kernel for a device and arrays, by default with checks in the simulator.

        The simulator runs PTX. Without checks it runs what a GPU gets, and that may depend on the
        machine code.
        """
        if is_tracing():
            raise LegoError(
                f"kernel '{self.name}' is called in a kernel",
                location=user_location(),
                hint="call a plain function there, or launch kernels one after the other by "
                "lg.sequence",
            )
        in_simulator = device.name == "sim"
        check = in_simulator if check is None else check
        target = device.target or DEFAULT_TARGET
        known = self.run_time_sizes
        found = known.of_launch(arrays, sizes) if known else None
        return self.compile(target, check=check, sizes=found, assemble=not (in_simulator and check))
