"""`python -m bench run`: check and time the cases of a bundle, in a worker under a time limit.

One worker serves many cases, so that what starts slowly, PyTorch above all, starts once. If a case
takes too long or fails, the worker is killed and the next case gets a new one: a hanging kernel
ends with its process, and a broken CUDA context affects no other case.
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

from bench.build import read_manifest, select
from bench.case import COPIES
from bench.report.results import (
    OURS,
    Result,
    failure,
    fastest,
    fastest_copy,
    is_verified,
    ratio,
)
from lego_mlir.progress import track

ROUNDS = 15
MAX_SETS = 4096
"""Maximum number of sets of data; the sets of small cases do not fill the cache then."""
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
    max_sets: int = MAX_SETS,
) -> int:
    """Run the selected cases; return the number of those that are not correct.

    Args:
        folder: the bundle.
        only: words that the names of the cases contain; all cases if there are none.
        output: where a line of JSON is written for each case as soon as it is measured.
        rounds: number of counted rounds; 0 checks without timing.
        limit_s: seconds that one case may take.
        check_by_numpy: check with NumPy even if PyTorch is installed.
        alone: without peers and without PyTorch.
        max_sets: maximum number of sets of data.

    Raises:
        LegoError: the bundle cannot be read, or no case is selected.
    """
    manifest = read_manifest(folder)
    names = select(list(manifest["cases"]), only)
    failures, reported = 0, set[tuple[str, str]]()
    start = monotonic()
    with tempfile.TemporaryDirectory() as scratch, _open(output) as lines:
        options = ["--rounds", str(rounds), "--scratch", scratch, "--sets", str(max_sets)]
        options += ["--check-by-numpy"] if check_by_numpy else []
        options += ["--alone"] if alone else []
        command = [sys.executable, "-m", "bench", "worker", str(folder), *options]
        for number, result in enumerate(measured_cases(command, names, limit_s), 1):
            known = {"commit": manifest["commit"], **manifest["cases"][result["case"]]}
            result = {**known, **result}
            lines.write(json.dumps(result) + "\n")
            lines.flush()
            failures += not is_verified(result)
            for skipped in result.get("absent", {}).items():
                if skipped not in reported:
                    reported.add(skipped)
                    print("skipped {}: {}".format(*skipped), flush=True)
            left = (monotonic() - start) / number * (len(names) - number)
            print(f"[{number}/{len(names)}, {left:.0f} s left] {summary(result)}", flush=True)
    print(f"{len(names) - failures} of {len(names)} cases are correct")
    return failures


def measured_cases(
    command: Sequence[str], names: Sequence[str], limit_s: float
) -> Iterator[Result]:
    """Yield the result of each case from workers that run the command."""
    worker: Worker | None = None
    try:
        for name in track("cases", names):
            worker = worker or Worker(command)
            result = worker.measure(name, limit_s)
            yield result
            if "error" in result:
                worker.end()
                worker = None
        if worker is not None:
            worker.finish()
    finally:
        if worker is not None:
            worker.end()


class Worker:
    """A process that reads names of cases and answers with lines of JSON."""

    def __init__(self, command: Sequence[str]) -> None:
        self.errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115, closed by `end`
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            process_group=0,  # so that it can be killed with all processes that it starts
        )

    def measure(self, name: str, limit_s: float) -> Result:
        """Return the result of a case; one with an error if there is no answer in time."""
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
        error = f"stopped after {limit_s:g} s" if late else self._exit_message()
        return {"case": name, "verified": {OURS: False}, "error": error}

    def kill(self) -> None:
        """Kill the process and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def finish(self) -> None:
        """Let the process end by itself for a short time, as compute-sanitizer needs it."""
        assert self.process.stdin is not None
        with suppress(OSError, subprocess.TimeoutExpired):
            self.process.stdin.close()
            self.process.wait(FINISH_S)

    def end(self) -> None:
        """Kill the process and close its files."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was written last was never read
                    pipe.close()
        self.errors.close()

    def _exit_message(self) -> str:
        """Return the process's exit status and the end of its stderr."""
        self.kill()
        status = self.process.wait()
        self.errors.seek(0)
        words = " ".join(self.errors.read()[-1000:].split())
        return f"the process ended with status {status}: {words}"


def summary(result: Result) -> str:
    """Return one line on a case."""
    if not is_verified(result):
        return f"WRONG {result['case']}: {failure(result)}"
    copy = fastest_copy(result)
    words = [f"correct {result['case']}"]
    words += [f"WRONG {name}" for name in result["verified"] if not is_verified(result, name)]
    candidates = [x["name"] for x in result.get("candidates", ())]
    for name in result.get("us", {}):
        if name == copy or name not in (OURS, *COPIES, *candidates):
            words.append(f"{ratio(result, name).median:.2f} vs {name}")
    best = fastest(result, candidates)
    if best is not None:
        words.append(f"{ratio(result, OURS, ours=best).median:.2f} times as fast by {best}")
    return "  ".join(words)


def _open(output: Path | None) -> Any:
    """Open the file for results; without one, they are discarded."""
    return (output or Path(os.devnull)).open("w")
