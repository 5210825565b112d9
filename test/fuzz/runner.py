"""Try many inputs in worker processes, and survive what the inputs do to them.

An input is made from the name of its fuzzer, a seed and its number, and from nothing else. A worker
says which input it begins before it begins it, so when a worker dies or stays silent for too long,
the parent knows which input did it, and starts another worker behind that input.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any, Protocol

from lego_mlir.diagnostics import LegoError

_FORK = multiprocessing.get_context("fork")
_DONE = -1
_STDERR_SHOWN = 2000


class WrongError(Exception):
    """The program took an input and gave a wrong answer, or refused one that is right."""


class Fuzzer(Protocol):
    """One kind of input.

    Attributes:
        name: as in the command; part of what an input is made from.
    """

    name: str

    def prepare(self) -> None:
        """Import and make what all inputs share; called once, before workers are forked."""

    def make(self, random: Random) -> Any:
        """Return an input."""

    def check(self, made: Any) -> str:
        """Try an input; return in one word what became of it.

        Raises:
            LegoError: the input is refused, as it may be.
            WrongError: the answer is wrong.
        """

    def show(self, made: Any) -> str:
        """Return the input as text that a person can read and try."""

    def smaller(self, made: Any) -> Iterable[Any]:
        """Return inputs that are parts of this one, to look for the smallest that fails."""


@dataclass(frozen=True)
class Limits:
    """What one input may take.

    Attributes:
        seconds: of wall time.
        megabytes: of memory, beyond what the worker has when it begins.
    """

    seconds: float = 30.0
    megabytes: int = 3072


@dataclass(frozen=True)
class Failure:
    """An input that failed.

    Attributes:
        index: its number.
        kind: `exception`, `wrong`, `abort`, `hang` or `memory`.
        detail: a traceback, a sentence, or what the process wrote before it died.
    """

    index: int
    kind: str
    detail: str


@dataclass
class Report:
    """What became of all inputs: how many of each outcome, and those that failed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def random_of(fuzzer: Fuzzer, seed: int, index: int) -> Random:
    """Return the random numbers of one input."""
    return Random(f"{fuzzer.name} {seed} {index}")


def run(
    fuzzer: Fuzzer, indices: range, seed: int = 0, jobs: int = 1, limits: Limits | None = None
) -> Report:
    """Try the inputs of these numbers; the fuzzer is prepared already."""
    limits, report = limits or Limits(), Report()
    waiting = [indices[job::jobs] for job in range(jobs) if indices[job::jobs]]
    workers = [_Worker(fuzzer, part, seed, limits) for part in waiting]
    try:
        while workers:
            soonest = min(w.deadline for w in workers) - time.monotonic()
            wait([w.connection for w in workers], timeout=max(0.0, soonest))
            for worker in list(workers):
                if worker.listen(report):
                    continue
                workers.remove(worker)
                if worker.left:
                    workers.append(_Worker(fuzzer, worker.left, seed, limits))
    finally:
        for worker in workers:
            worker.kill()
    report.failures.sort(key=lambda failure: failure.index)
    return report


class _Worker:
    """The parent's side of one worker process."""

    def __init__(self, fuzzer: Fuzzer, indices: range, seed: int, limits: Limits) -> None:
        self.left, self.limits = indices, limits
        self.connection, theirs = _FORK.Pipe(duplex=False)
        self.errors = tempfile.NamedTemporaryFile(prefix="fuzz-", suffix=".stderr")  # noqa: SIM115
        ends = self.connection, theirs
        arguments = (fuzzer, indices, seed, limits, ends, self.errors.name)
        self.process = _FORK.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.current: int | None = None
        self.deadline = time.monotonic() + limits.seconds

    def listen(self, report: Report) -> bool:
        """Read the worker's answer; return whether it is alive."""
        try:
            while self.connection.poll():
                self._note(self.connection.recv(), report)
        except EOFError:
            self.process.join()
            if self.current is not None:
                self._fail(report, "abort", f"the process ended with {self.process.exitcode}")
            self.kill()
            return False
        if time.monotonic() > self.deadline:
            self._fail(report, "hang", f"no answer within {self.limits.seconds:g} s")
            self.kill()
            return False
        return True

    def _note(self, message: tuple[int, str, Failure | None], report: Report) -> None:
        """Take in one message: the input that begins, and what became of the one before."""
        index, outcome, failure = message
        if outcome:
            report.outcomes[outcome] += 1
        if failure is not None:
            report.failures.append(failure)
        self.deadline = time.monotonic() + self.limits.seconds
        self.current = None if index == _DONE else index
        if index == _DONE:
            self.left = range(0)
        else:
            self.left = self.left[self.left.index(index) + 1 :]

    def _fail(self, report: Report, kind: str, detail: str) -> None:
        stderr = Path(self.errors.name).read_text(errors="replace")[-_STDERR_SHOWN:]
        index = self.left[0] if self.current is None else self.current
        if self.current is None:
            self.left = self.left[1:]
        report.outcomes[kind] += 1
        report.failures.append(Failure(index, kind, f"{detail}\n{stderr}".rstrip()))

    def kill(self) -> None:
        """End the process and all that it started."""
        if self.process.pid is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self.process.kill()
        self.process.join()
        self.connection.close()
        self.errors.close()


def _work(
    fuzzer: Fuzzer,
    indices: range,
    seed: int,
    limits: Limits,
    ends: tuple[Connection, Connection],
    errors: str,
) -> None:
    """Try inputs one after the other: the worker's whole life."""
    parents, connection = ends
    parents.close()  # so that nobody reads once the parent is gone, and the worker ends, too
    os.setpgid(0, 0)  # what it forks dies with it
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    _limit_memory(limits.megabytes)
    outcome, failure = "", None
    for index in indices:
        connection.send((index, outcome, failure))
        outcome, failure = attempt(fuzzer, seed, index)
    connection.send((_DONE, outcome, failure))


def attempt(fuzzer: Fuzzer, seed: int, index: int) -> tuple[str, Failure | None]:
    """Make and try one input in this process."""
    try:
        return judged(fuzzer, fuzzer.make(random_of(fuzzer, seed, index)), index)
    except Exception:
        return "exception", Failure(index, "exception", f"while made:\n{traceback.format_exc()}")


def judged(fuzzer: Fuzzer, made: Any, index: int = 0) -> tuple[str, Failure | None]:
    """Try an input in this process: its outcome, and the failure that it is, if it is one."""
    try:
        return fuzzer.check(made), None
    except LegoError as e:
        str(e)  # to show an error must not fail either
        return "refused", None
    except WrongError as e:
        return "wrong", Failure(index, "wrong", str(e))
    except MemoryError:
        return "memory", Failure(index, "memory", traceback.format_exc())
    except Exception:
        return "exception", Failure(index, "exception", traceback.format_exc())


def _limit_memory(megabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
