"""Marks slow tests: those that `test/slow_tests.txt` lists.

`pytest -m "not slow"` leaves them out. `pytest --update-slow-tests` measures all tests that it runs
and updates the list: a test function is slow if its cases together take `SLOW_SECONDS` of CPU time,
a lit file if its commands do. CPU time counts child processes, and does not depend on what else the
machine runs.
"""

from __future__ import annotations

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

os.environ["LEGO_MLIR_CACHE"] = "0"  # tests compile, and leave the user's cache alone
# Thousands of tests are objects that stay: looking for garbage as often as by default takes a
# twelfth of the time of tests that compile.
gc.set_threshold(10_000, 20, 20)

LIST = Path(__file__).with_name("slow_tests.txt")
SLOW_SECONDS = 0.2
SECONDS = "cpu_seconds"
"""The property of a report: the CPU seconds that the phase of the test took."""
LIT_SECONDS = "lit_cpu_seconds"
"""The property of a lit file's test, as one lit runs all files."""

_measured_until = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-slow-tests", action="store_true", help=f"update {LIST.name}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = set(LIST.read_text().split())
    for item in items:
        names = {nodeid(item), nodeid(item).partition("[")[0]}
        if names & slow:
            item.add_marker(pytest.mark.slow)


def nodeid(item: pytest.Item) -> str:
    """Return the id of a test relative to test/, whatever the root of the run is."""
    path = Path(os.path.relpath(item.path, LIST.parent)).as_posix()
    return "::".join([path, *item.nodeid.split("::")[1:]])


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its finished children."""
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    item.stash[_measured_until] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = cpu_seconds()
    spent = now - item.stash[_measured_until]
    item.stash[_measured_until] = now
    report.user_properties = [*report.user_properties, (SECONDS, spent)]
    return report


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if not config.getoption("--update-slow-tests"):
        return
    seconds: dict[str, float] = defaultdict(float)
    for report in (r for found in terminalreporter.stats.values() for r in found):
        if not isinstance(report, pytest.TestReport):
            continue
        name = report.nodeid.removeprefix("test/")
        properties = dict(report.user_properties)
        if "test_lit[" not in name:
            seconds[name.partition("[")[0]] += properties.get(SECONDS, 0.0)  # none: its worker died
        elif report.when == "call" and LIT_SECONDS in properties:
            seconds[name] = properties[LIT_SECONDS]
    kept = {line for line in LIST.read_text().split() if line not in seconds}
    slow = kept | {name for name, spent in seconds.items() if spent >= SLOW_SECONDS}
    LIST.write_text("".join(f"{name}\n" for name in sorted(slow) if is_there(name)))
    quick = sum(spent for name, spent in seconds.items() if name not in slow)
    terminalreporter.write_line(f"{LIST}: {len(slow)} slow tests; the others take {quick:.0f} s")


def is_there(name: str) -> bool:
    """Return whether the function of a listed test still exists."""
    path, *names = name.partition("[")[0].split("::")
    file = LIST.parent / path
    return file.exists() and f"def {names[-1]}(" in file.read_text()
