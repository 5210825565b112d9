"""The functions of a layout, as index expressions over parameters with names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lego_mlir.algebra.layout import Layout
from lego_mlir.diagnostics import LegoError
from lego_mlir.index import Int, Sym, construct
from lego_mlir.index.width import widest
from lego_mlir.printers.names import check_name, fresh
from lego_mlir.printers.writer import Writer, shared_nodes


@dataclass(frozen=True, slots=True)
class LayoutFunctions:
    """What is printed of a layout.

    Attributes:
        name: what the names of its functions begin with.
        sizes: its symbolic sizes, the first parameters of each function.
        index: the parameters of `apply`, one a dimension.
        offset: the parameter of `inv`.
        apply: the offset of an index.
        inv: the index at an offset; None of a window, several indices of which may have one.
        mask: 1 where there is an element, 0 in padding and outside of a window's tensor; None if
            there is one at each index.
        dims: the size of each dimension.
        size: the number of offsets.
    """

    name: str
    sizes: tuple[Sym, ...]
    index: tuple[Sym, ...]
    offset: Sym
    apply: Int
    inv: tuple[Int, ...] | None
    mask: Int | None
    dims: tuple[Int, ...]
    size: Int

    @property
    def facts(self) -> list[tuple[Sym, Int]]:
        """The symbolic sizes with what has to divide them, besides being positive."""
        return [(s, d) for s in self.sizes for d in sorted(s.divisors, key=repr)]

    def is_wide(self, bits: int | None) -> bool:
        """Return whether the arithmetic takes 64 bits; `bits` overrules what is proven.

        Raises:
            LegoError: 64 bits are not enough.
        """
        mask = () if self.mask is None else (self.mask,)
        every = (self.apply, *(self.inv or ()), *mask, *self.dims, self.size)
        return takes_64_bits(every, bits)


def functions_of(layout: Layout, name: str, language: str) -> LayoutFunctions:
    """Return the functions of a layout, with parameters that are names in the language.

    Raises:
        LegoError: its name, or that of a size, is none.
    """
    check_name(language, name, "the layout's name")
    sizes = layout.symbols
    for s in sizes:
        check_name(language, s.name, "the size")
    taken = [s.name for s in sizes]
    index = tuple(
        Sym(fresh(f"i{k}", taken), 0, construct.sub(n, 1)) for k, n in enumerate(layout.dims)
    )
    offset = Sym(fresh("offset", taken), 0, construct.sub(layout.size, 1))
    return LayoutFunctions(
        name=name,
        sizes=sizes,
        index=index,
        offset=offset,
        apply=layout.apply(*index),
        inv=tuple(layout.inv(offset)) if layout.window is None else None,
        mask=layout.mask(*index) if layout.is_partial else None,
        dims=layout.dims,
        size=layout.size,
    )


def takes_64_bits(expressions: Sequence[Int], bits: int | None) -> bool:
    """Return whether computing the expressions takes 64 bits; `bits` overrules what is proven.

    Raises:
        LegoError: 64 bits are not enough, or `bits` is neither 32 nor 64.
    """
    if bits not in (None, 32, 64):
        raise LegoError(f"the arithmetic has 32 or 64 bits, not {bits!r}")
    widths = [widest(x) for x in expressions]
    known = [w for w in widths if w is not None]
    if known and max(known) >= 1 << 63:
        raise LegoError("the expressions do not fit 64 bits", hint="use smaller sizes")
    if bits is not None:
        return bits == 64
    return len(known) < len(widths) or max(known, default=0) >= 1 << 31


def body(
    make: Callable[..., Writer], results: Sequence[Int]
) -> tuple[list[str], list[str], set[str]]:
    """Return the declarations, the texts of the results, and the helpers that they call.

    Args:
        make: makes a writer for a set of shared nodes.
        results: what the function returns.
    """
    writer = make(shared_nodes(results))
    texts = [writer.write(x) for x in results]
    return writer.lines, texts, writer.helpers
