"""What assemblers give, whichever of them ran: machine code, resources, and their log read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lego_mlir.diagnostics import LegoError, Location
from lego_mlir.hardware.targets import Target

PTX_FILE = "<ptx>"


class AssemblerMissing(LegoError):
    """An assembler is not installed."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel takes, as the assembler reports it.

    Attributes:
        kernel: the entry's name.
        registers: 32-bit registers a thread.
        shared_bytes: static shared memory a block, in bytes.
        stack_bytes: local memory of the stack frame a thread, in bytes.
        spill_store_bytes, spill_load_bytes: register spills a thread, in bytes; 0 is the goal.
    """

    kernel: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of all kernels of one PTX module, and what the assembler said about it.

    Attributes:
        code: the ELF image.
        resources: one for each entry, in the assembler's order.
        warnings: the assembler's warnings, without its prefix, and one for each kernel that
            spills registers or has local memory.
        log: everything it printed.
    """

    code: bytes
    resources: tuple[Resources, ...]
    warnings: tuple[str, ...]
    log: str


def make_cubin(code: bytes, log: str, target: Target) -> Cubin:
    """An assembler's result.

    Raises:
        LegoError: a kernel declares more static shared memory than a block may have.
    """
    resources = parse_resources(log)
    for kernel in resources:
        _check_static_shared(kernel, target)
    return Cubin(code, resources, parse_warnings(log, resources), log)


def parse_resources(log: str) -> tuple[Resources, ...]:
    """The entries' resources from the assembler's verbose log."""
    found: list[Resources] = []
    for section in re.split(r"(?=Compiling entry function ')", log)[1:]:
        head = re.match(r"Compiling entry function '([^']+)'", section)
        assert head is not None
        # A section also holds device functions called; the entry's own lines come first.
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) byte", section)
        used = re.search(r"Used (\d+) registers([^\n]*)", section)
        shared = re.search(r"(\d+) bytes smem", used[2]) if used else None
        found.append(
            Resources(
                kernel=head[1],
                registers=int(used[1]) if used else 0,
                shared_bytes=int(shared[1]) if shared else 0,
                stack_bytes=int(frame[1]) if frame else 0,
                spill_store_bytes=int(frame[2]) if frame else 0,
                spill_load_bytes=int(frame[3]) if frame else 0,
            )
        )
    return tuple(found)


def parse_warnings(log: str, resources: Sequence[Resources]) -> tuple[str, ...]:
    """The warnings in an assembler's log, and one for each kernel that uses local memory."""
    said = re.findall(r"^(?:ptxas\s+)?(?:\S.*;\s*)?warning\s*:\s*(.+?)\s*$", log, re.M | re.I)
    codes = re.findall(r"^(?:ptxas\s+)?info\s*:\s*(\(C\d+\).+?)\s*$", log, re.M)
    local = [text for text in map(_local_memory, resources) if text]
    return (*said, *codes, *local)


def _local_memory(kernel: Resources) -> str | None:
    if kernel.spill_store_bytes or kernel.spill_load_bytes:
        return (
            f"{kernel.kernel} spills registers: {kernel.spill_store_bytes} bytes stored, "
            f"{kernel.spill_load_bytes} bytes loaded a thread"
        )
    if kernel.stack_bytes:
        return f"{kernel.kernel} has {kernel.stack_bytes} bytes of local memory a thread"
    return None


def rejection(log: str, ptx: str, target: Target, package: str) -> LegoError:
    """The log of an assembler that failed as one diagnostic: the first error's line is its place.

    Args:
        log: what it printed.
        ptx: what it was given.
        target: what for.
        package: that a newer assembler comes in.
    """
    line = re.search(r"\bline (\d+); (?:error|fatal)\s*: (.+)", log)
    if line is not None:
        place, message = Location(PTX_FILE, int(line[1])), line[2].strip()
    else:
        plain = re.search(r"(?:error|fatal)\s*: (.+)", log) or re.search(r"(.+)", log)
        place, message = Location(PTX_FILE), plain[1].strip() if plain else "no reason given"
    others = len(re.findall(r"\bline \d+; (?:error|fatal)\s*:", log)) - 1
    more = f" (and {others} more)" if others > 0 else ""
    return LegoError(
        f"the assembler rejects this PTX for {target}: {message}{more}",
        location=place,
        hint=_hint(log, package),
        source=ptx,
    )


def _hint(log: str, package: str) -> str | None:
    """The way out of the assembler errors that are not a slip in the PTX."""
    if "Unsupported .version" in log:
        return f"pip install --upgrade {package}"
    if "SM version" in log or "cannot be compiled to future architecture" in log:
        return "assemble for the target that the PTX names in its .target line"
    if "too much shared data" in log:
        return "use a smaller tile, or dynamic shared memory"
    if "does not match type NVJITLINK_INPUT_PTX" in log or "Missing .version" in log:
        return "a PTX module begins with .version, .target and .address_size"
    return None


def _check_static_shared(kernel: Resources, target: Target) -> None:
    # For arch-specific targets the assemblers accept static sizes beyond what a launch accepts.
    if kernel.shared_bytes > target.static_shared_bytes:
        raise LegoError(
            f"{kernel.kernel} declares {kernel.shared_bytes} bytes of static shared memory, "
            f"a block on {target} may have {target.static_shared_bytes}",
            hint="use a smaller tile, or dynamic shared memory "
            f"(up to {target.optin_shared_bytes} bytes)",
        )
