"""The text of shapes and strides in CuTe's notation, such as "((8,4),2):((4,1),32)"."""

from __future__ import annotations

from typing import Any

from lego_mlir.algebra.notation.sizes import SizeParser


def parse_strides(text: str) -> tuple[Any, Any]:
    """Parse shape and strides such as "((8,4),2):((4,1),32)" to nested tuples of sizes.

    Raises:
        LegoError: with its location in the text (file `<strides>`, line 1).
    """
    parser = _StridesParser(text, {}, "<strides>")
    try:
        return parser.strides()
    except RecursionError:
        raise parser.error("the modes are nested too deeply to be read", 0) from None


class _StridesParser(SizeParser):
    """Recursive descent over the modes of a shape and its strides."""

    def strides(self) -> tuple[Any, Any]:
        shape = self.modes()
        self.expect(":", "between the shape and its strides")
        stride = self.modes()
        if self.peek():
            raise self.error(f"unexpected '{self.peek()}' after the strides", self.at())
        return self.values(shape), self.values(stride)

    def modes(self) -> Any:
        """Return a size, or modes in brackets: those after which no operator goes on."""
        depth = 0
        for k, token in enumerate(self.tokens[self.next :] if self.peek() == "(" else ()):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                after = self.tokens[self.next + k + 1 :][:1]
                if not after or after[0].text in ",):":
                    self.take()
                    return tuple(self.listed(self.modes, ")"))
                break
        return self.size()

    def values(self, modes: Any) -> Any:
        if isinstance(modes, tuple):
            return tuple(self.values(m) for m in modes)
        return self.value(modes)
