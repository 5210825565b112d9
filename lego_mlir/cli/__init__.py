"""legoc, the command: compiles `.mlir` files with LEGO layouts, and runs them.

One module for each command; `main` chooses it and reports its errors.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from lego_mlir.cache import disabled
from lego_mlir.cli import caching, compiling, drawing, printing, running
from lego_mlir.cli.streams import say
from lego_mlir.diagnostics import LegoError, printable, shown_warnings
from lego_mlir.limits import Limits
from lego_mlir.options import parser, template_parser
from lego_mlir.timing import reported

_INTERRUPTED = 130  # as shells say it: 128 and the signal's number
_TRACEBACK = "LEGO_MLIR_TRACEBACK"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may lack some of our characters
            stream.reconfigure(errors="replace")
    words = sys.argv[1:] if arguments is None else list(arguments)
    command, options = _parsed(words)
    interruption = _Interruption()
    has_table = getattr(options, "timing", False)
    try:
        with (
            interruption,
            shown_warnings(_warned),
            # What is taken from the cache has no stages whose times a table could show.
            disabled() if options.no_cache or has_table else contextlib.nullcontext(),
            Limits.parse(options.limits).applied(),
            reported(options, lambda text: say(text, sys.stderr, keep="\n")),
        ):
            return command(options)
    except KeyboardInterrupt as e:
        return _interrupted(str(e))
    except Exception as e:
        return _interrupted("") if interruption.came else _failed(e)


def _parsed(words: Sequence[str]) -> tuple[Callable[[Any], int], Any]:
    """Return the command that the words of the command line ask for, and its options."""
    if len(words) == 1 and words[0] in caching.COMMANDS:
        return caching.COMMANDS[words[0]], argparse.Namespace(limits=(), no_cache=False)
    if words[:1] == ["template"]:
        return printing.fill, template_parser().parse_args(words[1:])
    options = parser().parse_args(words)
    return _command(options), options


def _command(options: Any) -> Callable[[Any], int]:
    """Return what the options of the main command ask for."""
    if options.language:
        return printing.print_layout
    if options.draw:
        return drawing.draw
    if options.check_each_step:
        return compiling.check_each_step
    return running.run if options.run else compiling.emit


def _warned(text: str) -> None:
    say(text, sys.stderr, keep="\n")


def _interrupted(what: str) -> int:
    """Print that Ctrl-C ended the command, in one line, and return the exit status."""
    say(f"legoc: interrupted{': ' if what else ''}{what}", sys.stderr)
    return _INTERRUPTED


class _Interruption:
    """Records whether Ctrl-C was pressed: MLIR replaces exceptions that its callbacks raise."""

    came = False

    def __enter__(self) -> None:
        self._in_main = threading.current_thread() is threading.main_thread()
        if self._in_main:
            self._before = signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if self._in_main:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, *_: object) -> NoReturn:
        self.came = True
        raise KeyboardInterrupt


def _failed(error: Exception) -> int:
    """Print the error and return the exit status."""
    try:
        raise error
    except LegoError as e:
        print(e.render(), file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output has seen enough
        return 0
    except MemoryError:
        print(
            "error: this needs more memory than there is\nhint: use smaller sizes", file=sys.stderr
        )
        return 1
    except RecursionError:
        print("error: the input is nested too deeply to be read", file=sys.stderr)
        return 1
    except Exception as e:
        if os.environ.get(_TRACEBACK):
            import traceback

            traceback.print_exc()
        print(
            f"error: legoc has a bug here ({printable(f'{type(e).__name__}: {e}')})\n"
            f"hint: {_TRACEBACK}=1 shows where; please report it with the input",
            file=sys.stderr,
        )
        return 1
