"""Run work that may kill the process in a forked child, and report a crash as an error.

For some modules LLVM stops the process with a fatal error ("Cannot select: …"), which no `except`
can catch. `run_isolated(work, isolate=True)` runs the work in a forked child. If the child
crashes, the caller gets a `LegoError` with LLVM's message.

Forking is safe in a command-line run, which has no threads and no CUDA context. It is unsafe in a
process that has them, so the default is `isolate=False`, which calls the work directly.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import re
import selectors
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict

from lego_mlir.diagnostics import LegoError, Location

_RESULT, _EXCEPTION = b"r", b"e"


def run_isolated(
    work: Callable[[], bytes], *, isolate: bool = False, doing: str = "generating code"
) -> bytes:
    """Return the bytes that `work` returns.

    Args:
        work: what to run; in a child nothing but its result comes back, no other effect.
        isolate: run it in a forked child; where there is no fork (Windows), it runs here.
        doing: names the work in the error.

    Raises:
        LegoError: the child died; carries LLVM's message.
        LegoError: whatever LegoError the work raised.
        RuntimeError: the work raised another exception in the child (a bug); holds its traceback.
            Without a child that exception itself passes.
    """
    if not isolate or not hasattr(os, "fork"):
        return work()
    result_read, result_write = os.pipe()
    errors_read, errors_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(result_read)
        os.close(errors_read)
        _child(work, result_write, errors_write)
    os.close(result_write)
    os.close(errors_write)
    try:
        result, errors = _drain(result_read, errors_read)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    finally:
        os.close(result_read)
        os.close(errors_read)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    printed = errors.decode(errors="replace")
    if status != 0 or result[:1] not in (_RESULT, _EXCEPTION):
        raise _death(status, printed, doing)
    if printed:
        sys.stderr.write(printed)
    if result[:1] == _EXCEPTION:
        raise _unpacked(result[1:])
    return result[1:]


def _child(work: Callable[[], bytes], result: int, errors: int) -> None:
    """Run the work in the child, send its result, and exit; never return."""
    status = 1
    try:
        os.dup2(errors, 2)
        os.close(errors)
        gc.disable()  # a collection would touch, and so copy, every page of the parent's heap
        faulthandler.disable()  # the parent tells the death, a Python stack says nothing of it
        try:
            packet = _RESULT + work()
        except Exception as e:
            packet = _EXCEPTION + _packed(e)
        _write(result, packet)
        status = 0
    finally:
        os._exit(status)  # not sys.exit: the parent's buffers and handlers are not ours to run


def _packed(error: Exception) -> bytes:
    """Return an exception as JSON: a LegoError by its fields, others by their traceback."""
    import json
    import traceback

    if not isinstance(error, LegoError):
        return json.dumps({"traceback": "".join(traceback.format_exception(error))}).encode()
    fields = {
        "message": error.message,
        "location": asdict(error.location) if error.location else None,
        "hint": error.hint,
        "source": error.source,
    }
    return json.dumps(fields).encode()


def _unpacked(packed: bytes) -> Exception:
    import json

    fields = json.loads(packed)
    if "traceback" in fields:
        return RuntimeError("in the isolated child:\n" + fields["traceback"])
    location = fields.pop("location")
    return LegoError(location=Location(**location) if location else None, **fields)


def _write(to: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


def _drain(*sources: int) -> tuple[bytes, ...]:
    """Read all pipes to their ends together, so that no full pipe blocks the writer."""
    parts: dict[int, list[bytes]] = {fd: [] for fd in sources}
    with selectors.DefaultSelector() as selector:
        for fd in sources:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                chunk = os.read(key.fd, 1 << 16)
                if chunk:
                    parts[key.fd].append(chunk)
                else:
                    selector.unregister(key.fd)
    return tuple(b"".join(parts[fd]) for fd in sources)


def _death(status: int, printed: str, doing: str) -> LegoError:
    """Return the error of a child that crashed, with LLVM's message if there is one."""
    fatal = re.search(r"LLVM ERROR: (.+)", printed)
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    if fatal is not None:
        reason = f"LLVM gives up: {fatal[1].strip().rstrip('.')}"
    elif lines:
        reason = lines[-1].rstrip(".")
    elif status < 0:
        reason = f"the code generator died of {_signal_name(-status)}"
    else:
        reason = f"the code generator left with status {status}"
    return LegoError(
        f"{doing} failed: {reason}",
        hint="the NVPTX back end cannot generate code for this module; --emit=llvm shows what it "
        "was given, and another --target may do",
    )


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
