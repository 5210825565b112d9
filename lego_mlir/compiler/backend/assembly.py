"""The result of an assembler, nvJitLink or ptxas: machine code, resources, messages."""

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
    """The resources of one kernel, as the assembler reports them.

    Attributes:
        kernel: the entry's name.
        registers: 32-bit registers per thread.
        shared_bytes: static shared memory per CTA, in bytes.
        stack_bytes: local memory of the stack frame per thread, in bytes.
        spill_store_bytes, spill_load_bytes: register spills per thread, in bytes; 0 is the goal.
    """

    kernel: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of all kernels of one PTX module, and the assembler's messages about it.

    Attributes:
        code: the ELF image.
        resources: one for each entry, in the assembler's order.
        warnings: the assembler's warnings, without its prefix, and one for each kernel that
            spills registers or has local memory.
        log: everything that the assembler printed.
    """

    code: bytes
    resources: tuple[Resources, ...]
    warnings: tuple[str, ...]
    log: str


def make_cubin(code: bytes, log: str, target: Target) -> Cubin:
    """Return the result of an assembler after checking its resources.

    Raises:
        LegoError: a kernel declares more static shared memory than a launch accepts.
    """
    resources = parse_resources(log)
    for kernel in resources:
        _check_static_shared(kernel, target)
    return Cubin(code, resources, parse_warnings(log, resources), log)


def parse_resources(log: str) -> tuple[Resources, ...]:
    """Return the resources of each kernel from the assembler's verbose log."""
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
    """Return the warnings in a log, and one for each kernel that uses local memory."""
    reported = re.findall(r"^(?:ptxas\s+)?(?:\S.*;\s*)?warning\s*:\s*(.+?)\s*$", log, re.M | re.I)
    codes = re.findall(r"^(?:ptxas\s+)?info\s*:\s*(\(C\d+\).+?)\s*$", log, re.M)
    local = [text for text in map(_local_memory, resources) if text]
    return (*reported, *codes, *local)


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
    """Return the error of an assembler that failed, located at the first line it rejects.

    Args:
        log: what the assembler printed.
        ptx: the PTX that it read.
        target: the target to assemble for.
        package: the package that contains a newer assembler.
    """
    line = re.search(r"\bline (\d+); (?:error|fatal)\s*: (.+)", log)
    if line is not None:
        location, message = Location(PTX_FILE, int(line[1])), line[2].strip()
    else:
        plain = re.search(r"(?:error|fatal)\s*: (.+)", log) or re.search(r"(.+)", log)
        location, message = Location(PTX_FILE), plain[1].strip() if plain else "no reason given"
    others = len(re.findall(r"\bline \d+; (?:error|fatal)\s*:", log)) - 1
    more = f" (and {others} more)" if others > 0 else ""
    return LegoError(
        f"the assembler rejects this PTX for {target}: {message}{more}",
        location=location,
        hint=_hint(log, package),
        source=ptx,
    )


def _hint(log: str, package: str) -> str | None:
    """Return the hint for assembler errors that have other causes than the PTX's text."""
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
            f"a CTA on {target} may have {target.static_shared_bytes}",
            hint="use a smaller tile, or dynamic shared memory "
            f"(up to {target.optin_shared_bytes} bytes)",
        )
