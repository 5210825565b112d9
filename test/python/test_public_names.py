"""The package's public names: what it offers at run time is what its stub tells type checkers."""

from __future__ import annotations

import ast
from pathlib import Path

import lego_mlir


def test_stub_and_module_agree() -> None:
    stub = Path(lego_mlir.__file__).with_name("__init__.pyi")
    promised = {"__version__"}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            promised.update(alias.asname or alias.name for alias in node.names)
    assert promised == set(dir(lego_mlir))


def test_every_name_is_there() -> None:
    for name in dir(lego_mlir):
        assert getattr(lego_mlir, name) is not None


def test_all_of_them_are_imported_by_a_star() -> None:
    assert set(lego_mlir.__all__) == set(dir(lego_mlir)) - {"__version__"}
