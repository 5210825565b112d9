"""Check that no pass changes what a module computes: on random inputs, by the interpreter.

The module is run before the first pass over tile IR, and after each. What the passes leave is then
lowered, and what that computes is compared, too, within rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lego_mlir.diagnostics import LegoError
from lego_mlir.mlir import dialect
from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.layouts import Layouts
from lego_mlir.mlir.modules import operations_in
from lego_mlir.mlir.tile_ir.interpreter import HostArgument, arguments_of, interpret, random_inputs
from lego_mlir.mlir.tile_ir.interpreter.values import Array, is_float

_PRECISION = {"f64": 2.0**-40, "f32": 2.0**-13, "f16": 2.0**-6, "bf16": 2.0**-4}
"""By how much a result may differ, relative to the largest element of its tensor, if nothing is
coarser than this type: sums are rounded in another order, and functions approximated."""

_COARSE = 2.0**-2
"""The same for the 8-bit floats."""


class StepCheck:
    """What a module computes on random inputs, before the passes over tile IR.

    Args:
        layouts: reads the module's layouts.
        source: its text, for errors.
        seed: of the inputs.

    Attributes:
        given: inputs to use instead of random ones: by position, `None` for a random one.
        inputs: a tensor or a number for each argument.
        lines: what has been checked, for people.
    """

    def __init__(self, layouts: Layouts, source: Source, seed: int = 0) -> None:
        self._layouts = layouts
        self._source = source
        self._seed = seed
        self._arguments: Sequence[HostArgument] = ()
        self._expected: Mapping[str, Array] = {}
        self._tolerance = 0.0
        self.given: Sequence[Any] = ()
        self.inputs: Sequence[Array] = ()
        self.lines: list[str] = []

    def before(self, module: Any) -> None:
        """Run the module before the first pass.

        Raises:
            LegoError: the interpreter cannot run it.
        """
        self._arguments = arguments_of(module, self._layouts, self._source, self.given)
        self._tolerance = _tolerance(module)
        drawn = random_inputs(self._arguments, self._seed)
        if len(self.given) > len(drawn):
            raise LegoError(f"{len(self.given)} arrays are given to {len(drawn)} arguments")
        given = [*self.given, *[None] * (len(drawn) - len(self.given))]
        self.inputs = [
            one if value is None else argument.array(value)
            for argument, value, one in zip(self._arguments, given, drawn, strict=True)
        ]
        self._expected = self._run(module)

    @property
    def has_begun(self) -> bool:
        """Whether the module has kernels on tiles."""
        return bool(self._expected)

    def _run(self, module: Any) -> Mapping[str, Array]:
        return interpret(module, self.inputs, self._layouts, self._source).tensors

    def after(self, name: str, module: Any) -> None:
        """Check what a pass made.

        Raises:
            LegoError: it computes something else, bit for bit, or within rounding if it says that
                it reassociates sums; or it cannot be run.
        """
        try:
            found = self._run(module)
        except LegoError as e:
            e.message = f"after the pass '{name}': {e.message}"
            raise
        is_reassociated = any(
            dialect.REASSOCIATED in op.attributes for op in operations_in(module.operation)
        )
        largest = 0.0
        for tensor, before in self._expected.items():
            if is_reassociated:
                differs, error = compared(before, found[tensor], self._tolerance)
                largest = max(largest, error)
            else:
                differs = _bits(before) != _bits(found[tensor])
            if differs.any():
                raise self._error(f"the pass '{name}'", tensor, before, found[tensor], differs)
        self.lines.append(f"{name}: {_shown(largest)}")

    def lowered(self, name: str, outputs: Mapping[str, Array]) -> None:
        """Check what the compiled kernels wrote, within rounding.

        Args:
            name: of what ran them, such as "the simulator".
            outputs: the tensors that they wrote by name, as the runtime carries them.

        Raises:
            LegoError: a tensor differs.
        """
        largest = 0.0
        dtypes = {argument.name: argument.dtype for argument in self._arguments}
        for tensor, raw in outputs.items():
            want, have = self._expected[tensor], np.asarray(raw).view(dtypes[tensor])
            differs, error = compared(want, have, self._tolerance)
            largest = max(largest, error)
            if differs.any():
                what = f"lowering from the passes on, run in {name},"
                raise self._error(what, tensor, want, have, differs)
        self.lines.append(f"lowering, run in {name}: {_shown(largest)}")

    def _error(self, what: str, tensor: str, want: Array, have: Array, differs: Array) -> LegoError:
        at = tuple(int(k) for k in np.argwhere(differs)[0])
        count = int(np.count_nonzero(differs))
        return LegoError(
            f"{what} changes what the kernels compute: {count} of the {differs.size} elements of "
            f"'{tensor}' differ, the first at {list(at)}: {want[at]} before, {have[at]} after",
            hint="this is a mistake of the compiler: please report it, with the program",
        )


def compared(want: Array, have: Array, tolerance: float) -> tuple[Array, float]:
    """Return where tensors differ by more than a tolerance, and the largest relative difference.

    Differences are relative to the largest finite number in `want`. Infinities and NaNs must agree,
    and integers be equal.
    """
    if not is_float(want.dtype):
        return want != have, 0.0
    a, b = want.astype(np.float64), have.astype(np.float64)
    finite = np.isfinite(a)
    scale = float(np.max(np.abs(a), initial=0.0, where=finite)) or 1.0
    with np.errstate(invalid="ignore"):
        error = np.where(finite & np.isfinite(b), np.abs(a - b) / scale, 0.0)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (finite & np.isfinite(b))
    return ~same | (error > tolerance), float(np.max(error, initial=0.0))


def _shown(error: float) -> str:
    return f"the largest error {error:.2g}" if error else "every element is the same"


def _bits(data: Array) -> Array:
    return np.ascontiguousarray(data).view(f"uint{8 * data.dtype.itemsize}")


def _tolerance(module: Any) -> float:
    """Return how far results may be off, by the coarsest float that the kernels compute with."""
    found = {_element(value.type) for op in operations_in(module.operation) for value in op.results}
    floats = {name for name in found if name is not None}
    return max((_PRECISION.get(name, _COARSE) for name in floats), default=_PRECISION["f64"])


def _element(kind: Any) -> str | None:
    element = ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind
    return str(element) if isinstance(element, ir.FloatType) else None
