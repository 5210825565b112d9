"""The tuner of permutations: it times what ranks first on this GPU, and remembers the fastest.

`kernels.tuning` says when. The user's table, `tuned/permute-DEVICE.json`, has an entry for each
permutation:

    {"modes": [[64, 1, 4096], [4096, 64, 1]], "element_bytes": 2, "max_width": 8, "kind": "words",
     "tile": [64, 128], "threads": 256, ...}

A mode is its size, and its strides in input and output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from lego_mlir import runtime
from lego_mlir.artifact import Artifact
from lego_mlir.diagnostics import LegoError
from lego_mlir.kernels import tuning
from lego_mlir.kernels.permute.by_gathers.config import GatherConfig
from lego_mlir.kernels.permute.by_squares.config import SquareConfig
from lego_mlir.kernels.permute.by_words.config import WordConfig
from lego_mlir.kernels.permute.config import CopyConfig, TileConfig
from lego_mlir.kernels.permute.heuristic import Config, ranked
from lego_mlir.kernels.permute.problem import Mode, PermuteProblem
from lego_mlir.kernels.permute.runs import RunConfig

_KINDS: Mapping[str, type[Config]] = {
    "copy": CopyConfig,
    "tiles": TileConfig,
    "runs": RunConfig,
    "words": WordConfig,
    "squares": SquareConfig,
    "gathers": GatherConfig,
}


@dataclass(frozen=True, slots=True)
class Moved:
    """What a config moves.

    Attributes:
        problem: the permutation, of known sizes.
        element_bytes: bytes of an element.
        max_width: elements that one access may take, by the alignment of both arrays.
    """

    problem: PermuteProblem
    element_bytes: int
    max_width: int


def tuned(
    name: str, moved: Moved, build: Callable[[Config], Artifact], tune: bool | None
) -> Config | None:
    """Return the fastest config; `None` if only the environment asks for it, and there is no GPU.

    Args:
        name: of the function that the caller has called, for errors.
        moved: what is moved.
        build: compiles the permutation with a config, for the GPU in this machine.
        tune: what the caller says.

    Raises:
        LegoError: the caller wants to tune and there is no GPU, the GPU has not enough memory, or
            the user's table cannot be read.
    """
    device = runtime.select().model
    if device is not None:
        return tuned_config(device, moved, build, partial(tuning.time_on_gpu, name, is_cold=True))
    if tune:
        raise LegoError(
            f"{name}: tune=True, and this machine has no GPU",
            hint="tune=False: the config is chosen by the cost model",
        )
    return None


def tuned_config(
    device: str, moved: Moved, build: Callable[[Config], Artifact], timer: tuning.Timer
) -> Config:
    """Return the fastest config of a permutation on the GPU in this machine.

    A table that cannot be written is no error: the permutation is timed again next time.

    Args:
        device: the name that the GPU's driver reports.
        moved: what is moved.
        build: compiles the permutation with a config.
        timer: times artifacts.

    Raises:
        LegoError: no config compiles, or the user's table cannot be read.
    """
    tables = tuning.folder()
    file = None if tables is None else tables / f"permute-{tuning.file_name(device)}"
    known = None if file is None else _entries(file).get(moved)
    if known is not None:
        return known
    configs = ranked(moved.problem, moved.element_bytes, moved.max_width)
    best = tuning.fastest(configs, build, timer)
    if file is not None:
        with suppress(LegoError, OSError):
            _write(file, {**_entries(file), moved: best})
    return best


def _write(file: Path, entries: Mapping[Moved, Config]) -> None:
    tuning.write_table(file, [_fields(moved, config) for moved, config in entries.items()])
    _entries.cache_clear()


def _fields(moved: Moved, config: Config) -> dict[str, Any]:
    kind = next(name for name, each in _KINDS.items() if isinstance(config, each))
    return {
        "modes": [[m.size, m.source, m.target] for m in moved.problem.modes],
        "element_bytes": moved.element_bytes,
        "max_width": moved.max_width,
        "kind": kind,
        **asdict(config),
    }


@functools.cache
def _entries(file: Path) -> dict[Moved, Config]:
    """Return the entries of a file; none if there is no file."""
    return tuning.read_table(file, _entry)


def _entry(entry: dict[str, Any]) -> tuple[Moved, Config]:
    modes = tuple(Mode(*map(_number, mode)) for mode in entry.pop("modes"))
    element_bytes, max_width = (_number(entry.pop(n)) for n in ("element_bytes", "max_width"))
    kind = _KINDS[entry.pop("kind")]
    values = {n: _numbers(x) if isinstance(x, list) else _number(x) for n, x in entry.items()}
    config: Config = cast(Any, kind)(**values)
    return Moved(PermuteProblem(modes), element_bytes, max_width), config


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(map(_number, values))


def _number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{value!r} is no number")
    return value
