"""Transposes and other permutations of dimensions, of any size and any layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from lego_mlir.algebra import Layout, OrderBy, Row, size_symbol
from lego_mlir.diagnostics import LegoError, with_guess
from lego_mlir.frontend import Kernel, KernelChoice, TensorType
from lego_mlir.frontend.dtypes import bytes_of, check_dtype
from lego_mlir.hardware.limits import MAX_ACCESS_BYTES, MAX_CTA_THREADS
from lego_mlir.index import Int
from lego_mlir.kernels.permute import tuner
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig
from lego_mlir.kernels.permute.by_gathers.kernel import gather_permutation
from lego_mlir.kernels.permute.by_squares.config import SquareConfig
from lego_mlir.kernels.permute.by_squares.kernel import square_permutation
from lego_mlir.kernels.permute.by_words.config import WordConfig
from lego_mlir.kernels.permute.by_words.kernel import word_permutation
from lego_mlir.kernels.permute.config import CopyConfig, TileConfig
from lego_mlir.kernels.permute.elementwise import elementwise_transpose
from lego_mlir.kernels.permute.heuristic import (
    Config,
    by_gathers,
    by_squares,
    by_words,
    candidates,
    choose_config,
)
from lego_mlir.kernels.permute.kernel import copy_permutation, tiled_permutation
from lego_mlir.kernels.permute.problem import PermuteProblem, find_problem
from lego_mlir.kernels.permute.runs import RunConfig, run_permutation
from lego_mlir.kernels.permute.tuner import Moved
from lego_mlir.kernels.public import public
from lego_mlir.kernels.tuning import is_wanted

STRIDED = ("vector", "runs", "words", "squares", "gathers")
VARIANTS = ("naive", "shared", *STRIDED)

_MULTIPLE = 16
"""What divides sizes for which rows are accessed by vectors."""

_MOST_BYTES = 1 << 47
"""Of a tensor: what no GPU's memory has, and no price is worked out for."""


@public
def transpose(
    m: int | None,
    n: int | None,
    dtype: str = "f32",
    *,
    a: Layout | None = None,
    b: Layout | None = None,
    batch: int | None = None,
    variant: str | None = None,
    tile: int = 32,
    rows: int = 8,
    alignment: int = 16,
    tune: bool | None = None,
) -> Kernel | KernelChoice:
    """Return a kernel that transposes an m×n matrix, or a batch of them.

    Args:
        m: rows of the input; `None` if only a launch knows them. Layouts then call them M.
        n: columns of the input; `None` as for rows, and N in layouts.
        dtype: element type.
        a: layout of the input, m×n, in a batch batch×m×n; row-major by default.
        b: layout of the output, n×m, in a batch batch×n×m; row-major by default.
        batch: the number of matrices, for a batch.
        variant: `naive` and `shared` access one element at a time, as in the paper's Figure 13,
            directly or through shared memory; `vector` accesses up to 16 bytes of tiles, `runs`
            tiles of whole runs of memory, `words` such tiles by words wherever runs begin,
            `squares` such tiles, of whose narrow elements threads transpose squares in registers,
            `gathers` such tiles, whose rows are copied into shared memory as they are, and of whose
            narrow elements threads gather words (permutations that have no squares or gathers are
            by words). By default the best of the last five if both layouts are strided, else
            `shared`.
        tile: side of the square tile of a CTA in `naive` and `shared`; a power of two.
        rows: rows of the tile that the threads of a CTA transpose at a time; a divisor of `tile`.
        alignment: bytes that both arrays' addresses are a multiple of; `vector` relies on it.
        tune: whether the GPU in this machine times about ten configs, unless it did before; see
            `kernels.tuning`. By default if `LEGO_MLIR_TUNE` is 1. Nothing is timed for a variant,
            or for sizes that only a launch knows.

    Raises:
        LegoError: a size or a layout is wrong, the layouts have no such variant, or there is no GPU
            to tune on.
    """

    def made(m: Int, n: Int, a: Layout | None, b: Layout | None) -> Kernel:
        return _transpose(m, n, dtype, a, b, batch, variant, tile, rows, alignment, tune)

    by_vectors = variant in (*STRIDED, None)
    return _of_open_sizes({"M": m, "N": n}, (a, b), made, by_vectors=by_vectors)


def _transpose(
    m: Int,
    n: Int,
    dtype: str,
    a: Layout | None,
    b: Layout | None,
    batch: int | None,
    variant: str | None,
    tile: int,
    rows: int,
    alignment: int,
    tune: bool | None,
) -> Kernel:
    """Return the kernel of `transpose`, for sizes that may be symbols."""
    lead: tuple[Int, ...] = () if batch is None else (batch,)
    axes = (*range(len(lead)), len(lead) + 1, len(lead))
    source = _tensor("transpose", "a", (*lead, m, n), dtype, a, alignment)
    target = _tensor("transpose", "b", (*lead, n, m), dtype, b, alignment)
    if variant not in (*VARIANTS, None):
        raise LegoError(
            f"transpose: there is no variant {variant!r}",
            hint=with_guess(variant, VARIANTS, f"known: {', '.join(VARIANTS)}"),
        )
    reference = "transpose" if batch is None else _reference(axes)
    if variant in (*STRIDED, None):
        problem = find_problem((*lead, m, n), axes, source.layout, target.layout)
        if problem is not None:
            return _vectorized("transpose", problem, source, target, reference, variant, tune)
        if variant is not None:
            raise LegoError(
                f"transpose: the layouts '{source.layout}' and '{target.layout}' are not both "
                f"strided, as the variant '{variant}' needs",
                hint="leave out the variant, or choose variant='shared'",
            )
    if not _is_power(tile) or rows < 1 or tile % rows or tile * rows > MAX_CTA_THREADS:
        raise LegoError(
            f"transpose: a tile of side {tile} cannot be transposed {rows} rows at a time",
            hint="tile is a power of two, rows divides it, and tile * rows is at most "
            f"{MAX_CTA_THREADS}, the threads of a CTA",
        )
    return elementwise_transpose(
        (*lead, m, n),
        TensorType(dtype, source.layout),
        TensorType(dtype, target.layout),
        tile,
        rows,
        through_shared=variant != "naive",
        reference=reference,
    )


@public
def permute(
    shape: Sequence[int | None],
    axes: Sequence[int],
    dtype: str = "f32",
    *,
    a: Layout | None = None,
    b: Layout | None = None,
    variant: str | None = None,
    alignment: int = 16,
    tune: bool | None = None,
) -> Kernel | KernelChoice:
    """Return a kernel that permutes the dimensions of a tensor, like NumPy's transpose.

    Args:
        shape: sizes of the input; `None` where only a launch knows one. Layouts then call the size
            of dimension k Dk.
        axes: dimension k of the output is dimension axes[k] of the input.
        dtype: element type.
        a: layout of the input, strided; row-major by default.
        b: layout of the output, strided; row-major by default.
        variant: `vector`, `runs`, `words`, `squares` or `gathers`, as of `transpose`; by default
            the best one.
        alignment: bytes that both arrays' addresses are a multiple of.
        tune: whether the GPU in this machine times configs, as `transpose` does.

    Raises:
        LegoError: the axes are not a permutation, a layout is not strided, or there is no GPU to
            tune on.
    """
    axes = tuple(axes)
    if variant not in (*STRIDED, None):
        raise LegoError(
            f"permute: there is no variant {variant!r}",
            hint=with_guess(variant, STRIDED, f"known: {', '.join(STRIDED)}"),
        )
    if sorted(axes) != list(range(len(shape))) or not shape:
        raise LegoError(
            f"permute: the axes {list(axes)} are not a permutation of the {len(shape)} dimensions "
            f"{list(shape)}",
            hint="each dimension once, counted from 0",
        )

    def made(*sizes_and_layouts: Any) -> Kernel:
        *sizes, a, b = sizes_and_layouts
        source = _tensor("permute", "a", tuple(sizes), dtype, a, alignment)
        target = _tensor("permute", "b", tuple(sizes[k] for k in axes), dtype, b, alignment)
        problem = find_problem(sizes, axes, source.layout, target.layout)
        if problem is None:
            raise LegoError(
                f"permute: the layouts '{source.layout}' and '{target.layout}' are not both strided"
            )
        return _vectorized("permute", problem, source, target, _reference(axes), variant, tune)

    sizes = {f"D{k}": n for k, n in enumerate(shape)}
    return _of_open_sizes(sizes, (a, b), made, by_vectors=True)


def _of_open_sizes(
    sizes: Mapping[str, int | None],
    layouts: tuple[Layout | None, Layout | None],
    made: Callable[..., Kernel],
    *,
    by_vectors: bool,
) -> Kernel | KernelChoice:
    """Return the kernel for some sizes; where only a launch knows one, the choice of two kernels.

    One is for sizes that are multiples, whose rows are accessed by vectors, the other for any.

    Args:
        sizes: by name; `None` for those that only a launch knows.
        layouts: of input and output, as the caller gives them.
        made: returns the kernel of sizes, numbers or symbols, and of layouts.
        by_vectors: whether the kernel accesses rows by vectors where it can.
    """
    names = [name for name, n in sizes.items() if n is None]
    if not names:
        return made(*sizes.values(), *layouts)

    def of_class(multiple_of: Sequence[int]) -> Kernel:
        known = {name: size_symbol(name, multiple_of) for name in names}
        changed = [
            None if x is None else x.substitute({s: known.get(s.name, s) for s in x.symbols})
            for x in layouts
        ]
        return made(*(known.get(name, n) for name, n in sizes.items()), *changed)

    general = of_class(())
    if not by_vectors:
        return general
    return KernelChoice(
        general.name,
        general.parameters(),
        names,
        lambda *values: int(any(n % _MULTIPLE for n in values)),
        [lambda: of_class((_MULTIPLE,)), lambda: general],
        general.reference,
        lambda: f"multiples of {_MULTIPLE}, or any sizes",
    )


def _vectorized(
    name: str,
    problem: PermuteProblem,
    a: TensorType,
    b: TensorType,
    reference: str,
    variant: str | None,
    tune: bool | None,
) -> Kernel:
    """Return the kernel of a permutation of strided layouts, of the variant that is asked for."""
    if problem.is_open and variant in ("runs", "words", "squares", "gathers"):
        raise LegoError(
            f"{name}: the variant '{variant}' is for sizes that are known before the launch",
            hint="variant='vector', or none",
        )
    element_bytes = bytes_of(a.dtype)
    max_width = max(1, min(MAX_ACCESS_BYTES, a.alignment, b.alignment) // element_bytes)

    def with_config(config: Config) -> Kernel:
        return _with_config(name, problem, config, element_bytes, a, b, reference)

    config: Config
    if variant is None:
        tuned = None
        if not problem.is_open and is_wanted(tune):
            moved = Moved(problem, element_bytes, max_width)
            tuned = tuner.tuned(name, moved, lambda config: with_config(config).compile(), tune)
        config = tuned or choose_config(problem, element_bytes, max_width)
    elif variant == "words":
        config, _ = by_words(problem, element_bytes, max_width)
    elif variant == "squares":
        squares = by_squares(problem, element_bytes, max_width)
        config, _ = squares or by_words(problem, element_bytes, max_width)
    elif variant == "gathers":
        gathers = by_gathers(problem, element_bytes, max_width)
        config, _ = gathers or by_words(problem, element_bytes, max_width)
    else:
        config = candidates(problem, element_bytes, max_width)[variant]
    return with_config(config)


def _with_config(
    name: str,
    problem: PermuteProblem,
    config: Config,
    element_bytes: int,
    a: TensorType,
    b: TensorType,
    reference: str,
) -> Kernel:
    """Return the kernel of a permutation with a config."""
    match config:
        case CopyConfig():
            return copy_permutation(name, problem, config, a, b, reference)
        case TileConfig():
            return tiled_permutation(name, problem, config, element_bytes, a, b, reference)
        case WordConfig():
            units = problem.in_units(config.unit)
            return word_permutation(name, units, config, a, b, reference)
        case SquareConfig():
            units = problem.in_units(config.unit)
            return square_permutation(name, units, config, a, b, reference)
        case GatherConfig():
            units = problem.in_units(config.unit)
            return gather_permutation(name, units, config, a, b, reference)
        case RunConfig():
            units = problem.in_units(config.unit)
            unit_bytes = config.unit * element_bytes
            return run_permutation(name, units, config, unit_bytes, a, b, reference)


def _tensor(
    name: str, what: str, shape: tuple[Int, ...], dtype: str, layout: Layout | None, alignment: int
) -> TensorType:
    """Return the type of a tensor parameter, whose layout has this shape."""
    check_dtype(dtype)
    if any(isinstance(n, int) and n < 1 for n in shape):
        raise LegoError(f"{name}: {list(shape)} is not a shape", hint="sizes are positive")
    known = prod(n for n in shape if isinstance(n, int)) * bytes_of(dtype)
    if known > _MOST_BYTES:
        raise LegoError(f"{name}: a tensor {list(shape)} of {dtype} has {known} bytes, too many")
    chosen = OrderBy(Row(*shape)) if layout is None else layout
    if chosen.size != prod(shape):
        raise LegoError(
            f"{name}: the layout {what} = '{chosen}' has {chosen.size} elements, "
            f"the tensor {list(shape)} has {prod(shape)}"
        )
    if tuple(chosen.dims) != shape:
        chosen = chosen.TileBy(list(shape))
    return TensorType(dtype, chosen, alignment)


def _reference(axes: Sequence[int]) -> str:
    return f"permute({', '.join(map(str, axes))})"


def _is_power(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0
