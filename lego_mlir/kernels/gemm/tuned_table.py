"""Divisions of products that were the fastest of those measured: `tuned/DEVICE.json`.

What was measured of one order of A and B is also taken for the others where these were seen to take
as long. What was measured of f16 holds for bf16, too: as many bytes, and instructions as fast; a
512×512×512 took 2.66 µs of bf16 and 2.68 of f16 on an H200, divided alike.

A file holds one entry a product, as `record` writes it:

    {"m": 4096, "n": 4096, "k": 4096, "dtype": "f16", "out": "f16", "a": "row", "b": "row",
     "c": "row", "batch": 1, "tile": [128, 256, 64], "warps": [2, 4], "stages": 4, "group": 8}

Where C is column-major, it is the product of the transposes that is divided, and recorded. A
product may have one entry for each kind of division; one with `consumers` is a `WgmmaConfig`.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.files import write_whole
from lego_mlir.kernels.gemm.problem import MmaConfig, Problem
from lego_mlir.kernels.gemm.wgmma_config import WgmmaConfig

Division: TypeAlias = MmaConfig | WgmmaConfig
_Kind = TypeVar("_Kind", bound=MmaConfig | WgmmaConfig)

FOLDER = Path(__file__).parent / "tuned"
"""Of the tables that come with the package."""


def lookup(device: str, problem: Problem, kind: type[_Kind], folder: Path = FOLDER) -> _Kind | None:
    """The fastest division that was measured on a device; `None` if none was.

    Args:
        device: its name, as its driver gives it.
        problem: the product.
        kind: of the division.
        folder: of the tables.

    Raises:
        LegoError: the device's table cannot be read.
    """
    if problem.c == "col":
        problem = problem.transpose
    entries = _entries(file_of(device, folder))
    for same in (problem, _of_halves(problem)):
        found = entries.get((same, kind.schedule))
        if isinstance(found, kind):
            return found
    return None


def _of_halves(problem: Problem) -> Problem:
    """A product of bf16 as one of f16; any other as it is."""
    dtype, out = ("f16" if kind == "bf16" else kind for kind in (problem.dtype, problem.out))
    return replace(problem, dtype=dtype, out=out)


def record(device: str, problem: Problem, config: Division, folder: Path = FOLDER) -> Path:
    """Keep a division as the fastest for a product on a device; the file.

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
    lines = [json.dumps({**asdict(p), **asdict(c)}) for (p, _), c in ordered]
    folder.mkdir(exist_ok=True)
    write_whole(file, ("[\n" + ",\n".join(f"  {line}" for line in lines) + "\n]\n").encode())
    _entries.cache_clear()
    return file


def file_of(device: str, folder: Path = FOLDER) -> Path:
    """The file of a device: `tuned/nvidia-h200.json`."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".json")


def division(entry: dict[str, Any]) -> Division:
    """A division from its fields, as `dataclasses.asdict` and JSON give them.

    Raises:
        TypeError: fields are missing, or there are others.
    """
    values: dict[str, Any] = {n: tuple(x) if isinstance(x, list) else x for n, x in entry.items()}
    return WgmmaConfig(**values) if "consumers" in values else MmaConfig(**values)


@functools.cache
def _entries(file: Path) -> dict[tuple[Problem, str], Division]:
    """The entries of a file; none if there is no file."""
    try:
        found: list[dict[str, Any]] = json.loads(file.read_text())
        return dict(_entry(x) for x in found)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise LegoError(
            f"the table of tuned divisions cannot be read: {e!r}",
            location=Location(str(file)),
            hint="restore it, or remove it: the cost model then chooses",
        ) from None


def _entry(entry: dict[str, Any]) -> tuple[tuple[Problem, str], Division]:
    names = [f.name for f in fields(Problem)]
    problem = Problem(**{name: entry.pop(name) for name in names})
    config = division(entry)
    return (problem, config.schedule), config
