"""Step two: check and time the cases of a bundle on a GPU, in a child process under a time limit.

One child serves many cases, so that what is slow to start, PyTorch above all, starts once. It is
ended when a case takes too long or fails, and the next case gets another one: a kernel that hangs
ends with its process, and a broken context is nobody else's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
from time import monotonic
from typing import IO, Any

from bench.build import chosen, read_manifest
from bench.cases import COPIES
from bench.results import OURS, Result, fastest, is_verified, limit, ratio, reason

ROUNDS = 15
MOST_SETS = 4096
"""Of data; small ones do not fill the cache then."""
LIMIT_S, FINISH_S = 120.0, 20.0


def run(
    folder: Path,
    only: Sequence[str],
    output: Path | None,
    *,
    rounds: int = ROUNDS,
    limit_s: float = LIMIT_S,
    check_by_numpy: bool = False,
    alone: bool = False,
    sets: int = MOST_SETS,
) -> int:
    """Run the chosen cases; the number of those that are not right.

    Args:
        folder: the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        output: where to write a line of JSON for each case, as soon as it is there.
        rounds: how many count; 0 checks without timing.
        limit_s: seconds that one case may take.
        check_by_numpy: do not check by PyTorch even where it is there.
        alone: without peers and without PyTorch.
        sets: of data, at most.

    Raises:
        LegoError: the bundle cannot be read, or no case is chosen.
    """
    manifest = read_manifest(folder)
    names = chosen(list(manifest["cases"]), only)
    failures, said = 0, set[tuple[str, str]]()
    start = monotonic()
    with tempfile.TemporaryDirectory() as scratch, _opened(output) as lines:
        options = ["--rounds", str(rounds), "--scratch", scratch, "--sets", str(sets)]
        options += ["--check-by-numpy"] if check_by_numpy else []
        options += ["--alone"] if alone else []
        command = [sys.executable, "-m", "bench", "one", str(folder), *options]
        for number, result in enumerate(results(command, names, limit_s), 1):
            known = {"commit": manifest["commit"], **manifest["cases"][result["case"]]}
            result = {**known, **result}
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            failures += not is_verified(result)
            for skipped in result.get("absent", {}).items():
                if skipped not in said:
                    said.add(skipped)
                    print("skipped {}: {}".format(*skipped), flush=True)
            left = (monotonic() - start) / number * (len(names) - number)
            print(f"[{number}/{len(names)}, {left:.0f} s left] {summary(result)}", flush=True)
    print(f"{len(names) - failures} of {len(names)} cases are right")
    return failures


def results(command: Sequence[str], names: Sequence[str], limit_s: float) -> Iterator[Result]:
    """What children that run the command say of the cases, one after the other."""
    child: Child | None = None
    try:
        for name in names:
            child = child or Child(command)
            result = child.ask(name, limit_s)
            yield result
            if "error" in result:
                child.end()
                child = None
        if child is not None:
            child.finish()
    finally:
        if child is not None:
            child.end()


class Child:
    """A process that answers names of cases with lines of JSON."""

    def __init__(self, command: Sequence[str]) -> None:
        self.errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed by `end`
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            process_group=0,  # with all that it starts, to be ended together
        )

    def ask(self, name: str, limit_s: float) -> Result:
        """The result of a case; one with an error if the child says none in time."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        start = monotonic()
        guard = Timer(limit_s, self.kill)
        guard.start()
        try:
            stdin.write(f"{name}\n")
            stdin.flush()
            answer = stdout.readline()
            result = json.loads(answer)
        except (OSError, ValueError):  # it ended before, or in the middle of, an answer
            result = None
        finally:
            guard.cancel()
        if isinstance(result, dict):
            return result
        late = monotonic() - start >= limit_s
        error = f"stopped after {limit_s:g} s" if late else self._last_words()
        return {"case": name, "verified": {OURS: False}, "error": error}

    def kill(self) -> None:
        """End the process and what it started, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Let the process end by itself, as tools that watch it want; not for long."""
        assert self.process.stdin is not None
        with suppress(OSError, subprocess.TimeoutExpired):
            self.process.stdin.close()
            self.process.wait(FINISH_S)

    def end(self) -> None:
        """End the process and close what is open."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written last never arrived
                    pipe.close()
        self.errors.close()

    def _last_words(self) -> str:
        """How the process ended, and the end of what it wrote on stderr."""
        self.kill()
        status = self.process.wait()
        self.errors.seek(0)
        said = " ".join(self.errors.read()[-1000:].split())
        return f"the process ended with status {status}: {said}"


def summary(result: Result) -> str:
    """One line on a case."""
    if not is_verified(result):
        return f"WRONG {result['case']}: {reason(result)}"
    copy = limit(result)
    told = [f"right {result['case']}"]
    told += [f"WRONG {name}" for name in result["verified"] if not is_verified(result, name)]
    candidates = [x["name"] for x in result.get("candidates", ())]
    for name in result.get("us", {}):
        if name == copy or name not in (OURS, *COPIES, *candidates):
            told.append(f"{ratio(result, name).median:.2f} of {name}")
    best = fastest(result, candidates)
    if best is not None:
        told.append(f"{ratio(result, OURS, ours=best).median:.2f} times as fast by {best}")
    return "  ".join(told)


def _opened(output: Path | None) -> Any:
    """The file to write to; without one, what is written is dropped."""
    return (output or Path(os.devnull)).open("w")
