"""Arrays: any dtype, shape, strides and byte order as an argument, and damaged .npy files.

The kernel copies a tensor into another layout. An array is refused, or its copy has its values;
what is written in place changes its own elements and no memory beside them.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Any

import numpy as np

from fuzz.modules import Move, drawn_move
from fuzz.mutations import mutated_bytes
from fuzz.runner import WrongError
from lego_mlir.artifact import Artifact
from lego_mlir.compiler.driver import Compilation, Options
from lego_mlir.mlir.context import Source
from lego_mlir.runtime import dtypes, launch, run

DTYPES = (
    *("f4", "f2", "f8", "i1", "i4", "u1", "u2", "u4", "u8", "i2", "i8", "?", "c8", "c16", "O"),
    *("S4", "U3", "M8[s]", "m8[ns]", "V4", "f4,i4", "longdouble", "ml_dtypes"),
)
_WAYS = ("whole", "transposed", "reversed", "every other", "broadcast", "field", "offset", "list")


@dataclass(frozen=True)
class Given:
    """An array for an argument, as it is made from the numbers of its seed."""

    kernel: int
    dtype: str
    shape: tuple[int, ...]
    way: str
    door: str
    order: str
    seed: int
    is_writable: bool

    def array(self) -> Any:
        """The array."""
        random = np.random.default_rng(self.seed)
        dtype = _dtype(self.dtype, self.order)
        shape = self.shape
        match self.way:
            case "transposed":
                made = _filled(random, shape[::-1], dtype).T
            case "reversed":
                made = _filled(random, shape, dtype)[(slice(None, None, -1),) * len(shape)]
            case "every other":
                wide = tuple(2 * n for n in shape)
                made = _filled(random, wide, dtype)[(slice(None, None, 2),) * len(shape)]
            case "broadcast":
                made = np.broadcast_to(_filled(random, shape[1:] or (1,), dtype), shape or (1,))
            case "field":
                pairs = np.zeros(shape, np.dtype([("other", "u1"), ("value", dtype)]))
                pairs["value"] = _filled(random, shape, dtype)
                made = pairs["value"]
            case "offset":
                raw = np.zeros(prod(shape) * dtype.itemsize + 1, np.uint8)[1:]
                made = _filled(random, shape, dtype)
                if not dtype.hasobject:
                    raw[:] = np.frombuffer(made.tobytes(), np.uint8)
                    made = raw.view(dtype).reshape(shape)
            case _:
                made = _filled(random, shape, dtype)
        made = np.asarray(made)
        if not self.is_writable:
            made.flags.writeable = False
        return made


def _dtype(name: str, order: str) -> np.dtype[Any]:
    if name == "ml_dtypes":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    dtype = np.dtype(name)
    return dtype.newbyteorder(order) if dtype.names is None else dtype


def _filled(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    numbers = random.integers(0, 100, shape)
    if dtype.names is not None or dtype.kind in "VMmSU":
        return np.zeros(shape, dtype)
    return np.asarray(numbers).astype(dtype)


class Arrays:
    """See the module."""

    name = "arrays"

    def __init__(self) -> None:
        self.kernels: list[tuple[Move, Artifact]] = []

    def prepare(self) -> None:
        """Compile the kernels."""
        random = Random(5)
        while len(self.kernels) < 8:
            move = drawn_move(random)
            if 4 <= move.size <= 100 and "@rotate" not in move.text:
                compilation = Compilation(Source("move.mlir", move.text), Options())
                self.kernels.append((move, compilation.artifact(assemble=False)))

    def make(self, random: Random) -> Given | tuple[int, bytes]:
        """Return an array, or a kernel's number and a .npy file."""
        kernel = random.randrange(len(self.kernels))
        move, artifact = self.kernels[kernel]
        door = random.choice(("run", "run", "launch", "out"))
        argument = artifact.arguments[0]
        right = _logical(artifact, 0) if door == "run" else argument.shape or ()
        shape = right if random.random() < 0.75 else _other_shape(random, right)
        name = dtypes.numpy_dtype(move.dtype).str[1:]
        dtype = name if random.random() < 0.6 else random.choice(DTYPES)
        way, order = random.choice(_WAYS), random.choice("==<>")
        given = Given(
            kernel, dtype, shape, way, door, order, random.randrange(1 << 30), random.random() < 0.9
        )
        if random.random() < 0.3:
            file = io.BytesIO()
            np.save(file, given.array(), allow_pickle=True)
            return kernel, mutated_bytes(random, file.getvalue())
        return given

    def show(self, made: Given | tuple[int, bytes]) -> str:
        if isinstance(made, Given):
            array = made.array()
            return f"{made}\n{array!r}\n{array.flags}strides {array.strides}"
        return f"kernel {made[0]}, a .npy file: {made[1]!r}"

    def smaller(self, made: Given | tuple[int, bytes]) -> Iterable[Given | tuple[int, bytes]]:
        return ()

    def check(self, made: Given | tuple[int, bytes]) -> str:
        if not isinstance(made, Given):
            return self._check_file(*made)
        move, artifact = self.kernels[made.kernel]
        array = made.array()
        if made.door == "run":
            given = array.tolist() if made.way == "list" else array
            result = run(artifact, [given], device="sim")
            _expect_copy(move, artifact, array, result.outputs)
            return "ran"
        if made.door == "launch":
            out = np.zeros(artifact.arguments[1].shape or (), dtypes.numpy_dtype(move.dtype))
            launch(artifact, array, out, device="sim")
            _expect_same(move.expected(_plain(array)), out, "the result")
            return "launched"
        return self._check_out(move, artifact, array)

    def _check_file(self, kernel: int, data: bytes) -> str:
        _, artifact = self.kernels[kernel]
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            file.write(data)
            file.flush()
            run(artifact, [file.name], device="sim")
        return "read"

    def _check_out(self, move: Move, artifact: Artifact, out: Any) -> str:
        """Write into the array; what is around it in memory stays."""
        base = out
        while isinstance(base.base, np.ndarray):
            base = base.base
        source = np.arange(move.size).astype(dtypes.numpy_dtype(move.dtype))
        before = base.copy()
        launch(artifact, source, out, device="sim")
        _expect_same(move.expected(source), _plain(out), "what is written")
        if out.dtype.hasobject or out.size == base.size:
            return "written"
        values = out.copy()
        out[...] = 0
        cleared = base.copy()
        base[...] = before
        out[...] = 0
        _expect_same(base, cleared, "the memory beside the array")
        out[...] = values
        return "written"


def _logical(artifact: Artifact, number: int) -> tuple[int, ...]:
    from lego_mlir.runtime.arrays import layout_offsets

    argument = artifact.arguments[number]
    offsets = layout_offsets(argument, {})
    return (argument.shape or ()) if offsets is None else offsets.shape


def _other_shape(random: Random, shape: tuple[int, ...]) -> tuple[int, ...]:
    size = prod(shape)
    fixed = [(), (0,), (1,), (size,), (size, 1), (1, size), (*shape, 1), shape[1:], shape[::-1]]
    return random.choice([*fixed, (size + 1,), tuple(n + 1 for n in shape)])


def _plain(array: Any) -> Any:
    """The values in native byte order, contiguous, flat."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(-1)


def _expect_copy(move: Move, artifact: Artifact, array: Any, outputs: Any) -> None:
    """Compare with the copy through flat buffers: the tensors' own offsets say where."""
    from lego_mlir.runtime.arrays import layout_offsets

    from_a, to_b = (layout_offsets(argument, {}) for argument in artifact.arguments)
    assert from_a is not None
    assert to_b is not None
    (output,) = outputs.values()
    source = np.empty(move.size, array.dtype.newbyteorder("="))
    source[from_a.reshape(-1)] = _plain(array)
    _expect_same(move.expected(source)[to_b.reshape(-1)], output, "the result")


def _expect_same(expected: Any, found: Any, what: str) -> None:
    expected, found = np.ascontiguousarray(expected), np.ascontiguousarray(found)
    if expected.tobytes() != found.tobytes():
        raise WrongError(f"{what} is {found.reshape(-1)}, not {expected.reshape(-1)}")


FUZZER = Arrays()
