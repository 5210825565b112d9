"""Programs whose tensors have sizes that only the launch knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np

from lego_mlir.runtime import dtypes

_SHAPE = re.compile(r"^// (\w+): (\w+) ([\dx]+)$", re.M)
_MULTIPLE = 16


def with_open_sizes(
    random: Random, text: str, tensors: Mapping[str, tuple[str, tuple[int, ...]]]
) -> str:
    """Return a module some of whose row-major tensors have names for sizes.

    Comments before it say the shapes of all tensors, which a run needs.

    Args:
        random: decides which.
        text: of the module.
        tensors: element type and shape of each argument by name.
    """
    for name, (element, shape) in tensors.items():
        if _is_plain(text, name, shape) and random.random() < 0.6:
            text = _opened(random, text, name, element, shape)
    shown = [f"// {n}: {e} {'x'.join(map(str, s))}" for n, (e, s) in tensors.items()]
    return "\n".join([*shown, text])


def inputs_of(text: str) -> list[Any]:
    """Return random tensors of the shapes that comments of a module say."""
    found = []
    for position, (_, element, sizes) in enumerate(_SHAPE.findall(text)):
        rng = np.random.default_rng(position)
        found.append(dtypes.random(tuple(map(int, sizes.split("x"))), element, rng))
    return found


def _is_plain(text: str, name: str, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor is row-major, and only loaded and stored by whole tiles."""
    row = f'#{name} = #lego.layout<"OrderBy(Row({", ".join(map(str, shape))}))">'
    used = [line for line in text.split("\n") if re.search(rf"%{name}\b", line)]
    return row in text and all("lego.load" in x or "lego.store" in x for x in used[1:])


def _opened(random: Random, text: str, name: str, element: str, shape: tuple[int, ...]) -> str:
    sizes = [f"{name}d{k}" for k in range(len(shape))]
    named = ", ".join(
        f"{size}{{{_MULTIPLE}}}" if n % _MULTIPLE == 0 and random.random() < 0.7 else size
        for size, n in zip(sizes, shape, strict=True)
    )
    kind = f"memref<{'?x' * len(shape)}{element}>"
    values = "".join(f", %{size}" for size in sizes)
    lines = []
    for line in text.split("\n"):
        if line.startswith(f"#{name} = "):
            line = f'#{name} = #lego.layout<"OrderBy(Row({named}))">'
        elif "func.func" in line:
            line = re.sub(rf"%{name}: memref<\w+>", f"%{name}: {kind}", line)
        elif f"%{name}," in line:
            operands, rest = line.split(") {", 1)
            rest = re.sub(r"memref<\w+>", kind, rest, count=1)
            rest = rest.replace(") -> ", f"{', index' * len(sizes)}) -> ", 1)
            line = f"{operands}{values}) {{{rest}"
        lines.append(line)
        if "%threads = " in line:
            for k, size in enumerate(sizes):
                lines.append(f"    %{size}k = arith.constant {k} : index")
                lines.append(f"    %{size} = memref.dim %{name}, %{size}k : {kind}")
    return "\n".join(lines)
