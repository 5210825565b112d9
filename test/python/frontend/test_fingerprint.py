"""Fingerprints: equal for what traces alike, different or refused for everything else."""

from __future__ import annotations

import functools
import itertools
import math
import os
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lego_mlir as lg
from lego_mlir.algebra import Col, GenP, OrderBy, Row, parse_layout
from lego_mlir.frontend.host.fingerprint import NoFingerprint, fingerprint
from lego_mlir.index import Sym
from lego_mlir.kernels import (
    grouped_matmul,
    matmul,
    permute,
    ragged_matmul,
    transpose,
)

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(x: Any, y: Any) -> bool:
    """Whether values are equal and of equal types, all the way down; nan is itself."""
    if type(x) is not type(y):
        return False
    if isinstance(x, list | tuple):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, dict):
        return same(list(x.items()), list(y.items()))
    return repr(x) == repr(y) if isinstance(x, float) else x == y


@given(plain_values, plain_values)
def test_values_have_equal_fingerprints_if_they_are_the_same(x: Any, y: Any) -> None:
    assert (repr(fingerprint(x)) == repr(fingerprint(y))) == same(x, y)
    assert repr(fingerprint(x)) == repr(fingerprint(x))


def function_of(text: str, **names: Any) -> Any:
    """Return the function f of a text, with these globals."""
    names.setdefault("lg", lg)
    names.setdefault("math", math)
    names["__name__"] = "a_users_module"
    exec(compile(text, "/home/user/k.py", "exec"), names)  # noqa: S102
    return names["f"]


VARIANTS = {
    "a constant": ("def f(x): return x + 1", {}),
    "another constant": ("def f(x): return x + 2", {}),
    "a float": ("def f(x): return x + 1.0", {}),
    "another operator": ("def f(x): return x - 1", {}),
    "another line": ("\ndef f(x): return x + 1", {}),
    "another column": ("def f(x): return  x + 1", {}),
    "another parameter": ("def f(y): return y + 1", {}),
    "a default": ("def f(x, n=1): return x + n", {}),
    "another default": ("def f(x, n=2): return x + n", {}),
    "a keyword's default": ("def f(x, *, n=2): return x + n", {}),
    "a global": ("def f(x): return x + S", {"S": 1}),
    "another global": ("def f(x): return x + S", {"S": 2}),
    "a global of another type": ("def f(x): return x + S", {"S": True}),
    "a layout": ("def f(x): return A.apply(x)", {"A": OrderBy(Row(4, 8))}),
    "another layout": ("def f(x): return A.apply(x)", {"A": OrderBy(Col(4, 8))}),
    "a symbolic layout": ("def f(x): return A.apply(x)", {"A": parse_layout("OrderBy(Row(M))")}),
    "an expression": ("def f(x): return x + S", {"S": Sym("b", 0, 3) + 1}),
    "another range": ("def f(x): return x + S", {"S": Sym("b", 0, 4) + 1}),
    "a helper": ("def g(x): return x + 1\ndef f(x): return g(x)", {}),
    "another helper": ("def g(x): return x + 2\ndef f(x): return g(x)", {}),
    "a helper's global": ("def g(x): return x + S\ndef f(x): return g(x)", {"S": 1}),
    "another of a helper": ("def g(x): return x + S\ndef f(x): return g(x)", {"S": 2}),
    "a nested function": ("def f(x):\n  def g(y): return y + S\n  return g(x)", {"S": 1}),
    "its global": ("def f(x):\n  def g(y): return y + S\n  return g(x)", {"S": 2}),
    "a closure": ("def m(n):\n  def f(x): return x + n\n  return f\nf = m(1)", {}),
    "another closure": ("def m(n):\n  def f(x): return x + n\n  return f\nf = m(2)", {}),
    "recursion": ("def f(x): return f(x)", {}),
    "a module's value": ("def f(x): return x + math.pi", {}),
    "another of it": ("def f(x): return x + math.tau", {}),
    "a function of lego-mlir": ("def f(x): return lg.relu(x)", {}),
    "another of lego-mlir": ("def f(x): return lg.gelu(x)", {}),
    "a built-in": ("def f(x): return min(x, 1)", {}),
    "another built-in": ("def f(x): return max(x, 1)", {}),
    "a partial function": ("def f(x): return p(x)", {"p": functools.partial(pow, 2)}),
    "another partial function": ("def f(x): return p(x)", {"p": functools.partial(pow, 3)}),
    "an attribute": ("def g(): pass\ng.n = 1\ndef f(x): return x + g.n", {}),
    "another attribute": ("def g(): pass\ng.n = 2\ndef f(x): return x + g.n", {}),
    "a numpy number": ("def f(x): return x + S", {"S": np.int8(1)}),
    "another numpy number": ("def f(x): return x + S", {"S": np.int16(1)}),
    "a lambda": ("f = lambda x: x + 1", {}),
    "a comprehension": ("def f(x): return [x + S for _ in range(2)]", {"S": 1}),
    "its other global": ("def f(x): return [x + S for _ in range(2)]", {"S": 2}),
}


def test_every_variant_has_its_own_fingerprint() -> None:
    found: dict[str, str] = {}
    for name, (text, names) in VARIANTS.items():
        made = repr(fingerprint(function_of(text, **names)))
        assert made == repr(fingerprint(function_of(text, **names))), f"{name}: not reproducible"
        assert made not in found, f"{name} is as {found[made]}"
        assert " object at 0x" not in made
        found[made] = name


@dataclass(frozen=True)
class Users:
    """A class whose methods nobody knows."""

    n: int = 1


REFUSED = {
    "an array": ("def f(x): return x + S", {"S": np.zeros(())}),
    "an object": ("def f(x): return x + S", {"S": object()}),
    "a user's object": ("def f(x): return x + S.n", {"S": Users()}),
    "a user's class": ("def f(x): return S(1)", {"S": Users}),
    "a generator": ("def f(x): return x + next(S)", {"S": itertools.count()}),
    "a bound method": ("def f(x): return S(x)", {"S": Users().__repr__}),
    "a cached function": ("def f(x): return S(x)", {"S": functools.cache(abs)}),
    "a file": ("def f(x): return x + len(open('n').read())", {}),
    "an address": ("def f(x): return x + id(f)", {}),
    "printing": ("def f(x): print(x)", {}),
    "the environment": ("def f(x): return x + int(os.environ['N'])", {"os": os}),
    "a module as a value": ("def f(x): return getattr(math, 'pi')", {}),
    "random numbers": ("def f(x): return np.random.rand()", {"np": np}),
    "an import": ("def f(x):\n  import os\n  return os.getpid()", {}),
    "a counter": ("def f(x):\n  global S\n  S += 1\n  return x + S", {"S": 1}),
    "a class": ("def f(x):\n  class C: n = 1\n  return x + C.n", {}),
    "an unknown name": ("def f(x): return x + nothing", {}),
    "its module's attribute": ("def f(x): return x + m.n", {"m": types.ModuleType("m")}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_has_no_fingerprint(name: str) -> None:
    text, names = REFUSED[name]
    with pytest.raises(NoFingerprint):
        fingerprint(function_of(text, **names))


def test_a_users_module_is_followed() -> None:
    helpers = types.ModuleType("helpers")
    exec("S = 1\ndef g(x): return x + S", vars(helpers))  # noqa: S102
    text = "def f(x): return helpers.g(x)"
    before = fingerprint(function_of(text, helpers=helpers))
    vars(helpers)["S"] = 2
    assert fingerprint(function_of(text, helpers=helpers)) != before


def forward(i: Any, j: Any) -> Any:
    return 4 * i + j


def backward(x: Any) -> Any:
    return x // 4, x % 4


def other_forward(i: Any, j: Any) -> Any:
    return 4 * i + (3 - j)


def test_the_functions_of_a_permutation_count() -> None:
    one, other, same_as_one = (
        fingerprint(OrderBy(GenP((4, 4), function, backward)))
        for function in (forward, other_forward, forward)
    )
    assert one == same_as_one != other


KERNELS = {
    "gemm": lambda: matmul(512, 512, 512, target="sm_90a"),
    "gemm for sm_80": lambda: matmul(512, 512, 512, target="sm_80"),
    "another gemm": lambda: matmul(512, 512, 1024, target="sm_90a"),
    "bf16": lambda: matmul(512, 512, 512, "bf16", target="sm_90a"),
    "relu": lambda: matmul(512, 512, 512, epilogue=lambda x: lg.relu(x), target="sm_90a"),
    "gelu": lambda: matmul(512, 512, 512, epilogue=lg.gelu, target="sm_90a"),
    "repitched": lambda: matmul(515, 513, 511, target="sm_90a"),
    "gemv": lambda: matmul(1, 512, 512, target="sm_90a"),
    "empty": lambda: matmul(0, 512, 512, target="sm_90a"),
    "grouped": lambda: grouped_matmul([(128, 128, 128), (256, 128, 64)], target="sm_90a"),
    "ragged": lambda: ragged_matmul(512, 128, 128, 4, target="sm_90a"),
    "transpose": lambda: transpose(512, 512),
    "permute": lambda: permute((64, 32, 16), (2, 0, 1)),
}


def test_library_kernels_have_fingerprints() -> None:
    found = {name: repr(fingerprint(make()._traced())) for name, make in KERNELS.items()}
    assert found == {name: repr(fingerprint(make()._traced())) for name, make in KERNELS.items()}
    assert len(set(found.values())) == len(found)


def test_fingerprints_are_those_of_every_process() -> None:
    code = """
from frontend.test_fingerprint import *
values = [function_of(text, **names) for text, names in VARIANTS.values()]
values += [KERNELS["gemm"]()._traced(), {"b", "a", "d", "c"}]
print(list(map(fingerprint, values)))
"""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
