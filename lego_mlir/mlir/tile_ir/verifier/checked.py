"""An operation that is verified: what it has, and the errors about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from lego_mlir.mlir.bindings import ir
from lego_mlir.mlir.context import Source
from lego_mlir.mlir.dialect import tile_operations as tiles
from lego_mlir.mlir.layouts import Layouts


@dataclass(frozen=True, slots=True)
class Checked:
    """An operation of a kernel on tiles.

    Attributes:
        op: the operation.
        layouts: reads the layouts of the module.
        source: the module's text, for errors.
    """

    op: Any
    layouts: Layouts
    source: Source

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        """Raise the error that the operation is wrong: `message` goes on from its name."""
        raise self.source.error(f"'{self.op.name}' {message}", self.op.location, hint=hint)

    def require(self, holds: bool, message: Callable[[], str], hint: str | None = None) -> None:
        """Raise the error unless a condition holds."""
        if not holds:
            self.fail(message(), hint)

    def shape(self, value: Any) -> tuple[int, ...]:
        """Return the shape of a tile."""
        return tuple(ir.RankedTensorType(value.type).shape)

    def element(self, value: Any) -> Any:
        """Return the element type of a tile."""
        return ir.RankedTensorType(value.type).element_type

    def attribute(self, name: str, kind: type, example: str) -> Any:
        """Return an attribute as one of a class of attributes.

        Raises:
            LegoError: it is missing, or of another class.
        """
        found = self.op.attributes.get(name)
        if not isinstance(found, kind):
            shown = "has none" if found is None else f"it is '{found}'"
            self.fail(f"needs the attribute {name}, and {shown}", f"write {{{name} = {example}}}")
        return found

    def dim(self, rank: int) -> int:
        """Return the attribute `dim`, a dimension of a tile of this rank.

        Raises:
            LegoError: there is no such dimension.
        """
        dim: int = self.attribute(tiles.DIM, ir.IntegerAttr, "0 : i64").value
        self.require(
            0 <= dim < rank,
            lambda: f"is about dimension {dim} of a tile with the dimensions 0 to {rank - 1}",
            "dimensions count from 0",
        )
        return dim

    def same_shape(self, value: Any, shape: tuple[int, ...], what: str) -> None:
        """Require a shape of a tile."""
        found = self.shape(value)
        self.require(
            found == shape, lambda: f"has {what} of the shape {list(found)}, not {list(shape)}"
        )

    def same_element(self, value: Any, element: Any, what: str) -> None:
        """Require the element type of a tile, or the type of a number."""
        self.same_element_type(value.type, element, what)

    def same_element_type(self, kind: Any, element: Any, what: str) -> None:
        """Require the element type of a tile's type, or the type of a number."""
        found = ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind
        self.require(found == element, lambda: f"has {what} of {found}, not {element}")

    def results_like(self, tile: Any) -> None:
        """Require that all results are as a tile."""
        for result in self.op.results:
            self.same_element(result, self.element(tile), "a result")
            self.same_shape(result, self.shape(tile), "a result")
