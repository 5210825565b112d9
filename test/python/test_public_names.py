"""The package has the public names that its stub declares."""

from __future__ import annotations

import ast
from pathlib import Path

import lego_mlir


def test_the_stub_declares_the_names_of_the_module() -> None:
    stub = Path(lego_mlir.__file__).with_name("__init__.pyi")
    declared = {"__version__"}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            declared.update(alias.asname or alias.name for alias in node.names)
    assert declared == set(dir(lego_mlir))


def test_every_public_name_has_a_value() -> None:
    for name in dir(lego_mlir):
        assert getattr(lego_mlir, name) is not None


def test_a_star_import_gets_every_public_name() -> None:
    assert set(lego_mlir.__all__) == set(dir(lego_mlir)) - {"__version__"}
