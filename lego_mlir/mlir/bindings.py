"""The one door to MLIR's Python bindings; nothing else in the project names their package.

By default they come from `numba-cuda-mlir`, a wheel with complete upstream MLIR. Whoever builds
LLVM themselves sets `LEGO_MLIR_BINDINGS=mlir` and gets upstream's own package `mlir`.

    from lego_mlir.mlir.bindings import ir, passmanager, arith, gpu

Each of these modules is loaded when something of it is first used, and the package with the first:
a program whose kernels are all in the cache never opens the door.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
import sys
import threading
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
    takes 0.25 s: it loads a whole compiler for Python functions.
    """
    _put_off(package, spec)
    # What that body does for the bindings: another LLVM in the process (PyTorch's, Triton's)
    # must not get to answer for symbols of this one.
    libraries = Path(spec.origin).parent / "_mlir" / "_mlir_libs"
    for library in sorted(libraries.glob("libMLIRPython*.so")):
        # Of its thousands of functions a run calls a few: those are looked up when they are.
        ctypes.CDLL(str(library), os.RTLD_LAZY | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0))


def _put_off(name: str, spec: Any) -> ModuleType:
    """Return a module whose body runs only when its first attribute is read.

    It starts empty, with the right path, and its body runs in this very module object.
    `importlib.util.LazyLoader` would run it on the next import already.
    """
    module = importlib.util.module_from_spec(spec)
    lock = threading.RLock()
    running = False

    def run_body(attribute: str) -> Any:
        nonlocal running
        with lock:  # another thread may want something of it meanwhile
            if attribute == "__path__" or running:  # import machinery tests whether it is a package
                raise AttributeError(f"module '{name}' has no attribute '{attribute}'")
            if module.__dict__.get("__getattr__") is run_body:
                running = True
                try:
                    spec.loader.exec_module(module)
                finally:
                    running = False
                if module.__dict__.get("__getattr__") is run_body:
                    del module.__dict__["__getattr__"]
        return getattr(module, attribute)

    module.__dict__["__getattr__"] = run_body
    return sys.modules.setdefault(name, module)


_OWN_DIALECTS = ("lego", "transform_lego")
"""Dialects that are loaded from IRDL, and so have no module among the bindings."""

_DIALECTS = (
    "affine",
    "arith",
    "cf",
    "func",
    "gpu",
    "llvm",
    "math",
    "memref",
    "nvgpu",
    "nvvm",
    "scf",
    "transform",
    "ub",
    "vector",
)
"""Dialects that modules on their way to the machine have operations of."""


def _without_classes(root: str) -> None:
    """Let the bindings meet operations without loading the classes for them.

    They look for a module of classes when they first meet an operation of a dialect. Ours have
    none, and would be searched for on the whole path, anew each time. Those of others take long to
    load, nvvm and llvm longer than a kernel takes to compile, and most of them are never used: what
    a module of classes is for is making operations.
    """
    for dialect in _OWN_DIALECTS:
        name = f"{root}.dialects.{dialect}"
        sys.modules.setdefault(name, ModuleType(name))
    for dialect in _DIALECTS:
        _dialect(root, dialect)


def _dialect(root: str, dialect: str) -> ModuleType | None:
    """Return a dialect's module, which runs at its first use; `None` if there is no such module."""
    name = f"{root}.dialects.{dialect}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    return None if spec is None else _put_off(name, spec)


_opening = threading.RLock()


@functools.cache
def _open() -> str:
    """Load the package of the bindings, once, and return its name.

    Raises:
        LegoError: there is none.
    """
    with _opening:
        root = _root()
        importlib.import_module(f"{root}.ir")
        _without_classes(root)
        return root


class _Bindings:
    """A module of the bindings, which is loaded when its first attribute is read.

    Args:
        name: below the package.
    """

    def __init__(self, name: str) -> None:
        self.__name = name

    def __getattr__(self, attribute: str) -> Any:
        # The bindings' own names have no underscore before them; probes of strangers do, such as
        # those of torch.compile in all globals that it sees, and must not load or need a package.
        if attribute.startswith("_"):
            raise AttributeError(f"the MLIR bindings' {self.__name} has no public '{attribute}'")
        module = importlib.import_module(f"{_open()}.{self.__name}")
        value = getattr(module, attribute)
        vars(self).update(vars(module))  # from now on they are found here, without this function
        return value


ir: Any = _Bindings("ir")
passmanager: Any = _Bindings("passmanager")


def transform_interpreter() -> Any:
    """Return the module that runs transform-dialect scripts."""
    return importlib.import_module(f"{_open()}.dialects.transform.interpreter")


def native(dialect: str) -> Any:
    """Return the C++ part of a dialect's bindings: types, attributes and interfaces.

    Its module has them too, and the classes of all its operations, which take long to load.

    Args:
        dialect: as the bindings spell it: `GPU`, `LLVM`, `Transform`.
    """
    return importlib.import_module(f"{_open()}._mlir_libs._mlirDialects{dialect}")


def load_irdl(module: Any) -> None:
    """Make the dialects that a module in the irdl dialect defines known to its context."""
    native("IRDL").load_dialects(module)


def object_of(attribute: Any) -> bytes:
    """Return the code that a #gpu.object holds, as text or bytes."""
    # The gpu dialect's own Python module has classes for its operations too.
    classes = native("GPU")
    return bytes(classes.ObjectAttr(attribute).object)


def __getattr__(name: str) -> Any:
    """Return a dialect's module, such as `arith`, by its name."""
    if name not in _DIALECTS and (name.startswith("_") or _dialect(_open(), name) is None):
        raise AttributeError(f"the MLIR bindings have no dialect module '{name}'")
    return _Bindings(f"dialects.{name}")
