"""PTX to cubin, in process, by nvJitLink: no GPU, no CUDA toolkit.

The low-level binding `cuda.bindings.nvjitlink` is used rather than `cuda.core.Program`: it is the
same library behind a third of the import time, and a compiler's run is mostly imports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lego_mlir.compiler.targets import Target
from lego_mlir.diagnostics import LegoError, Place

PTX_FILE = "<ptx>"

_INSTALL = "pip install nvidia-nvjitlink cuda-bindings"

# nvJitLinkResult, the two that mean something to our user (nvJitLink.h).
_UNRECOGNIZED_OPTION = 1
_UNSUPPORTED_ARCH = 17


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
            spills registers.
        log: everything it printed.
    """

    code: bytes
    resources: tuple[Resources, ...]
    warnings: tuple[str, ...]
    log: str


def assemble(ptx: str, target: Target, *, options: Sequence[str] = ()) -> Cubin:
    """Assemble PTX for a target; its `.loc` lines are kept, so that a profiler shows the source.

    Args:
        ptx: the text of one PTX module.
        target: must be the module's own `.target`, or a later one that runs it.
        options: more nvJitLink options, e.g. `-maxrregcount=128`, `-Xptxas=-O1`.

    Raises:
        LegoError: nvJitLink is missing or too old for the target; the PTX is wrong (the error
            shows the line); a kernel declares more static shared memory than a block may have.
    """
    arguments = [f"-arch={target.name}", "-verbose", *options]
    data = ptx.encode()
    if not data.strip():
        raise LegoError("there is no PTX to assemble", place=Place(PTX_FILE))
    with _linker(target, arguments) as (nvjitlink, handle):
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), PTX_FILE)
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as e:
            log = _text(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)
            raise _assembler_error(log or str(e), ptx, target) from None
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        log = _text(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)
    resources = parse_resources(log)
    for kernel in resources:
        _check_static_shared(kernel, target)
    return Cubin(bytes(code), resources, parse_warnings(log, resources), log)


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
    """The warnings in an assembler's log, and one for each kernel that spills."""
    said = re.findall(r"^(?:ptxas\s+)?(?:\S.*;\s*)?warning\s*:\s*(.+?)\s*$", log, re.M | re.I)
    codes = re.findall(r"^(?:ptxas\s+)?info\s*:\s*(\(C\d+\).+?)\s*$", log, re.M)
    spills = [
        f"{r.kernel} spills registers: {r.spill_store_bytes} bytes stored, "
        f"{r.spill_load_bytes} bytes loaded a thread"
        for r in resources
        if r.spill_store_bytes or r.spill_load_bytes
    ]
    return (*said, *codes, *spills)


@contextmanager
def _linker(target: Target, arguments: list[str]) -> Iterator[tuple[Any, int]]:
    """The nvJitLink binding and an open handle, closed at the end."""
    nvjitlink = _load()
    try:
        handle = nvjitlink.create(len(arguments), arguments)
    except nvjitlink.nvJitLinkError as e:
        status = int(getattr(e, "status", -1))
        version = ".".join(map(str, nvjitlink.version()))
        if status == _UNSUPPORTED_ARCH:
            raise LegoError(
                f"nvJitLink {version}, which is installed here, cannot assemble for {target}",
                hint="pip install --upgrade nvidia-nvjitlink",
            ) from None
        if status == _UNRECOGNIZED_OPTION:
            raise LegoError(
                f"nvJitLink {version} does not know one of the options {' '.join(arguments)}"
            ) from None
        raise LegoError(f"nvJitLink {version} cannot start: {e}") from None
    try:
        yield nvjitlink, handle
    finally:
        nvjitlink.destroy(handle)


def _load() -> Any:
    """The binding, with its library found.

    Raises:
        LegoError: one of the two is not installed.
    """
    try:
        from cuda.bindings import nvjitlink
    except ImportError as e:
        raise LegoError(
            f"PTX cannot be assembled: {e}", hint=f"{_INSTALL}; or stop at --emit=ptx"
        ) from None
    try:
        nvjitlink.version()
    except RuntimeError as e:  # the finder's own DynamicLibNotFoundError is one
        reason = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise LegoError(
            f"PTX cannot be assembled, the library nvJitLink was not found: {reason}",
            hint=f"{_INSTALL}; or stop at --emit=ptx",
        ) from None
    return nvjitlink


def _text(size_of: Any, read: Any, handle: int) -> str:
    """One of nvJitLink's logs; it ends in NUL."""
    buffer = bytearray(size_of(handle))
    if buffer:
        read(handle, buffer)
    return buffer.rstrip(b"\0").decode(errors="replace").strip()


def _assembler_error(log: str, ptx: str, target: Target) -> LegoError:
    """The assembler's log as one diagnostic: the first error's line is its place."""
    line = re.search(r"\bline (\d+); (?:error|fatal)\s*: (.+)", log)
    if line is not None:
        place, message = Place(PTX_FILE, int(line[1])), line[2].strip()
    else:
        plain = re.search(r"(?:error|fatal)\s*: (.+)", log) or re.search(r"(.+)", log)
        place, message = Place(PTX_FILE), plain[1].strip() if plain else "no reason given"
    others = len(re.findall(r"\bline \d+; (?:error|fatal)\s*:", log)) - 1
    more = f" (and {others} more)" if others > 0 else ""
    return LegoError(
        f"the assembler rejects this PTX for {target}: {message}{more}",
        place=place,
        hint=_hint(log),
        source=ptx,
    )


def _hint(log: str) -> str | None:
    """The way out of the assembler errors that are not a slip in the PTX."""
    if "Unsupported .version" in log:
        return "pip install --upgrade nvidia-nvjitlink"
    if "SM version" in log or "cannot be compiled to future architecture" in log:
        return "assemble for the target that the PTX names in its .target line"
    if "too much shared data" in log:
        return "use a smaller tile, or dynamic shared memory"
    if "does not match type NVJITLINK_INPUT_PTX" in log:
        return "a PTX module begins with .version, .target and .address_size"
    return None


def _check_static_shared(kernel: Resources, target: Target) -> None:
    # For arch-specific targets nvJitLink accepts static sizes beyond what a launch accepts.
    if kernel.shared_bytes > target.static_shared_bytes:
        raise LegoError(
            f"{kernel.kernel} declares {kernel.shared_bytes} bytes of static shared memory, "
            f"a block on {target} may have {target.static_shared_bytes}",
            hint="use a smaller tile, or dynamic shared memory "
            f"(up to {target.optin_shared_bytes} bytes)",
        )
