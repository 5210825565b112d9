"""Users' own permutations, twice: as Python functions and as functions of an MLIR module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lego_mlir.index import where


def rotate(i: Any, j: Any) -> Any:
    """Of 8 columns: row i rotated by i elements."""
    return i * 8 + (i + j) % 8


def rotate_inv(flat: Any) -> Any:
    return flat // 8, (flat - flat // 8) % 8


def snake(i: Any, j: Any) -> Any:
    """Of 4 columns: every other row backwards."""
    return i * 4 + where(i % 2 < 1, j, 3 - j)


def snake_inv(flat: Any) -> Any:
    return flat // 4, where(flat // 4 % 2 < 1, flat % 4, 3 - flat % 4)


def stride(i: Any) -> Any:
    """Of 8 elements: every third."""
    return (3 * i + 1) % 8


def stride_inv(flat: Any) -> Any:
    return (3 * (flat - 1)) % 8


FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f for f in (rotate, rotate_inv, snake, snake_inv, stride, stride_inv)
}

FUNCTIONS_MLIR = """
func.func @rotate(%i: index, %j: index) -> index {
  %c8 = arith.constant 8 : index
  %turned = arith.addi %i, %j : index
  %column = arith.remui %turned, %c8 : index
  %row = arith.muli %i, %c8 : index
  %flat = arith.addi %row, %column : index
  return %flat : index
}
func.func @rotate_inv(%flat: index) -> (index, index) {
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %i = arith.divui %flat, %c8 : index
  %back = arith.subi %flat, %i : index
  %j = arith.andi %back, %c7 : index
  return %i, %j : index, index
}
func.func @snake(%i: index, %j: index) -> index {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %parity = arith.remui %i, %c2 : index
  %even = arith.cmpi slt, %parity, %c1 : index
  %back = arith.subi %c3, %j : index
  %column = arith.select %even, %j, %back : index
  %row = arith.muli %i, %c4 : index
  %flat = arith.addi %row, %column : index
  return %flat : index
}
func.func @snake_inv(%flat: index) -> (index, index) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %i = arith.divui %flat, %c4 : index
  %column = arith.remui %flat, %c4 : index
  %parity = arith.remui %i, %c2 : index
  %even = arith.cmpi slt, %parity, %c1 : index
  %back = arith.subi %c3, %column : index
  %j = arith.select %even, %column, %back : index
  return %i, %j : index, index
}
func.func @stride(%i: index) -> index {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %far = arith.muli %i, %c3 : index
  %next = arith.addi %far, %c1 : index
  %flat = arith.andi %next, %c7 : index
  return %flat : index
}
func.func @stride_inv(%flat: index) -> index {
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %back = arith.subi %flat, %c1 : index
  %far = arith.muli %back, %c3 : index
  %i = arith.andi %far, %c7 : index
  return %i : index
}
"""
