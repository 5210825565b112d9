"""Tensor maps: the description of a tensor in global memory and its box, for TMA copies.

A `TensorMap` is what the host makes (`cuTensorMapEncodeTiled`), an argument of `launch`. The
kernel gets 128 opaque bytes: here the fields in a private encoding, so that they may be in a
parameter, in constant or in global memory, and be copied.

Dimensions go from the innermost to the outermost everywhere, as in the driver's call and in the
coordinates of the instructions; a NumPy shape is the other way round.

Source: PTX ISA 5.5 (tensors, boxes, swizzling modes); CUDA driver API, cuTensorMapEncodeTiled.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from lego_mlir.artifact.tensor_maps import check_tensor_map, last_byte, refused
from lego_mlir.diagnostics import LegoError
from lego_mlir.hardware.limits import TENSOR_MAP_BYTES
from lego_mlir.sim.ptx.types import Array

ELEMENTS: dict[str, tuple[int, str]] = {
    "u8": (1, "u8"),
    "u16": (2, "u16"),
    "u32": (4, "u32"),
    "s32": (4, "s32"),
    "u64": (8, "u64"),
    "s64": (8, "s64"),
    "f16": (2, "f16"),
    "f32": (4, "f32"),
    "f64": (8, "f64"),
    "bf16": (2, "bf16"),
    "f32_ftz": (4, "f32"),
    "tf32": (4, "f32"),
    "tf32_ftz": (4, "f32"),
}
"""The element types of a tensor map: bytes, and the PTX type that reductions compute in."""

SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
"""Each swizzling mode and the number of address bits that it changes."""

_NUMPY = {"u1": "u8", "u2": "u16", "u4": "u32", "i4": "s32", "u8": "u64", "i8": "s64"} | {
    f"f{n}": f"f{8 * n}" for n in (2, 4, 8)
}
_MOST_STEP = 8
_MAGIC = b"tile map"
_FORM = struct.Struct("<8s4BIQ5I4Q5H5B")


@dataclass(frozen=True, eq=False, slots=True)
class TensorMap:
    """A tensor in an array, and the box that one copy moves.

    Attributes:
        array: a C-contiguous array; its bytes are the buffer. It is changed in place.
        box: elements of the box in each dimension, 1 to 256, innermost first.
        shape: elements of the tensor in each dimension; None: those of the array.
        strides: bytes from one element to the next in each dimension but the innermost; None:
            those of the array.
        dtype: one of `ELEMENTS`; None: that of the array.
        element_strides: step between elements of the box in each dimension, 1 to 8; None: 1. Of a
            box extent `b` with a step `s`, `ceil(b / s)` elements are moved.
        swizzle: `none`, `32B`, `64B` or `128B`.
        fill: the value of elements outside the tensor: `zero`, or `nan` in float types.
        offset: byte of the array at which the tensor starts.

    Raises:
        LegoError: what `cuTensorMapEncodeTiled` refuses too.
    """

    array: Array
    box: tuple[int, ...]
    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    dtype: str | None = None
    element_strides: tuple[int, ...] | None = None
    swizzle: str = "none"
    fill: str = "zero"
    offset: int = 0

    def __post_init__(self) -> None:
        _check(self.tiles(0))
        if not self.array.flags.c_contiguous:
            raise refused(f"the array's strides {self.array.strides} are not C-contiguous")
        tiles = self.tiles(self.offset)
        last = last_byte(tiles.shape, tiles.strides[1:], tiles.element)
        if self.offset < 0 or self.offset + last > self.array.nbytes:
            raise refused(
                f"a tensor of {tiles.shape} with strides {tiles.strides} from byte {self.offset} "
                f"on does not fit the array's {self.array.nbytes} bytes"
            )
        if self.offset % 16:
            raise refused(f"its address, offset {self.offset}, is no multiple of 16 bytes")

    def tiles(self, address: int) -> Tiles:
        """Return the map's fields, for a tensor at an address."""
        name = self.dtype or _NUMPY.get(self.array.dtype.str[1:], str(self.array.dtype))
        if name not in ELEMENTS:
            raise refused(f"no element type {name!r}", f"they are {', '.join(ELEMENTS)}")
        if self.swizzle not in SWIZZLES:
            raise refused(f"no swizzle {self.swizzle!r}", f"they are {', '.join(SWIZZLES)}")
        if self.fill not in ("zero", "nan"):
            raise refused(f"no fill {self.fill!r}", "they are zero and nan")
        shape = self.array.shape[::-1] if self.shape is None else self.shape
        strides = self.array.strides[-2::-1] if self.strides is None else self.strides
        steps = self.element_strides or (1,) * len(shape)
        return Tiles(
            address,
            name,
            tuple(map(int, shape)),
            (ELEMENTS[name][0], *map(int, strides)),
            tuple(map(int, self.box)),
            tuple(map(int, steps)),
            self.swizzle,
            self.fill == "nan",
        )

    def encoded(self, base: int) -> bytes:
        """Return the 128 bytes of the map, for an array at the address `base`."""
        return self.tiles(base + self.offset).encoded()


@dataclass(frozen=True, slots=True)
class Tiles:
    """The fields of a tensor map.

    Attributes:
        address: of the tensor's first element, in global memory.
        dtype: one of `ELEMENTS`.
        shape, strides, box, steps: for each dimension, innermost first: elements of the tensor,
            bytes between them, elements of the box, and their element strides.
        swizzle: one of `SWIZZLES`.
        nan: whether elements outside read as NaN.
    """

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle: str
    nan: bool

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def element(self) -> int:
        """Return the bytes of an element."""
        return ELEMENTS[self.dtype][0]

    @property
    def moved(self) -> tuple[int, ...]:
        """Return the elements that a copy moves in each dimension."""
        outer = [-(-b // s) for b, s in zip(self.box[1:], self.steps[1:], strict=True)]
        return (self.box[0], *outer)

    @property
    def size(self) -> int:
        """Return the bytes that a copy moves, including elements outside the tensor."""
        return prod(self.moved) * self.element

    @property
    def pitch(self) -> int:
        """Return the bytes from one row of the box to the next, which a swizzle pads."""
        bits = SWIZZLES[self.swizzle]
        return 16 << bits if bits else self.box[0] * self.element

    def encoded(self) -> bytes:
        """Return the fields as 128 bytes."""

        def five(values: tuple[int, ...], fill: int) -> tuple[int, ...]:
            return values + (fill,) * (5 - len(values))

        packed = _FORM.pack(
            _MAGIC,
            self.rank,
            list(ELEMENTS).index(self.dtype),
            SWIZZLES[self.swizzle],
            self.nan,
            0,
            self.address,
            *(n - 1 for n in five(self.shape, 1)),
            *five(self.strides, 0)[1:],
            *five(self.box, 1),
            *five(self.steps, 1),
        )
        return packed.ljust(TENSOR_MAP_BYTES, b"\0")


@lru_cache(maxsize=256)
def decoded(data: bytes) -> Tiles | None:
    """Return the fields in 128 bytes; None if these are not a tensor map."""
    magic, rank, dtype, swizzle, nan, _, address, *rest = _FORM.unpack_from(data)
    if magic != _MAGIC:
        return None
    name = list(ELEMENTS)[dtype]
    return Tiles(
        address,
        name,
        tuple(n + 1 for n in rest[:rank]),
        (ELEMENTS[name][0], *rest[5 : 4 + rank]),
        tuple(rest[9 : 9 + rank]),
        tuple(rest[14 : 14 + rank]),
        list(SWIZZLES)[swizzle],
        bool(nan),
    )


MAX_RANK = 5

_CODES = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16"),
    *("tf32", "tf32_ftz"),
)
"""The element types in the order of their codes in `tensormap.replace` (PTX ISA 9.7.9.26)."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A new value for a field, as `tensormap.replace` names and encodes both."""

    field: str
    dimension: int
    value: int


def replaced(data: bytes, new: Replaced) -> bytes:
    """Return the 128 bytes of a map with another value in a field.

    Args:
        data: the bytes of a map, or zeros.
        new: the field; of `rank` the value is one less, of `elemtype` it is a code.
    """
    magic, rank, dtype, swizzle, nan, _, address, *rest = _FORM.unpack_from(data)
    if magic != _MAGIC:
        rest = [0] * len(rest)
    value, k = new.value, new.dimension
    match new.field:
        case "global_address":
            address = value
        case "rank":
            rank = min(value + 1, MAX_RANK)
        case "global_dim":
            rest[k] = value - 1 & 0xFFFFFFFF
        case "global_stride":
            rest[5 + k] = value
        case "box_dim":
            rest[9 + k] = value & 0xFFFF
        case "element_stride":
            rest[14 + k] = value & 0xFF
        case "elemtype":
            dtype = list(ELEMENTS).index(_CODES[value])
        case "swizzle_mode":
            swizzle = value
        case "fill_mode":
            nan = value
    packed = _FORM.pack(_MAGIC, rank, dtype, swizzle, nan, 0, address, *rest)
    return packed.ljust(TENSOR_MAP_BYTES, b"\0")


@lru_cache(maxsize=256)
def problem(tiles: Tiles) -> str | None:
    """Return why the copy engine cannot use a map that a kernel made; None if it can."""
    try:
        _check(tiles)
    except LegoError as e:
        return e.message
    return None


def swizzled(address: Array, mode: str) -> Array:
    """Return the swizzled addresses of bytes of a box in shared memory.

    Bits from 4 on are combined by exclusive or with as many bits from 7 on: this permutes the
    16-byte pieces of 32, 64 or 128 bytes, with a period of 256, 512 or 1024 bytes.
    """
    bits = (1 << SWIZZLES[mode]) - 1
    if not bits:
        return address
    result: Array = address ^ (address >> np.uint64(7) & np.uint64(bits)) << np.uint64(4)
    return result


def _check(tiles: Tiles) -> None:
    """Check the fields as the driver does."""
    steps = tiles.steps
    bits = SWIZZLES[tiles.swizzle]
    check_tensor_map(
        tiles.shape, tiles.strides[1:], tiles.box, tiles.element, 16 << bits if bits else 0
    )
    if len(steps) != tiles.rank:
        raise refused(f"element strides of {len(steps)} dimensions for a tensor of {tiles.rank}")
    if any(not 1 <= n <= _MOST_STEP for n in steps):
        raise refused(f"element strides of {steps}: each is 1 to {_MOST_STEP}")
    if tiles.nan and ELEMENTS[tiles.dtype][1][0] not in "fb":
        raise refused(f"a fill of NaN for elements of {tiles.dtype}")
