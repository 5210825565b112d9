"""The class of linear layouts and its algebra (papers/linear_layouts, section 4.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lego_mlir.analysis.linear import f2
from lego_mlir.analysis.linear.evaluation import checked, combine
from lego_mlir.analysis.linear.spaces import (
    Dim,
    Dims,
    bit_positions,
    chosen,
    dim,
    dims_text,
    join,
    joined,
    recut,
    reordered,
    split,
    total_bits,
    without,
)
from lego_mlir.diagnostics import LegoError


@dataclass(frozen=True, slots=True)
class LinearLayout:
    """A linear map over F2 between labelled spaces (Definition 4.1).

    Dimensions are listed fastest first, as in the paper: the bits of the first one are the least
    significant when a space is flattened. Immutable; equal if dimensions and matrix are.

    Attributes:
        inputs: the spaces mapped from.
        outputs: the spaces mapped to.
        columns: the images of the input bits, each flattened over the outputs.
    """

    inputs: Dims
    outputs: Dims
    columns: f2.Matrix

    def __post_init__(self) -> None:
        for side, dims in (("input", self.inputs), ("output", self.outputs)):
            names = [d.name for d in dims]
            if len(set(names)) < len(names) or not all(n.isidentifier() for n in names):
                raise LegoError(f"the {side} dimensions of a linear layout need names, not {names}")
        if len(self.columns) != total_bits(self.inputs):
            raise LegoError(
                f"a linear layout from ({dims_text(self.inputs)}) has one image for each of "
                f"{total_bits(self.inputs)} bits, not {len(self.columns)}"
            )
        for column in self.columns:
            if not 0 <= column < self.output_size:
                raise LegoError(f"image {column} lies outside of ({dims_text(self.outputs)})")

    # What it is.
    @property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """For every input, the coordinates that each of its bits maps to."""
        images = iter(self.columns)
        return {
            d.name: tuple(split(next(images), self.outputs) for _ in range(d.bits))
            for d in self.inputs
        }

    @property
    def matrix(self) -> tuple[tuple[int, ...], ...]:
        """The entries row by row, a row for each output bit, least significant first."""
        rows = range(total_bits(self.outputs))
        return tuple(tuple(column >> row & 1 for column in self.columns) for row in rows)

    @property
    def input_size(self) -> int:
        """How many inputs there are, over all dimensions."""
        return 1 << total_bits(self.inputs)

    @property
    def output_size(self) -> int:
        """How many outputs there are, over all dimensions."""
        return 1 << total_bits(self.outputs)

    @property
    def rank(self) -> int:
        """The dimension of the image."""
        return f2.eliminate(self.columns).rank

    @property
    def kernel(self) -> tuple[dict[str, int], ...]:
        """A basis of what maps to zero: each vector by its coordinates."""
        basis = f2.eliminate(self.columns).kernel
        return tuple(self._named(x, self.inputs) for x in basis)

    @property
    def is_injective(self) -> bool:
        """Whether no two inputs share an image."""
        return self.rank == len(self.columns)

    @property
    def is_surjective(self) -> bool:
        """Whether every output is an image."""
        return self.rank == total_bits(self.outputs)

    @property
    def is_invertible(self) -> bool:
        """Whether it is a bijection."""
        return self.is_injective and self.is_surjective

    def __str__(self) -> str:
        lines = [f"({dims_text(self.inputs)}) -> ({dims_text(self.outputs)})"]
        images = iter(self.columns)
        for d in self.inputs:
            row = ", ".join(f"{1 << k} -> {self.image_text(next(images))}" for k in range(d.bits))
            lines.append(f"  {d.name}: {row or '-'}")
        return "\n".join(lines)

    def image_text(self, flat: int) -> str:
        """Return an output by its coordinates other than zero, for messages: `j=1 i=2`."""
        named = self._named(flat, self.outputs).items()
        return " ".join(f"{name}={x}" for name, x in named if x) or "0"

    @staticmethod
    def _named(flat: int, dims: Dims) -> dict[str, int]:
        return dict(zip((d.name for d in dims), split(flat, dims), strict=True))

    # What it does.
    def apply(self, /, **index: Any) -> dict[str, Any]:
        """Return the coordinates of an input's image, by name.

        Args:
            index: a value for each input: an int, a NumPy integer array, an index expression or
                anything else with `//`, `%`, `*`, `+` and `^`.

        Raises:
            LegoError: an input is missing or unknown, or a number is out of range.
        """
        names = [d.name for d in self.inputs]
        if set(index) != set(names):
            raise LegoError(f"the inputs are ({', '.join(names)}), not ({', '.join(index)})")
        values = combine(
            self.columns,
            [(checked(index[d.name], d.name, d.size), d.bits) for d in self.inputs],
            [d.bits for d in self.outputs],
        )
        return dict(zip((d.name for d in self.outputs), values, strict=True))

    # The algebra.
    def __matmul__(self, inner: LinearLayout) -> LinearLayout:
        """Return `outer @ inner`: first `inner`, then `outer`, joined by name (Definition 4.2).

        Raises:
            LegoError: what `inner` maps to is not what `outer` maps from.
        """
        if set(self.inputs) != set(inner.outputs):
            raise LegoError(
                f"a layout from ({dims_text(self.inputs)}) cannot follow one to "
                f"({dims_text(inner.outputs)})",
                hint="composition joins dimensions of the same name and size",
            )
        inner = inner.with_outputs(*(d.name for d in self.inputs))
        return LinearLayout(inner.inputs, self.outputs, f2.multiply(self.columns, inner.columns))

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """Return the product, label by label (Definition 4.3): `tile * repeats`.

        Of a label that both have, the other's bits stand above those of this layout.
        """
        inputs, outputs = joined(self.inputs, other.inputs), joined(self.outputs, other.outputs)
        other = other._ordered_like(inputs, outputs)
        columns = [0] * total_bits(inputs)
        low, high = zip(
            *map(bit_positions, (inputs, outputs), (self.inputs, self.outputs)), strict=True
        )
        for part, (sources, targets) in ((self, low), (other, high)):
            for k, column in zip(sources, part.columns, strict=True):
                columns[k] = f2.scatter(column, targets)
        return LinearLayout(inputs, outputs, tuple(columns))

    def divide_left(self, tile: LinearLayout) -> LinearLayout | None:
        """Return the left quotient by `tile`: `rest` with `tile * rest` equal to the layout.

        `None` where the layout is no such product (Definition 4.4); `obstacle` then says why.
        Dimensions keep their names, also those that `tile` uses up.
        """
        if self.obstacle(tile) is not None:
            return None
        _, high_inputs = bit_positions(self.inputs, tile.inputs)
        _, high = bit_positions(self.outputs, tile.outputs)
        return LinearLayout(
            without(self.inputs, tile.inputs),
            without(self.outputs, tile.outputs),
            tuple(f2.gather(self.columns[k], high) for k in high_inputs),
        )

    def obstacle(self, tile: LinearLayout) -> str | None:
        """Return why `tile` does not divide the layout on the left, or `None` if it does."""
        for mine, its in ((self.inputs, tile.inputs), (self.outputs, tile.outputs)):
            bits = {d.name: d.bits for d in mine}
            for d in its:
                if d.bits > bits.get(d.name, 0):
                    have = 1 << bits[d.name] if d.name in bits else "none"
                    return f"the tile needs {d.name} of size {d.size}, the layout has {have}"
        low_inputs, high_inputs = bit_positions(self.inputs, tile.inputs)
        low, _ = bit_positions(self.outputs, tile.outputs)
        for k, column in zip(low_inputs, tile.columns, strict=True):
            expected = f2.scatter(column, low)
            if self.columns[k] != expected:
                return (
                    f"{self._bit_text(k)} maps to {self.image_text(self.columns[k])}, "
                    f"the tile needs {self.image_text(expected)}"
                )
        for k in high_inputs:
            if f2.gather(self.columns[k], low):
                return (
                    f"{self._bit_text(k)} maps to {self.image_text(self.columns[k])}, "
                    f"which falls inside the tile ({dims_text(tile.outputs)})"
                )
        return None

    def right_inverse(self) -> LinearLayout:
        """Return a layout R with `self @ R` the identity (Definition 4.5).

        Of the inputs that share an image it picks the one over the first independent columns, so
        copies are read from the lowest register, lane and warp that hold them; for a distributed
        layout it is the input with the fewest bits set.

        Raises:
            LegoError: it is not surjective.
        """
        columns = f2.right_inverse(self.columns, total_bits(self.outputs))
        if columns is None:
            raise LegoError(
                f"the layout reaches {1 << self.rank} of the {self.output_size} elements of "
                f"({dims_text(self.outputs)}): it has no right inverse"
            )
        return LinearLayout(self.outputs, self.inputs, columns)

    def inverse(self) -> LinearLayout:
        """Return the inverse map.

        Raises:
            LegoError: it is no bijection; names two inputs with one image, or an output of none.
        """
        for x in self.kernel:
            found = " ".join(f"{name}={i}" for name, i in x.items() if i)
            raise LegoError(f"the layout maps {found} to 0, as it does 0 itself: it has no inverse")
        return self.right_inverse()

    # Other names for the same bits.
    def with_inputs(self, *names: str) -> LinearLayout:
        """Return the inputs in another order."""
        return self.select(reordered(self.inputs, names))

    def with_outputs(self, *names: str) -> LinearLayout:
        """Return the outputs in another order: a transposition of the tensor, where it has two."""
        return self.select(outputs=reordered(self.outputs, names))

    def select(
        self, inputs: Iterable[str] | None = None, outputs: Iterable[str] | None = None
    ) -> LinearLayout:
        """Keep these inputs, the others held at zero, and these outputs, the others dropped.

        The submatrix of the labels: `select(["register"])` is L_Reg, and `select(outputs=["i"])`
        the slice along every other dimension (Proposition 4.8).
        """
        ins, taken = chosen(self.inputs, inputs)
        outs, kept = chosen(self.outputs, outputs)
        return LinearLayout(ins, outs, tuple(f2.gather(self.columns[k], kept) for k in taken))

    def rename(self, /, **names: str) -> LinearLayout:
        """Rename dimensions: `rename(i="j", j="i")`.

        Raises:
            LegoError: there is no such dimension.
        """
        known = {d.name for d in self.inputs + self.outputs}
        for name in names:
            if name not in known:
                raise LegoError(f"there is no dimension '{name}' among {sorted(known)}")

        def renamed(dims: Dims) -> Dims:
            return tuple(Dim(names.get(d.name, d.name), d.bits) for d in dims)

        return LinearLayout(renamed(self.inputs), renamed(self.outputs), self.columns)

    def reshape_inputs(self, /, **sizes: int) -> LinearLayout:
        """Return the flattened inputs cut into dimensions of these sizes, fastest first."""
        return LinearLayout(recut(self.inputs, sizes), self.outputs, self.columns)

    def reshape_outputs(self, /, **sizes: int) -> LinearLayout:
        """Return the flattened outputs cut into dimensions of these sizes, fastest first."""
        return LinearLayout(self.inputs, recut(self.outputs, sizes), self.columns)

    def flatten_inputs(self, name: str) -> LinearLayout:
        """Return all inputs as one."""
        return self.reshape_inputs(**{name: self.input_size})

    def flatten_outputs(self, name: str) -> LinearLayout:
        """Return all outputs as one."""
        return self.reshape_outputs(**{name: self.output_size})

    def permute_bits(self, name: str, order: Sequence[int]) -> LinearLayout:
        """Return the bits of one input in another order: bit k becomes what bit `order[k]` was.

        Raises:
            LegoError: there is no such input, or `order` is no permutation of its bits.
        """
        _, mine = chosen(self.inputs, [name])
        if sorted(order) != list(range(len(mine))):
            raise LegoError(f"{list(order)} is no permutation of the {len(mine)} bits of {name}")
        columns = list(self.columns)
        for k, bit in enumerate(order):
            columns[mine[k]] = self.columns[mine[bit]]
        return LinearLayout(self.inputs, self.outputs, tuple(columns))

    def _ordered_like(self, inputs: Dims, outputs: Dims) -> LinearLayout:
        mine = {d.name for d in self.inputs}, {d.name for d in self.outputs}
        return self.select(
            [d.name for d in inputs if d.name in mine[0]],
            [d.name for d in outputs if d.name in mine[1]],
        )

    def _bit_text(self, k: int) -> str:
        for d in self.inputs:
            if k < d.bits:
                return f"{d.name} bit {k}"
            k -= d.bits
        raise AssertionError(k)


# Constructors.
def linear(
    bases: Mapping[str, Sequence[Sequence[int]]], outputs: Mapping[str, int]
) -> LinearLayout:
    """Return a linear layout by the images of its input bits.

    Args:
        bases: for every input, fastest first, the coordinates that each of its bits maps to, one
            coordinate for each output.
        outputs: the sizes of the outputs, fastest first.

    Raises:
        LegoError: a size is no power of two, or a coordinate is missing or out of range.
    """
    outs = tuple(dim(name, size) for name, size in outputs.items())
    columns = []
    for name, images in bases.items():
        for coordinates in images:
            if len(coordinates) != len(outs):
                raise LegoError(
                    f"{name}: {tuple(coordinates)} has {len(coordinates)} coordinates, "
                    f"the outputs are ({dims_text(outs)})"
                )
            for x, d in zip(coordinates, outs, strict=True):
                if not 0 <= x < d.size:
                    raise LegoError(f"{name}: {d.name} is {x}, not in [0, {d.size})")
            columns.append(join(coordinates, outs))
    ins = tuple(Dim(name, len(images)) for name, images in bases.items())
    return LinearLayout(ins, outs, tuple(columns))


def identity(source: str, target: str, size: int) -> LinearLayout:
    """Return the identity from one dimension to another: id in the paper's proofs."""
    d = dim(source, size)
    return LinearLayout((d,), (Dim(target, d.bits),), f2.identity(d.bits))


def broadcast(source: str, size: int) -> LinearLayout:
    """Return a dimension that moves nothing: zero columns, copies of the same elements."""
    d = dim(source, size)
    return LinearLayout((d,), (), (0,) * d.bits)
