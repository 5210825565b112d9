"""Windows in a layout's text: reading them, and the functions that they stand for.

`notation.parser` has the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.algebra.layout import Layout
from lego_mlir.algebra.notation.sizes import SizeParser
from lego_mlir.algebra.notation.written import WrittenSize
from lego_mlir.algebra.sizes import as_sizes
from lego_mlir.algebra.windows.window import BOUNDARIES, TensorWindow, default_names, window_of
from lego_mlir.diagnostics import did_you_mean
from lego_mlir.index import Int, Sym


@dataclass(frozen=True, slots=True)
class WrittenWindow:
    """A window as it stands in the text.

    Attributes:
        sizes: of its index.
        names: of the dimensions; none where there is no map.
        coordinates: the functions behind the arrow.
        boundary: one word for all coordinates, or a list.
    """

    sizes: list[WrittenSize]
    names: tuple[str, ...]
    coordinates: list[WrittenSize]
    boundary: str | list[str]


class WindowParser(SizeParser):
    """Reads windows, which end with the bracket that closes their call."""

    def written_window(self) -> WrittenWindow:
        """Read what stands in the brackets of `Window(...)`, and the last one."""
        sizes = self.size_list()
        names: tuple[str, ...] = ()
        coordinates: list[WrittenSize] = []
        boundary: str | list[str] = "inside"
        if self.peek() == ",":
            self.take()
            if self.peek() == "(":
                self.take()
                names = tuple(self.listed(self._name, ")"))
                self.expect("->", "after the names of the window's indices")
                self.expect("(", "to open the list of coordinates")
                coordinates = self.listed(self.size, ")")
                if self.peek() == ",":
                    self.take()
                    boundary = self._boundary()
            else:
                boundary = self._boundary()
        self.expect(")", "at the end of Window")
        return WrittenWindow(sizes, names, coordinates, boundary)

    def _name(self) -> str:
        token = self.take()
        if not token.text.isidentifier():
            raise self.error(f"expected the name of an index, found '{token.text}'", token.at)
        return token.text

    def _boundary(self) -> str | list[str]:
        if self.peek() != "[":
            return self._word()
        self.take()
        return self.listed(self._word, "]")

    def _word(self) -> str:
        token = self.take()
        if token.text not in BOUNDARIES:
            what = f"'{token.text}'" if token.text else "the end"
            raise self.error(
                f"expected a boundary ({', '.join(BOUNDARIES)}), found {what}",
                token.at,
                hint=did_you_mean(token.text, BOUNDARIES),
            )
        return token.text

    def window(self, written: WrittenWindow, base: Layout, at: int) -> TensorWindow:
        """Return the window on a layout that stands at a position of the text."""
        dims = self.built(lambda: as_sizes([self.value(n) for n in written.sizes], "Window"), at)
        names = written.names or default_names(len(dims))
        indices: list[Int] = [Sym(name, 0) for name in names]
        if written.names:
            sizes = {name: self.known[name] for name in names if name in self.known}
            self.known |= dict(zip(names, indices, strict=True))
            values = [self.value(x) for x in written.coordinates]
            for name in names:
                self.known.pop(name, None)  # given twice, which window_of refuses
            self.known |= sizes
        else:
            values = indices
        return self.built(lambda: window_of(base, dims, names, values, written.boundary), at)
