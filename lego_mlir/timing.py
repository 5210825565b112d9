"""Where the time of a command goes: its stages, and what they consist of.

Nothing is recorded, and nothing costs time, unless somebody asks: `with Timings().recorded():`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any


@dataclass
class Stage:
    """One stage of the work.

    Attributes:
        name: of the stage.
        seconds: it took, without the stages that ran inside of it.
        parts: names and seconds of what it consists of, such as the passes of a pipeline. A name is
            indented by two spaces if it is a part of the one above.
    """

    name: str
    seconds: float = 0.0
    parts: list[tuple[str, float]] = field(default_factory=list)


class Timings:
    """The stages of some work, in the order in which they ended.

    Args:
        ended: is called with each stage when it ends.
        has_parts: whether the parts of stages are wanted, too. To measure passes takes time.

    Attributes:
        stages: the stages.
        has_parts: as given.
    """

    def __init__(
        self, ended: Callable[[Stage], None] | None = None, *, has_parts: bool = False
    ) -> None:
        self.stages: list[Stage] = []
        self.has_parts = has_parts
        self._ended = ended
        self._running: list[Stage] = []
        self._inner: list[float] = []

    @contextmanager
    def recorded(self) -> Iterator[Timings]:
        """Record all stages that run in the block."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record the block as a stage."""
        stage = Stage(name)
        self._running.append(stage)
        self._inner.append(0.0)
        start = perf_counter()
        try:
            yield
        finally:
            whole = perf_counter() - start
            stage.seconds = whole - self._inner.pop()
            self._running.pop()
            if self._inner:
                self._inner[-1] += whole
            self.stages.append(stage)
            if self._ended is not None:
                self._ended(stage)

    def add_parts(self, parts: list[tuple[str, float]]) -> None:
        """Add to the parts of the stage that is running."""
        if self._running:
            self._running[-1].parts += parts

    def table(self) -> str:
        """Return the stages and their parts as a table, milliseconds and shares of the whole."""
        total = sum(stage.seconds for stage in self.stages)
        rows = []
        for stage in self.stages:
            rows.append((stage.name, stage.seconds))
            rows += [(f"  {name}", seconds) for name, seconds in stage.parts]
        rows.append(("total", total))
        width = max(len(name) for name, _ in rows)
        return "\n".join(
            f"{name:<{width}}  {1e3 * seconds:>9.2f} ms  {seconds / (total or 1):>6.1%}"
            for name, seconds in rows
        )


@contextmanager
def reported(options: Any, say: Callable[[str], None]) -> Iterator[None]:
    """Report the times of the block, as the options of a command ask for it.

    Args:
        options: with `verbose`, to report each stage as it ends, and `timing`, for a table at the
            end; without them nothing is recorded.
        say: prints a text.
    """
    is_verbose, has_table = getattr(options, "verbose", False), getattr(options, "timing", False)
    if not (is_verbose or has_table) or sys.stderr is None:
        yield
        return

    def ended(stage: Stage) -> None:
        say(f"legoc: {stage.name:<10} {1e3 * stage.seconds:>9.2f} ms")

    timings = Timings(ended if is_verbose else None, has_parts=has_table)
    if is_verbose:
        from lego_mlir import __version__

        python = ".".join(map(str, sys.version_info[:3]))
        say(f"legoc: lego-mlir {__version__}, Python {python}")
    try:
        with timings.recorded():
            yield
    finally:
        if has_table and timings.stages:
            say(timings.table())


_current: ContextVar[Timings | None] = ContextVar("timings", default=None)


def recording() -> Timings | None:
    """Return what records the stages; None if nothing does."""
    return _current.get()


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Record the block, or the calls of the function that this decorates, as a stage."""
    timings = _current.get()
    if timings is None:
        yield
    else:
        with timings.stage(name):
            yield
