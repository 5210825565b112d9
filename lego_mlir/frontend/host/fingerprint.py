"""Fingerprints of kernels: what tracing a Python function depends on, as plain values.

A function is its bytecode with the lines, its defaults, what its closure holds, and the globals
that it reads: numbers, strings, layouts, containers of these, types and dataclasses of lego-mlir,
and other functions, followed in the same way. Functions and classes of lego-mlir itself are names,
since a key has the build. What could give something else in another process is refused: objects of
other classes, modules that are not known to compute only, `open`, `print`, `id`, `eval` and their
like. A kernel that has no fingerprint is traced anew; its module then is in the cache.

Two kernels with equal fingerprints have the same module, operation for operation and line for line.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from lego_mlir.cache.keys import Plain
from lego_mlir.frontend.trace import relative_name

_PACKAGE = "lego_mlir"

_PURE_MODULES = frozenset(
    ("collections", "dataclasses", "functools", "itertools", "math", "operator", "typing")
)
"""Modules whose functions compute from their arguments only."""

_PURE_BUILTINS = frozenset(
    """abs all any bin bool bytes callable chr complex dict divmod enumerate filter float format
    frozenset hasattr hex int isinstance issubclass iter len list map max min next object oct ord
    pow range repr reversed round set slice sorted str sum super tuple type zip
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError NotImplementedError
    RuntimeError StopIteration TypeError ValueError ZeroDivisionError
    Ellipsis NotImplemented __debug__""".split()  # noqa: SIM905
)
"""Built-in names that neither do anything nor depend on more than their arguments."""

_REFUSED = frozenset(
    ("IMPORT_NAME", "IMPORT_STAR", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_BUILD_CLASS")
)
"""Instructions whose effect, or whose result, is not a matter of the values that are known."""

_GLOBAL = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS"))
_ATTRIBUTE = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_SKIPPED = frozenset(("CACHE", "EXTENDED_ARG", "NOP"))


class NoFingerprint(Exception):
    """What a value depends on is not known."""


def fingerprint(value: object) -> Plain:
    """Return plain values that determine what tracing makes of a value.

    Raises:
        NoFingerprint: it depends on more than can be known.
    """
    return _Fingerprint().of(value)


class _Fingerprint:
    """The fingerprint of one value; functions that occur again are named by their number."""

    def __init__(self) -> None:
        self._functions: dict[int, int] = {}

    def of(self, value: Any) -> Plain:
        kind = type(value)
        if value is None or kind in (bool, int, float, str, bytes, complex):
            return repr(value) if kind is complex else value
        if value is Ellipsis or value is NotImplemented:
            return kind.__name__
        if kind in (tuple, list):
            return kind.__name__, tuple(map(self.of, value))
        if kind in (set, frozenset):
            return kind.__name__, tuple(sorted(map(self.of, value), key=repr))
        if isinstance(value, Mapping) and kind.__module__ in ("builtins", "types"):
            return "mapping", tuple((self.of(k), self.of(v)) for k, v in value.items())
        if kind in (range, slice):
            return kind.__name__, self.of((value.start, value.stop, value.step))
        if isinstance(value, np.generic):
            return "numpy", value.dtype.name, value.tobytes()
        if kind is functools.partial:
            return "partial", self.of(value.func), self.of(value.args), self.of(value.keywords)
        if kind is FunctionType:
            return self._function(value)
        if kind is BuiltinFunctionType or isinstance(value, type):
            return self._named(value)
        return self._object(value)

    def _named(self, value: Any) -> Plain:
        """Return the name of a class or a built-in function that is found by it."""
        module, name = value.__module__, value.__qualname__
        if module == "builtins" and name not in _PURE_BUILTINS:
            raise NoFingerprint(name)
        is_number = isinstance(value, type) and issubclass(value, np.generic)
        is_known = module == "builtins" or module in _PURE_MODULES or _is_ours(module) or is_number
        if not is_known or _found(module, name) is not value:
            raise NoFingerprint(f"{module}.{name}")
        return "named", module, name

    def _object(self, value: Any) -> Plain:
        """Return the fingerprint of an object that one of lego-mlir's own classes has made."""
        kind = type(value)
        if not _is_ours(kind.__module__):
            raise NoFingerprint(repr(kind))
        name = self._named(kind)
        if is_dataclass(value):
            # What equality leaves out of a field follows from the others, such as the functions of
            # a named permutation from its text.
            content = [self.of(getattr(value, f.name)) for f in fields(value) if f.compare]
            return name, tuple(content)
        if "__reduce__" in {n for base in kind.__mro__[:-1] for n in vars(base)}:
            constructor, arguments = value.__reduce__()
            return name, self._named(constructor), self.of(arguments)
        raise NoFingerprint(repr(kind))

    def _function(self, function: FunctionType) -> Plain:
        if id(function) in self._functions:
            return "function", self._functions[id(function)]
        self._functions[id(function)] = len(self._functions)
        module, name = function.__module__, function.__qualname__
        is_ours = _is_ours(module) and function.__globals__ is getattr(
            sys.modules.get(module), "__dict__", None
        )
        if is_ours and _found(module, name) is function:
            return "named", module, name
        return (
            "function",
            (module, name, function.__code__.co_firstlineno)
            if is_ours  # the build says the rest
            else self._code(function.__code__, function),
            function.__name__,
            self.of(function.__defaults__),
            self.of(function.__kwdefaults__),
            tuple(map(self._cell, function.__closure__ or ())),
            None if is_ours else self.of(vars(function)),
        )

    def _cell(self, cell: CellType) -> Plain:
        try:
            return "cell", self.of(cell.cell_contents)
        except ValueError:  # it is assigned later
            return "empty cell"

    def _code(self, code: CodeType, function: FunctionType) -> Plain:
        """Return what code does and where it stands, with the globals of the function it reads."""
        constants = tuple(
            self._code(c, function) if isinstance(c, CodeType) else self.of(c)
            for c in code.co_consts
        )
        return (
            relative_name(code.co_filename),
            code.co_firstlineno,
            code.co_name,
            code.co_code,
            code.co_linetable,
            code.co_exceptiontable,
            (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags),
            (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars),
            constants,
            tuple(self._globals(code, function)),
        )

    def _globals(self, code: CodeType, function: FunctionType) -> Iterator[Plain]:
        """Return the globals that code reads: `math.pi` as `pi` of the module `math`."""
        instructions = [i for i in dis.get_instructions(code) if i.opname not in _SKIPPED]
        for k, instruction in enumerate(instructions):
            if instruction.opname in _REFUSED:
                raise NoFingerprint(instruction.opname)
            if instruction.opname not in _GLOBAL:
                continue
            path = [str(instruction.argval)]
            value = _global(function, path[0])
            for follower in instructions[k + 1 :]:
                if not isinstance(value, ModuleType):
                    break
                if follower.opname not in _ATTRIBUTE:
                    raise NoFingerprint(f"the module {value.__name__} as a value")
                module, name = value, str(follower.argval)
                path.append(name)
                if not hasattr(module, name):
                    raise NoFingerprint(".".join(path))
                value = getattr(module, name)
                if module.__name__ in _PURE_MODULES and not isinstance(value, ModuleType):
                    value = None  # its name says what it is
            yield ".".join(path), self.of(value)


def _global(function: FunctionType, name: str) -> Any:
    """Return the value of a global or a built-in name.

    Raises:
        NoFingerprint: there is none, or the built-in function does more than compute.
    """
    if name in function.__globals__:
        return function.__globals__[name]
    if name not in _PURE_BUILTINS or not hasattr(builtins, name):
        raise NoFingerprint(name)
    return getattr(builtins, name)


def _found(module: str, name: str) -> Any:
    """Return what is found in a module by a qualified name; `None` if nothing is."""
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _is_ours(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] == _PACKAGE
