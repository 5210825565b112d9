"""The command of the fuzzers: `python test/fuzz KIND --count N --seed S --jobs J`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

TEST = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TEST), str(TEST / "support"), str(TEST.parent)]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a worker is one thread

from fuzz import minimise, runner  # noqa: E402

KINDS = ("layouts", "modules", "tiles", "placed_tiles", "bundles", "arrays", "templates")
_MOST_SHOWN = 20


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python test/fuzz", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int, default=1000, help="how many inputs (1000)")
    parser.add_argument("--seed", type=int, default=0, help="other inputs (0)")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (1)")
    parser.add_argument("--start", type=int, default=0, help="the first input's number (0)")
    parser.add_argument("--only", type=int, metavar="INPUT", help="this one input, and show it")
    parser.add_argument("--seconds", type=float, default=30.0, help="an input may take (30)")
    parser.add_argument("--megabytes", type=int, default=3072, help="an input may take (3072)")
    parser.add_argument("--save", type=Path, metavar="DIR", help="write failing inputs to DIR")
    parser.add_argument("--minimise", action="store_true", help="show a small part that fails")
    return parser.parse_args()


def main() -> int:
    """Run the command; return 1 if an input failed."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # workers end with the command
    fuzzer: runner.Fuzzer = import_module(f"fuzz.{options.kind}").FUZZER
    fuzzer.prepare()
    limits = runner.Limits(options.seconds, options.megabytes)
    indices = range(options.start, options.start + options.count)
    if options.only is not None:
        indices = range(options.only, options.only + 1)
        made = fuzzer.make(runner.random_of(fuzzer, options.seed, options.only))
        print(fuzzer.show(made))
    began = time.monotonic()
    report = runner.run(fuzzer, indices, options.seed, options.jobs, limits)
    taken = time.monotonic() - began
    summary = ", ".join(f"{count} {outcome}" for outcome, count in sorted(report.outcomes.items()))
    print(f"{options.kind}: {len(indices)} inputs in {taken:.1f} s: {summary}")
    for failure in report.failures[:_MOST_SHOWN]:
        _tell(fuzzer, failure, options, limits)
    if len(report.failures) > _MOST_SHOWN:
        print(f"and {len(report.failures) - _MOST_SHOWN} failures more")
    return 1 if report.failures else 0


def _tell(
    fuzzer: runner.Fuzzer,
    failure: runner.Failure,
    options: argparse.Namespace,
    limits: runner.Limits,
) -> None:
    """Print a failure, how to see it again, and the input."""
    print(f"\n== {failure.kind}: python test/fuzz {options.kind} --seed {options.seed}", end="")
    print(f" --only {failure.index}\n{failure.detail}")
    made = fuzzer.make(runner.random_of(fuzzer, options.seed, failure.index))
    if options.minimise:
        made = minimise.minimised(fuzzer, made, failure.kind, limits)
        print(fuzzer.show(made))
    if options.save is not None:
        options.save.mkdir(parents=True, exist_ok=True)
        name = f"{options.kind}-{options.seed}-{failure.index}-{failure.kind}.txt"
        (options.save / name).write_text(f"{fuzzer.show(made)}\n\n{failure.detail}\n")


if __name__ == "__main__":
    sys.exit(main())
