"""Which instructions move a tensor between registers and memory (section 5.1 and 5.3).

With A the memory layout and B the distributed layout of one tensor, `A⁻¹ B` takes a register of a
lane of a warp to the offset of its element. An instruction with tile T can do such an access if T
divides that map on the left (Theorem 5.1). Which register is which is ours to choose, so bits of
`register` may be put in another order first; every answer says in which.

Offsets are counted in elements, and the memory is taken to start at a multiple of 16 bytes, as
the instructions need it.
"""

from __future__ import annotations

from dataclasses import dataclass

from lego_mlir.analysis.linear import f2
from lego_mlir.analysis.linear.catalogue import LANE, OFFSET, REGISTER
from lego_mlir.analysis.linear.layout import LinearLayout, broadcast, identity
from lego_mlir.analysis.linear.spaces import dims_text, positions
from lego_mlir.diagnostics import LegoError

VECTOR_BITS = 128
"""The widest access of one lane (PTX ISA, "ld" and "st")."""


@dataclass(frozen=True, slots=True)
class Vectorization:
    """The widest access that every lane can make.

    Attributes:
        elements: how many an instruction moves for each lane; 1 if the registers of a lane are
            not next to each other in memory.
        registers: the bits of `register`, those within an instruction first.
        limit: why not twice as many.
    """

    elements: int
    registers: tuple[int, ...]
    limit: str


@dataclass(frozen=True, slots=True)
class MatrixAccess:
    """How `ldmatrix` or `stmatrix` does an access, or why it cannot. True if it can.

    Attributes:
        matrices: how many 8×8 matrices of 16 bits an instruction moves: 1, 2 or 4; 0 if it cannot.
        registers: the bits of `register`: those within a matrix, then those that number an
            instruction's matrices, then those that number the instructions.
        rows: from `row`, `matrix`, `register` (the number of the instruction) and what else the
            distributed layout has, to the offset where that row starts; lane `8 * matrix + row`
            supplies it.
        reason: why it cannot.
    """

    matrices: int = 0
    registers: tuple[int, ...] = ()
    rows: LinearLayout | None = None
    reason: str = ""

    def __bool__(self) -> bool:
        return self.matrices > 0


def conversion(source: LinearLayout, destination: LinearLayout) -> LinearLayout:
    """Map every position of `source` to a position of `destination` with the same element.

    It is X with `destination @ X` equal to `source` (section 5.4). Where `destination` holds copies
    of an element, there are several such maps. This one keeps in place what can stay: if a
    register, lane and warp hold the same element in both layouts, X maps them to themselves, so
    `conversion(a, a)` is the identity. Otherwise a change of registers is preferred to one of
    lanes, and this to one of warps, in the order of the inputs of `destination`.

    To move a tensor from `a` to `b`, each position of `b` reads at `conversion(b, a)`: all copies
    in `b` are written, and `a` may hold copies, too.

    Raises:
        LegoError: the two are of different tensors, or `destination` lacks an element of `source`.
    """
    if set(source.outputs) != set(destination.outputs):
        raise LegoError(
            f"a layout of ({dims_text(source.outputs)}) is not converted to one of "
            f"({dims_text(destination.outputs)})",
            hint="both lay out one tensor: dimensions of the same names and sizes",
        )
    source = source.with_outputs(*(d.name for d in destination.outputs))
    elimination = f2.eliminate(destination.columns)
    columns = []
    for bits, element in zip(_matching_inputs(source, destination), source.columns, strict=True):
        change = elimination.solve(element ^ f2.image(destination.columns, bits))
        if change is None:
            raise LegoError(
                f"element {source.image_text(element)} is nowhere in the layout from "
                f"({dims_text(destination.inputs)})"
            )
        columns.append(bits ^ change)
    return LinearLayout(source.inputs, destination.inputs, tuple(columns))


def _matching_inputs(source: LinearLayout, destination: LinearLayout) -> list[int]:
    """Return for each input bit of `source` the same bit of `destination`, or 0 if it has none."""
    known = positions(destination.inputs)
    bit_positions = [known.get(d.name, range(0))[: d.bits] for d in source.inputs]
    return [
        1 << bits[k] if k < len(bits) else 0
        for d, bits in zip(source.inputs, bit_positions, strict=True)
        for k in range(d.bits)
    ]


def _offsets(distributed: LinearLayout, memory: LinearLayout) -> LinearLayout:
    """Map registers, lanes and warps to memory offsets: `A⁻¹ B` (section 5.3).

    Registers or lanes that the layout does not have are there with size 1.

    Raises:
        LegoError: the memory layout is no bijection, or the two are of different tensors.
    """
    layout = (memory.inverse() @ distributed).flatten_outputs(OFFSET)
    return layout * broadcast(REGISTER, 1) * broadcast(LANE, 1)


def contiguous_elements(layout: LinearLayout) -> int:
    """Return how many elements a thread's first registers hold that are contiguous in the tensor.

    The largest power of two u such that the elements before u are in the registers of the same
    numbers (section 5.1); dimensions of size 1 are no obstacle.

    Raises:
        LegoError: the layout does not hold all of the tensor.
    """
    where = layout.flatten_outputs(OFFSET).right_inverse()
    registers = positions(layout.inputs).get(REGISTER, range(0))
    elements = 1
    for column, register in zip(where.columns, registers, strict=False):
        if column != 1 << register:
            break
        elements *= 2
    return elements


def vectorization(
    distributed: LinearLayout, memory: LinearLayout, bits: int, *, permute: bool = True
) -> Vectorization:
    """Return the widest vector that one lane loads or stores: the largest identity that divides.

    Args:
        distributed: from `register`, `lane`, `warp` to the tensor.
        memory: from offsets to the same tensor.
        bits: of an element, a power of two.
        permute: whether registers may be taken in another order ("generalized vectorization").

    Raises:
        LegoError: the layouts are of different tensors, or there is no such element.
    """
    most = VECTOR_BITS // _element_bits(bits, VECTOR_BITS)
    layout = _offsets(distributed, memory)
    elements, (registers, _) = 1, _fit(layout, identity(REGISTER, OFFSET, 1), permute)
    while elements < most:
        order, obstacle = _fit(layout, identity(REGISTER, OFFSET, 2 * elements), permute)
        if obstacle is not None:
            return Vectorization(elements, registers, obstacle)
        elements, registers = 2 * elements, order
    return Vectorization(elements, registers, f"a lane moves at most {VECTOR_BITS} bits at once")


def matrix_tile(bits: int) -> LinearLayout:
    """Return the tile of `ldmatrix` and `stmatrix`: a row of 16 bytes, 4 from each of four lanes.

    Raises:
        LegoError: an element has more than 32 bits, or there is none such.
    """
    return identity(REGISTER, OFFSET, _packed(bits)) * identity(LANE, OFFSET, 4)


def matrix_access(
    distributed: LinearLayout, memory: LinearLayout, bits: int, *, transposed: bool = False
) -> MatrixAccess:
    """Return whether `ldmatrix` or `stmatrix` can move a tensor, and its addresses (section 5.3).

    With `.trans` a row of memory goes to one lane out of each group of four, and the two elements
    of a register come from two rows (PTX ISA, "ldmatrix"; the paper has no tile for it): the tile
    is the identity from the upper three bits of the lane.

    Args:
        distributed: from `register`, `lane`, `warp` to the tensor.
        memory: from offsets in shared memory to the same tensor.
        bits: of an element: a power of two up to 32, and 16 with `.trans`.
        transposed: whether to ask for `.trans`.

    Raises:
        LegoError: the layouts are of different tensors, or there is no such element.
    """
    layout, packed = _offsets(distributed, memory), _packed(bits)
    registers, lanes = (layout.select([name]).input_size for name in (REGISTER, LANE))
    if lanes != 32:
        return MatrixAccess(reason=f"a warp has 32 lanes, the layout {lanes}")
    if transposed and bits != 16:
        return MatrixAccess(reason=f"with .trans elements have 16 bits, not {bits}")
    if registers < packed:
        return MatrixAccess(
            reason=f"a matrix gives a lane {packed} elements of {bits} bits, the layout {registers}"
        )
    if transposed:
        row, order = ["packed", "lane_low"], tuple(range(registers.bit_length() - 1))
        obstacle = _cut(layout, packed, 1).obstacle(identity("lane_high", OFFSET, 8))
    else:
        row, (order, obstacle) = ["lane_high"], _fit(layout, matrix_tile(bits), permute=True)
    if obstacle is not None:
        return MatrixAccess(reason=obstacle)
    matrices = min(4, registers // packed)
    cut = _cut(layout.permute_bits(REGISTER, order), packed, matrices)
    others = [d.name for d in layout.inputs if d.name not in (REGISTER, LANE)]
    rows = cut.select([*row, "matrix", REGISTER, *others])
    sizes = {d.name: d.size for d in rows.inputs if d.name not in row}
    return MatrixAccess(matrices, order, rows.reshape_inputs(row=8, **sizes))


def _cut(layout: LinearLayout, packed: int, matrices: int) -> LinearLayout:
    """Registers as those of a matrix, the matrices and the rest; lanes as the matrix has them."""
    parts: dict[str, int] = {}
    for d in layout.inputs:
        match d.name:
            case "register":
                rest = d.size // packed // matrices
                parts |= {"packed": packed, "matrix": matrices, REGISTER: rest}
            case "lane":
                parts |= {"lane_low": 4, "lane_high": 8}
            case name:
                parts[name] = d.size
    return layout.reshape_inputs(**parts)


def _fit(
    layout: LinearLayout, tile: LinearLayout, permute: bool
) -> tuple[tuple[int, ...], str | None]:
    """Return an order of register bits by which the tile divides the layout, or an obstacle."""
    images = layout.select([REGISTER]).columns
    order = tuple(range(len(images)))
    if permute:
        register_columns = tile.select([REGISTER]).columns
        for image in register_columns:
            if image not in images:
                return order, f"no bit of register maps to {layout.image_text(image)}"
        first = [images.index(image) for image in register_columns]
        order = (*first, *(k for k in order if k not in first))
    return order, layout.permute_bits(REGISTER, order).obstacle(tile)


def _packed(bits: int) -> int:
    """Return how many elements of so many bits a 32-bit register holds."""
    return 32 // _element_bits(bits, 32)


def _element_bits(bits: int, most: int) -> int:
    if bits < 1 or bits & (bits - 1) or bits > most:
        raise LegoError(f"an element has a power of two of bits, at most {most}, not {bits}")
    return bits
