"""`python -m bench moves build`: compile the cases into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bench.build import commit
from bench.moves.cases import cases
from lego_mlir.diagnostics import LegoError
from lego_mlir.files import write_whole

MANIFEST = "moves.json"


def build(folder: Path, only: Sequence[str], target: str, seed: int) -> int:
    """Compile the selected cases; return the number of kernels that do not compile.

    A kernel that is the same as our choice is compiled once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, str]] = {}
    failures = 0
    for case in cases(seed):
        if only and not any(word in case.name for word in only):
            continue
        files: dict[str, str] = {}
        texts: dict[str, str] = {}
        for number, (name, kernel) in enumerate(case.make().items()):
            try:
                artifact = kernel.compile(target)
            except LegoError as e:
                failures += 1
                print(f"{case.name}, {name}: {e.render()}", flush=True)
                continue
            text = artifact.ptx
            if text in texts:
                files[name] = texts[text]
                continue
            files[name] = texts[text] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
        found[case.name] = files
        print(case.name, ", ".join(files), flush=True)
    manifest = {"commit": commit(), "seed": seed, "cases": found}
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=1) + "\n").encode())
    return failures
