"""Divisions of products that were measured to be the fastest: `tuned/DEVICE.json`.

A file holds one entry a product, as `record` writes it:

    {"m": 4096, "n": 4096, "k": 4096, "dtype": "f16", "out": "f16", "a": "row", "b": "row",
     "c": "row", "batch": 1, "tile": [128, 256, 64], "warps": [2, 4], "stages": 4, "group": 8}

Where C is column-major, it is the product of the transposes that is divided, and recorded.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lego_mlir.artifact import write_whole
from lego_mlir.diagnostics import LegoError, Place
from lego_mlir.kernels.configuration import Config, Problem

FOLDER = Path(__file__).parent / "tuned"
"""Of the tables that come with the package."""


def lookup(device: str, problem: Problem, folder: Path = FOLDER) -> Config | None:
    """The fastest division that was measured on a device; `None` if none was.

    Args:
        device: its name, as its driver gives it.
        problem: the product.
        folder: of the tables.

    Raises:
        LegoError: the device's table cannot be read.
    """
    if problem.c == "col":
        problem = problem.transpose
    return _entries(file_of(device, folder)).get(problem)


def record(device: str, problem: Problem, config: Config, folder: Path = FOLDER) -> Path:
    """Keep a division as the fastest for a product on a device; the file.

    Raises:
        LegoError: the file cannot be read or written.
    """
    if problem.c == "col":
        problem = problem.transpose
    file = file_of(device, folder)
    entries = {**_entries(file), problem: config}
    ordered = sorted(entries.items(), key=lambda entry: tuple(map(str, asdict(entry[0]).values())))
    lines = [json.dumps({**asdict(p), **asdict(c)}) for p, c in ordered]
    folder.mkdir(exist_ok=True)
    write_whole(file, ("[\n" + ",\n".join(f"  {line}" for line in lines) + "\n]\n").encode())
    _entries.cache_clear()
    return file


def file_of(device: str, folder: Path = FOLDER) -> Path:
    """The file of a device: `tuned/nvidia-h200.json`."""
    return folder / (re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-") + ".json")


@functools.cache
def _entries(file: Path) -> dict[Problem, Config]:
    """The entries of a file; none if there is no file."""
    try:
        found: list[dict[str, Any]] = json.loads(file.read_text())
        return dict(_entry(x) for x in found)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise LegoError(
            f"the table of tuned divisions cannot be read: {e!r}",
            place=Place(str(file)),
            hint="restore it, or remove it: the cost model then chooses",
        ) from None


def _entry(entry: dict[str, Any]) -> tuple[Problem, Config]:
    tile, warps = (tuple(entry.pop(name)) for name in ("tile", "warps"))
    config = Config(tile, warps, entry.pop("stages"), entry.pop("group"))
    return Problem(**entry), config
