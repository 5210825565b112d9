"""Which builds of lego-mlir, the MLIR bindings and the assemblers compile here.

A version number does not tell an edited checkout, or an LLVM that somebody built, from another. So
a build is identified by the sizes and the modification times of its files, beside the number. None
of the packages is imported.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

from lego_mlir import __version__, data

_NOT_COMPILING = frozenset(
    ("__pycache__", "cache", "cli", "options", "pictures", "printers", "runtime", "share", "sim")
)
"""Folders of lego-mlir that have no part in what is compiled; `share` is found by `data`."""

_BINDINGS = (("numba_cuda_mlir", "_mlir/_mlir_libs"), ("mlir", "_mlir_libs"))
"""The packages of MLIR bindings, and the folder of each that has the libraries."""

_NVIDIA_LIBRARIES = ("cu13/bin/ptxas", "cu13/lib/libnvJitLink.so.13")
"""Below site-packages/nvidia, which the vendor's packages share."""


@cache
def builds() -> tuple[str, ...]:
    """Return what identifies the builds that compile here."""
    compiler = Path(__file__).resolve().parents[1]
    own = [compiler, data.dialects(), data.transforms(), data.pipelines()]
    return (
        __version__,
        _digest(file for folder in own for file in _files(str(folder))),
        os.environ.get("LEGO_MLIR_BINDINGS", ""),
        _digest(file for package, inside in _BINDINGS for file in _libraries(package, inside)),
        _digest(_assemblers()),
    )


def _digest(files: Iterator[tuple[str, os.stat_result]]) -> str:
    found = sorted((name, status.st_size, status.st_mtime_ns) for name, status in files)
    return sha256(repr(found).encode()).hexdigest()


def _files(folder: str, prefix: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """List the files below a folder: their names relative to it, and their status."""
    with os.scandir(folder) as inside:
        for entry in inside:
            if entry.name in _NOT_COMPILING:
                continue
            if entry.is_dir():
                yield from _files(entry.path, f"{prefix}{entry.name}/")
            else:
                yield f"{prefix}{entry.name}", entry.stat()


def _libraries(package: str, inside: str) -> Iterator[tuple[str, os.stat_result]]:
    """List the libraries of a package of bindings, if it is installed."""
    for folder in _folders(package):
        if (path := Path(folder, inside)).is_dir():
            yield from ((str(path / name), status) for name, status in _files(str(path)))


def _assemblers() -> Iterator[tuple[str, os.stat_result]]:
    """List the files of the assemblers that are installed."""
    inside = [str(Path(folder, f)) for folder in _folders("nvidia") for f in _NVIDIA_LIBRARIES]
    for file in (*inside, shutil.which("ptxas")):
        if file is not None and Path(file).is_file():
            yield file, Path(file).stat()


def _folders(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []
