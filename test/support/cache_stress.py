"""Processes that read and write one cache at once, and are killed at random moments.

    python test/support/cache_stress.py --kills 200 --processes 8

Every entry that is found must be the one that was written, all entries must be there at the end,
and no file may be left that is no whole entry, but unfinished ones of killed processes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

from lego_mlir.cache.store import Store

KEYS = 24
BROKEN = 3
"""The exit status of a process that has read a wrong entry."""


def key_of(number: int) -> str:
    return sha256(b"%d" % number).hexdigest()


def payload_of(number: int) -> bytes:
    """Return what the entry of a number holds: of up to 400 kB, more than one write takes."""
    return random.Random(number).randbytes(1 << (4 + number % 15)) + b"%d" % number


def read_and_write(folder: Path, max_bytes: int, seed: int) -> None:
    """Read entries, write those that are missing and some that are not, until killed."""
    random_number = random.Random(seed)
    store = Store(folder, max_bytes)
    payloads = [payload_of(number) for number in range(KEYS)]
    while True:
        number = random_number.randrange(KEYS)
        found = store.get(key_of(number))
        if found not in (None, payloads[number]):
            os._exit(BROKEN)
        if found is None or random_number.random() < 0.5:
            store.put(key_of(number), payloads[number])


def start(folder: Path, max_bytes: int, seed: int) -> int:
    """Start a process and return its id."""
    child = os.fork()
    if child == 0:
        try:
            read_and_write(folder, max_bytes, seed)
        finally:
            os._exit(1)
    return child


def stress(folder: Path, *, kills: int, processes: int, max_bytes: int = 1 << 30) -> list[str]:
    """Let processes work on a cache, kill and replace one after the other, and return what broke.

    Args:
        folder: the cache's.
        kills: how many processes are killed by SIGKILL.
        processes: how many run at once.
        max_bytes: the limit of the cache; if it is too small for all entries, some may be missing.
    """
    moments = random.Random(kills)
    wrong: list[str] = []
    running = [start(folder, max_bytes, seed) for seed in range(processes)]
    for kill in range(kills + processes):
        time.sleep(moments.random() * 0.02)
        child = running.pop(moments.randrange(len(running)))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status != signal.SIGKILL:
            wrong.append(f"a process ended with status {status}: {BROKEN << 8} is a broken entry")
        if kill < kills:
            running.append(start(folder, max_bytes, processes + kill))
    return wrong + wrong_entries(folder, max_bytes)


def wrong_entries(folder: Path, max_bytes: int) -> list[str]:
    """Return what is wrong with the entries that the processes have left."""
    store = Store(folder, max_bytes)
    files = {path.parent.name + path.name for path in store.folder.glob("[0-9a-f][0-9a-f]/[!.]*")}
    keys = {key_of(number): number for number in range(KEYS)}
    wrong = [f"the file {name} is no entry" for name in files - keys.keys()]
    for key, number in keys.items():
        found = store.get(key)
        if found is None and (key in files or max_bytes >= 1 << 30):
            wrong.append(f"entry {number} is {'broken' if key in files else 'lost'}")
        elif found not in (None, payload_of(number)):
            wrong.append(f"entry {number} is another one")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    wrong = []
    for max_bytes in (1 << 30, 1 << 20):
        with tempfile.TemporaryDirectory() as folder:
            wrong += stress(
                Path(folder), kills=options.kills, processes=options.processes, max_bytes=max_bytes
            )
    for line in wrong:
        print(line)
    print(f"{options.kills} kills of {options.processes} processes, twice: {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
