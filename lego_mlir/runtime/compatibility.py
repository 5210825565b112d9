"""Whether an artifact fits a GPU, and which of its codes runs there."""

from __future__ import annotations

import re
from typing import Literal

from lego_mlir.artifact import Argument
from lego_mlir.diagnostics import LegoError

Capability = tuple[int, int]
Code = Literal["cubin", "ptx"]

# Integrated GPUs: their cubins and those of discrete GPUs of the same generation do not mix.
_INTEGRATED: frozenset[Capability] = frozenset({(8, 7)})


def parse_target(target: str) -> tuple[Capability, bool]:
    """Capability of a target, and whether its code runs on that capability alone (`sm_90a`).

    Raises:
        LegoError: it is no target's name.
    """
    found = re.fullmatch(r"sm_(\d+)(\d)([a]?)", target)
    if found is None:
        raise LegoError(f"'{target}' is no GPU target", hint="targets look like sm_80, sm_90a")
    return (int(found[1]), int(found[2])), found[3] == "a"


def cubin_fits(target: str, device: Capability) -> bool:
    """Return whether the device runs a cubin: same major version, minor not below."""
    built, exact = parse_target(target)
    if exact or built in _INTEGRATED or device in _INTEGRATED:
        return built == device
    return built[0] == device[0] and built[1] <= device[1]


def ptx_fits(target: str, device: Capability) -> bool:
    """Return whether the driver can compile the PTX for the device."""
    built, exact = parse_target(target)
    return built == device if exact else built <= device


def choose_code(target: str, device: Capability, has_cubin: bool, only: Code | None = None) -> Code:
    """Which code of an artifact to load: the cubin where it fits, else the PTX.

    Args:
        target: of the artifact.
        device: its compute capability.
        has_cubin: the artifact has one.
        only: insist on this one.

    Raises:
        LegoError: neither fits; names target and device.
    """
    if only != "ptx" and has_cubin and cubin_fits(target, device):
        return "cubin"
    if only != "cubin" and ptx_fits(target, device):
        return "ptx"
    major, minor = device
    what = {None: "this artifact", "cubin": "the cubin", "ptx": "the PTX"}[only]
    if only == "cubin" and not has_cubin:
        raise LegoError("this artifact has no cubin", hint="compile it with --emit=cubin")
    raise LegoError(
        f"{what} is for {target}, it does not run on this device of compute capability "
        f"{major}.{minor}",
        hint=f"compile it with --target sm_{major}{minor}, or run it with --device sim",
    )


def check_alignment(argument: Argument, address: int) -> None:
    """Check a device buffer's address, in bytes, against what the kernels rely on.

    Raises:
        LegoError: it is no multiple of the argument's alignment.
    """
    if address % argument.alignment:
        raise LegoError(
            f"argument '{argument.name}' begins at a multiple of {argument.alignment} bytes, "
            f"the array at address {address:#x} does not",
            hint="pass a copy, or compile the kernel for this alignment",
        )


def check_shared(kernel: str, size: int, limit: int, device: str) -> None:
    """Check a launch's dynamic shared memory, in bytes, against the limit of a CTA on the device.

    Raises:
        LegoError: it asks for more.
    """
    if size > limit:
        raise LegoError(
            f"kernel '{kernel}' asks for {size} bytes of dynamic shared memory, "
            f"a CTA on {device} may have {limit}",
            hint="use a smaller tile or fewer buffers",
        )
