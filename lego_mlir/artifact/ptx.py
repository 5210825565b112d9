"""What a PTX text declares: its kernels, the sizes of their parameters, and their clusters.

The driver takes an array of pointers to parameters on trust: one too few, or one too short, and it
reads past its end. So they are checked against this before any launch, and what is not understood
in full is an error.
"""

from __future__ import annotations

import re
from functools import lru_cache

from lego_mlir.diagnostics import LegoError

_ASIDE = re.compile(r'"[^"\n]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
"""Comments and quoted texts, in which nothing is declared."""

_ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\(([^()]*)(\)?))?", re.ASCII)

_CLUSTER = re.compile(
    r"\.reqnctapercluster\s+(\d{1,4})\s*(?:,\s*(\d{1,4})\s*)?(?:,\s*(\d{1,4}))?", re.ASCII
)

_PARAMETER = re.compile(
    r"\s*\.param\s+(?:\.align\s+\d+\s+)?\.[bufs](?P<bits>8|16|32|64)"
    r"(?:\s+\.ptr(?:\s*\.(?:global|shared|const|local))?(?:\s*\.align\s+\d+)?)?"
    r"\s+[\w$%]+\s*(?:\[\s*(?P<count>\d{1,9})\s*\])?\s*",
    re.ASCII,
)


@lru_cache(maxsize=8)
def kernel_parameter_sizes(ptx: str) -> dict[str, tuple[int, ...]]:
    """Return the kernels of a PTX text in order, each with the bytes of its parameters.

    Raises:
        LegoError: a kernel is declared twice, or a parameter is not understood.
    """
    found: dict[str, tuple[int, ...]] = {}
    for entry in _ENTRY.finditer(_ASIDE.sub(" ", ptx)):
        kernel, listed = entry[1], entry[2] or ""
        if kernel in found:
            raise LegoError(f"the PTX has two kernels '{kernel}'")
        if entry[3] == "":
            raise LegoError(f"the parameters of kernel '{kernel}' have no end")
        parameters = listed.split(",") if listed.strip() else []
        found[kernel] = tuple(_size(text, kernel) for text in parameters)
    return found


@lru_cache(maxsize=8)
def cluster_sizes(ptx: str) -> dict[str, tuple[int, int, int]]:
    """Return the CTAs of a cluster along x, y and z, of the kernels that require clusters.

    Source: PTX ISA, ".reqnctapercluster"; it stands between the parameters and the body.
    """
    text = _ASIDE.sub(" ", ptx)
    found = {}
    for entry in _ENTRY.finditer(text):
        directives = text[entry.end() : text.find("{", entry.end())]
        cluster = _CLUSTER.search(directives)
        if cluster is not None:
            x, y, z = (int(n or 1) for n in cluster.groups())
            found[entry[1]] = (x, y, z)
    return found


def parameter_sizes(ptx: str, kernel: str) -> tuple[int, ...]:
    """Return the size of each parameter of a kernel, in bytes.

    Raises:
        LegoError: the PTX has no such kernel, or is not understood.
    """
    kernels = kernel_parameter_sizes(ptx)
    if kernel not in kernels:
        raise LegoError(
            f"the PTX has no kernel '{kernel}'", hint=f"it has {', '.join(kernels) or 'none'}"
        )
    return kernels[kernel]


def _size(parameter: str, kernel: str) -> int:
    found = _PARAMETER.fullmatch(parameter)
    if found is None:
        raise LegoError(
            f"a parameter of kernel '{kernel}' is not understood: {parameter.strip()[:200]}"
        )
    return int(found["bits"]) // 8 * int(found["count"] or 1)
