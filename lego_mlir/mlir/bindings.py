"""The one door to MLIR's Python bindings; nothing else in the project names their package.

By default they come from `numba-cuda-mlir`, a wheel with complete upstream MLIR. Whoever builds
LLVM themselves sets `LEGO_MLIR_BINDINGS=mlir` and gets upstream's own package `mlir`.

    from lego_mlir.mlir.bindings import ir, passmanager, arith, gpu

Dialect modules are loaded when first asked for.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from lego_mlir.diagnostics import LegoError

_VARIABLE = "LEGO_MLIR_BINDINGS"
_PACKAGES = {"numba-cuda-mlir": "numba_cuda_mlir._mlir", "mlir": "mlir"}


def _root() -> str:
    choice = os.environ.get(_VARIABLE) or "numba-cuda-mlir"
    if choice not in _PACKAGES:
        raise LegoError(
            f"{_VARIABLE}={choice}: no such MLIR bindings",
            hint=f"set it to one of: {', '.join(_PACKAGES)}",
        )
    root = _PACKAGES[choice]
    package = root.partition(".")[0]
    if package not in sys.modules:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise LegoError(
                f"the MLIR bindings are missing: there is no package '{package}'",
                hint="pip install 'numba-cuda-mlir>=0.6,<0.7'"
                if package != "mlir"
                else f"build LLVM with MLIR_ENABLE_BINDINGS_PYTHON, or unset {_VARIABLE}",
            )
        if root != package:
            _open_without_running(package, spec)
    return root


def _open_without_running(package: str, spec: Any) -> None:
    """Make a package importable without running its `__init__`, until something asks for it.

    The bindings are a subpackage that needs nothing of its parent, and the parent's `__init__`
    takes 0.25 s: it loads a whole compiler for Python functions. So the parent starts as an empty
    module with the right path; the first attribute anyone wants from it runs the real body, in
    this very module object.
    """
    module = importlib.util.module_from_spec(spec)

    def run_body(name: str) -> Any:
        del module.__dict__["__getattr__"]
        spec.loader.exec_module(module)
        return getattr(module, name)

    module.__dict__["__getattr__"] = run_body
    sys.modules[package] = module
    # What that body does for the bindings: another LLVM in the process (PyTorch's, Triton's)
    # must not get to answer for symbols of this one.
    libraries = Path(spec.origin).parent / "_mlir" / "_mlir_libs"
    for library in sorted(libraries.glob("libMLIRPython*.so")):
        ctypes.CDLL(str(library), os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0))


_OWN_DIALECTS = ("lego", "transform_lego")
"""Dialects that are loaded from IRDL, and so have no module among the bindings."""


def _without_classes(root: str) -> None:
    """Tell the bindings that our own dialects have no classes for their operations.

    They look for a module of classes whenever they meet an operation, and would search the whole
    path for each one anew.
    """
    for dialect in _OWN_DIALECTS:
        name = f"{root}.dialects.{dialect}"
        sys.modules.setdefault(name, ModuleType(name))


_ROOT = _root()
_without_classes(_ROOT)
ir: Any = importlib.import_module(f"{_ROOT}.ir")
passmanager: Any = importlib.import_module(f"{_ROOT}.passmanager")


def transform_interpreter() -> Any:
    """The module that runs transform-dialect scripts."""
    return importlib.import_module(f"{_ROOT}.dialects.transform.interpreter")


def __getattr__(name: str) -> ModuleType:
    """A dialect's module, such as `arith`, by its name."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return importlib.import_module(f"{_ROOT}.dialects.{name}")
    except ModuleNotFoundError as e:
        raise AttributeError(f"the MLIR bindings have no dialect module '{name}'") from e
