"""Run `PROGRAM ARGUMENT...` in a fork of the server (fork_server.py) that lit's worker started.

Imports are kept to what the interpreter has loaded already, because this runs for each command.
"""

import _socket
import os
import sys

message = os.fsencode(
    "".join(
        f"{text}\0"
        for text in (
            os.getcwd(),  # noqa: PTH109 (pathlib takes longer to import than this to run)
            len(sys.argv) - 2,
            *sys.argv[1:],
            *(f"{name}={value}" for name, value in os.environ.items()),
        )
    )
)
connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
connection.connect(os.environ["LEGO_MLIR_FORK_SERVER"])
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
header = len(message).to_bytes(4, sys.byteorder)
connection.sendmsg([header], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
connection.sendall(message)
status = int(connection.recv(16))
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
