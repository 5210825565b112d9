"""Keys: what an entry depends on, and the name that follows from it.

A key is a frozen dataclass of plain values; its digest covers the values of all fields, with their
names. What an entry comes to depend on becomes a field. There are two roads to the same artifact:
`ModuleKey` is exact and needs the module, `KernelKey` is known before anything is traced.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from lego_mlir.limits import Limits

FORMAT = 1
"""Of keys and of payloads: it changes if the same fields come to mean something else."""

Plain: TypeAlias = Any
"""Numbers, strings, bytes, booleans, `None`, and tuples of these: equal values print alike, other
values differently, in every process."""

Entries: TypeAlias = tuple[tuple[str, Plain], ...]
"""A mapping as plain value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What every entry depends on.

    Attributes:
        builds: the builds of lego-mlir and of what it compiles with (`builds.builds`).
        limits: they decide how far a derivation goes.
        target: the GPU architecture.
        check: whether the code checks indices and sizes.
        strict: whether code that spills registers, or is slowed down, is refused.
    """

    builds: Plain
    limits: Limits
    target: str
    check: bool
    strict: bool

    @property
    def digest(self) -> str:
        """The name of the entry: 64 hexadecimal digits."""
        return sha256(repr((FORMAT, plain(self))).encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleKey(Key):
    """What the code of a module depends on.

    Attributes:
        product: the stage that the entry has: `ptx`, `cubin`, or `bundle`.
        is_assembled: whether the artifact has machine code.
        file: the name that debug information has for the text.
        text: the module, with all layouts and functions that it names.
        sources: further texts that its locations point into.
        sizes: values that replace those of the module.
        schedule: the name of the module's schedule, and the text of its script.
        parameters: values of the schedule's parameters.
        pipelines: by stage, the texts of pass pipelines.
        exact_math: whether quotients and functions are computed exactly.
    """

    product: str
    is_assembled: bool
    file: str
    text: str
    sources: Entries
    sizes: Entries
    schedule: tuple[str, str] | None
    parameters: Entries
    pipelines: Entries
    exact_math: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelKey(Key):
    """What the module of a Python kernel depends on.

    Attributes:
        is_assembled: whether the artifact has machine code.
        kernel: its fingerprint (`frontend/host/fingerprint.py`).
        python: the version, on which the fingerprint of a function depends.
    """

    is_assembled: bool
    kernel: Plain
    python: str


def plain(value: Any) -> Plain:
    """Return a value with every dataclass in it as the names and values of its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        content = tuple((f.name, plain(getattr(value, f.name))) for f in fields(value))
        return type(value).__qualname__, content
    if type(value) is tuple:
        return tuple(map(plain, value))
    assert value is None or type(value) in (bool, int, float, str, bytes), value
    return value
