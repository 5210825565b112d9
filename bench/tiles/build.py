"""`python -m bench tiles build`: compile the programs on tiles into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from bench.build import commit
from bench.tiles.cases import CASES
from lego_mlir.diagnostics import LegoError

MANIFEST = "tiles.json"


def build(folder: Path, only: Sequence[str], target: str) -> int:
    """Compile the selected programs; return the number that do not compile."""
    folder.mkdir(parents=True, exist_ok=True)
    found, failures = {}, 0
    for case in CASES:
        if only and not any(word in case.name for word in only):
            continue
        files = {}
        ways = [("ours", case.make, nullcontext)]
        ways += [(name, case.make, how) for name, how in case.variants.items()]
        ways += [(name, make, nullcontext) for name, make in case.programs.items()]
        for number, (name, make, how) in enumerate(ways):
            try:
                with how():
                    artifact = make().compile(case.target or target)
            except LegoError as e:
                failures += 1
                print(f"{case.name}, {name}: {e.render()}", flush=True)
                continue
            files[name] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
        found[case.name] = files
        print(case.name, ", ".join(files), flush=True)
    manifest = {"commit": commit(), "cases": found}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return failures
