"""A server that runs lit's commands, each in a fork of a process that has imported their programs.

Most of lit's commands take less time than Python takes to import what they run. So a worker of lit
starts one server, and its commands are `run_forked.py PROGRAM ARGUMENT...`, which hands its
arguments, its environment, its folder and its standard streams to the server, and ends as the
program does, by status or by signal. Each command has a process of its own, as ever; what it does
not have is an import of its own. Tests of the command line in test/python/cli start legoc itself.

A request is the length of what follows, in four bytes that carry three file descriptors, and then
texts that end in NUL: the folder, the number of arguments, the program, its arguments, and the
environment as NAME=VALUE. The answer is the status as `os.waitstatus_to_exitcode` has it. The
program `cpu-seconds` is answered with the CPU time of all programs that have ended.

The server ends when its standard input does. A program whose client ends before it is killed with
all that it started.
"""

from __future__ import annotations

import gc
import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ADDRESS = "LEGO_MLIR_FORK_SERVER"
"""The environment variable that tells clients the path of the server's socket."""
CLIENT = Path(__file__).with_name("run_forked.py")
FILECHECK = Path(__file__).parents[1] / "strict_filecheck.py"
CPU_SECONDS = "cpu-seconds"
OPTIONAL = {"lego_mlir.runtime.torch_tensors", "lego_mlir.sim.pytest_plugin"}
"""Modules that import packages which are not installed everywhere."""
LENGTH = struct.Struct("=I")


def legoc() -> None:
    from lego_mlir.cli import main

    sys.exit(main())


def file_check() -> None:
    runpy.run_path(str(FILECHECK), run_name="__main__")


PROGRAMS: Mapping[str, Callable[[], None]] = {"legoc": legoc, "FileCheck": file_check}


# --------------------------------------------------------------------------------- a lit worker
@cache
def start() -> str:
    """Start the server of this process, and return the path of its socket."""
    path = Path(tempfile.mkdtemp(prefix="lego-lit-")) / "socket"
    server = subprocess.Popen(
        [sys.executable, __file__, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    if server.stdout.readline() != b"ready\n":
        raise RuntimeError(f"{__file__} does not start; it ends with {server.wait()}")
    return str(path)


def cpu_seconds(path: str) -> float:
    """Return the CPU time of all programs that the server at this path has run."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        message = f"/\0{0}\0{CPU_SECONDS}\0".encode()
        socket.send_fds(connection, [LENGTH.pack(len(message))], [0, 1, 2])
        connection.sendall(message)
        return float(connection.makefile().read())


# ----------------------------------------------------------------------------------- the server
@dataclass(frozen=True)
class Request:
    """What a client asks for."""

    folder: str
    command: list[str]
    environment: dict[str, str]
    streams: list[int]

    @staticmethod
    def read(connection: socket.socket) -> Request:
        header, streams, _, _ = socket.recv_fds(connection, LENGTH.size, 3)
        (length,) = LENGTH.unpack(header)
        text = connection.makefile("rb").read(length)
        folder, arguments, *rest = map(os.fsdecode, text.split(b"\0")[:-1])
        count = int(arguments) + 1
        named = (entry.partition("=") for entry in rest[count:])
        return Request(folder, rest[:count], {k: v for k, _, v in named}, streams)

    def run(self) -> int:
        """Become the program, and return its exit status."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
        # The server's own streams know whether they can seek.
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        sys.argv = list(self.command)
        try:
            PROGRAMS[self.command[0]]()
        except SystemExit as e:
            if isinstance(e.code, str):
                sys.stderr.write(f"{e.code}\n")
                return 1
            return e.code or 0
        except BaseException:
            traceback.print_exc()
            return 1
        return 0


@dataclass
class Server:
    """Programs that run, and the connections of their clients."""

    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    running: dict[int, socket.socket] = field(default_factory=dict)
    seconds: float = 0.0

    def accept(self, listener: socket.socket) -> None:
        connection, _ = listener.accept()
        request = Request.read(connection)
        if request.command[0] == CPU_SECONDS:
            self.answer(connection, f"{self.seconds}")
        else:
            self.fork(request, connection)
        for stream in request.streams:
            os.close(stream)

    def fork(self, request: Request, connection: socket.socket) -> None:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.setpgid(0, 0)
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                status = request.run()
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)
        # Here, too: the program has its group before its client can end, or it starts another.
        os.setpgid(pid, pid)
        self.running[pid] = connection
        self.selector.register(connection, selectors.EVENT_READ, lambda: self.give_up(pid))

    def give_up(self, pid: int) -> None:
        """Kill a program whose client has ended."""
        self.selector.unregister(self.running[pid])
        os.killpg(pid, signal.SIGKILL)

    def reap(self) -> None:
        """Answer the clients of programs that have ended."""
        while self.running:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            self.seconds += usage.ru_utime + usage.ru_stime
            connection = self.running.pop(pid)
            with suppress(KeyError):  # give_up may have been here
                self.selector.unregister(connection)
            self.answer(connection, str(os.waitstatus_to_exitcode(status)))

    @staticmethod
    def answer(connection: socket.socket, text: str) -> None:
        with suppress(OSError):  # the client has ended
            connection.sendall(text.encode())
        connection.close()


def serve(path: Path) -> None:
    """Serve the requests that come to a socket until standard input ends."""
    warm_up()
    server = Server()
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.set_blocking(write_end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)

    def ended() -> None:
        os.read(read_end, 4096)
        server.reap()

    with removed(path), socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)
        server.selector.register(0, selectors.EVENT_READ, lambda: sys.exit(0))
        server.selector.register(read_end, selectors.EVENT_READ, ended)
        server.selector.register(listener, selectors.EVENT_READ, lambda: server.accept(listener))
        os.write(1, b"ready\n")
        while True:
            for key, _ in server.selector.select():
                key.data()


@contextmanager
def removed(path: Path) -> Iterator[None]:
    """Remove the socket and its folder at the end."""
    try:
        yield
    finally:
        path.unlink()
        path.parent.rmdir()


def warm_up() -> None:
    """Import what legoc imports when it compiles and runs modules, and FileCheck.

    Each program begins with an MLIR context, whose dialects take as long to load as a small module
    takes to be compiled. What is there is frozen: a collection of garbage would copy its pages.
    """
    for room in ("algebra", "compiler", "mlir", "runtime", "sim"):
        package = importlib.import_module(f"lego_mlir.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name not in OPTIONAL:
                importlib.import_module(module.name)
    for name in ("filecheck.main", "lego_mlir.cli", "numpy.ma", "numpy.random", "z3"):
        importlib.import_module(name)
    from lego_mlir.mlir import bindings, context

    bindings.transform_interpreter()
    for module, name in (("memref", "LoadOp"), ("nvgpu", "LdMatrixOp")):
        getattr(getattr(bindings, module), name)
    bindings.passmanager.PassManager  # noqa: B018 (loads the module)
    context.shared_context()
    gc.freeze()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
