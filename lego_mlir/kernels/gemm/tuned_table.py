"""The tuned tables: by device, the configs that were the fastest of all measured ones.

A config that was measured for one order of A and B is also entered for the other orders, if these
were seen to take as long. A config for f16 holds for bf16 too, whose elements have as many bytes
and whose instructions are as fast: 512×512×512 took 2.66 µs in bf16 and 2.68 µs in f16 on an H200
with the same config.

A file, `tuned/DEVICE.json`, has one entry for each GEMM, as `record` writes it:

    {"m": 4096, "n": 4096, "k": 4096, "dtype": "f16", "out": "f16", "a": "row", "b": "row",
     "c": "row", "batch": 1, "tile": [128, 256, 64], "warps": [2, 4], "stages": 4,
     "raster_group": 8}

If C is column-major, the entry is that of the transposes. A GEMM may have one entry for each kind
of config; one with `consumers` is a `WgmmaConfig`, another one with `swap_ab` a `GemvConfig`.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from lego_mlir.kernels.gemm.config import GemmConfig
from lego_mlir.kernels.gemm.gemv.config import GemvConfig
from lego_mlir.kernels.gemm.mma.config import MmaConfig
from lego_mlir.kernels.gemm.problem import Problem
from lego_mlir.kernels.gemm.wgmma.config import WgmmaConfig
from lego_mlir.kernels.tuning import file_name, read_table, write_table

_Kind = TypeVar("_Kind", bound=GemmConfig)

FOLDER = Path(__file__).parent / "tuned"
"""The tables that come with the package."""


def lookup(device: str, problem: Problem, kind: type[_Kind], folder: Path = FOLDER) -> _Kind | None:
    """Return the config of a GEMM from a device's table; `None` if it has none.

    Args:
        device: the name that the device's driver reports.
        problem: the GEMM.
        kind: the kind of config.
        folder: the folder of the tables.

    Raises:
        LegoError: the device's table cannot be read.
    """
    if problem.c == "col":
        problem = problem.transpose
    entries = _entries(file_of(device, folder))
    for same in (problem, _as_f16(problem)):
        found = entries.get((same, kind.schedule))
        if isinstance(found, kind):
            return found
    return None


def lookup_any(device: str, problem: Problem, folder: Path) -> GemmConfig | None:
    """Return the config of a GEMM of any kind, as `lookup` does; of several, the first one."""
    if problem.c == "col":
        problem = problem.transpose
    entries = _entries(file_of(device, folder))
    return next((config for (found, _), config in entries.items() if found == problem), None)


def _as_f16(problem: Problem) -> Problem:
    """Return the problem with f16 instead of bf16."""
    dtype, out = ("f16" if kind == "bf16" else kind for kind in (problem.dtype, problem.out))
    return replace(problem, dtype=dtype, out=out)


def record(device: str, problem: Problem, config: GemmConfig, folder: Path = FOLDER) -> Path:
    """Enter a config into a device's table and return the table's file.

    Raises:
        LegoError: the file cannot be read or written.
    """
    if problem.c == "col":
        problem = problem.transpose
    file = file_of(device, folder)
    entries = {**_entries(file), (problem, config.schedule): config}
    ordered = sorted(
        entries.items(), key=lambda e: (tuple(map(str, asdict(e[0][0]).values())), e[0][1])
    )
    write_table(file, [{**_fields_of_problem(p), **asdict(cast(Any, c))} for (p, _), c in ordered])
    _entries.cache_clear()
    return file


def file_of(device: str, folder: Path = FOLDER) -> Path:
    """Return the file of a device's table, such as `tuned/nvidia-h200.json`."""
    return folder / file_name(device)


def config_from(entry: dict[str, Any]) -> GemmConfig:
    """Return the config whose fields `dataclasses.asdict` and JSON have given.

    Raises:
        TypeError: fields are missing or unknown.
    """
    values: dict[str, Any] = {n: tuple(x) if isinstance(x, list) else x for n, x in entry.items()}
    if "consumers" in values:
        return WgmmaConfig(**values)
    return GemvConfig(**values) if "swap_ab" in values else MmaConfig(**values)


def _fields_of_problem(problem: Problem) -> dict[str, Any]:
    """Return the fields of a problem, without `repitched` if no operand is."""
    return {name: value for name, value in asdict(problem).items() if value != ""}


@functools.cache
def _entries(file: Path) -> dict[tuple[Problem, str], GemmConfig]:
    """Return the entries of a file; none if there is no file."""
    return read_table(file, _entry)


def _entry(entry: dict[str, Any]) -> tuple[tuple[Problem, str], GemmConfig]:
    names = [f.name for f in fields(Problem)]
    problem = Problem(**{name: entry.pop(name) for name in names if name in entry})
    config = config_from(entry)
    return (problem, config.schedule), config
