"""`python -m bench rows build`: compile the kernels on rows into a folder of artifacts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from bench.build import commit
from bench.rows.cases import CASES, RowsCase
from bench.rows.manifest import MANIFEST
from lego_mlir.diagnostics import LegoError

if TYPE_CHECKING:
    from lego_mlir.kernels import RowsConfig


def build(folder: Path, only: Sequence[str], target: str, *, sweep: bool) -> int:
    """Compile the selected kernels; return the number that do not compile.

    Args:
        folder: where artifacts go.
        only: parts of the names of cases; all by default.
        target: a GPU architecture.
        sweep: whether other configs than the heuristic's are compiled, too.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found, failures = {}, 0
    for case in CASES:
        if only and not any(word in case.name for word in only):
            continue
        files = {}
        configs = {"ours": None, **(dict(_configs(case)) if sweep else {})}
        for number, (name, config) in enumerate(configs.items()):
            try:
                artifact = case.make(config).compile(target)
            except LegoError as e:
                failures += config is None
                print(f"{case.name}, {name}: {e.message}", flush=True)
                continue
            files[name] = f"{case.name}-{number}.lego"
            artifact.save(folder / files[name])
        how = case.make().explain().splitlines()
        found[case.name] = {"files": files, "how": next(x for x in how if " warps (" in x)}
        print(case.name, ", ".join(files), found[case.name]["how"], flush=True)
    manifest = {"commit": commit(), "cases": found}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return failures


def _configs(case: RowsCase) -> Iterator[tuple[str, RowsConfig]]:
    """Yield the configs of a sweep: elements of a thread, and warps."""
    from lego_mlir.kernels import RowsConfig

    n, most = case.columns, 4 if case.dtype == "f32" else 8
    vector = gcd(n, most)
    sums = case.kernel in ("rmsnorm_backward", "layernorm_backward")
    for held in (8, 16, 32, 64):
        threads = 1 << (-(-n // held) - 1).bit_length()
        if not 4 <= threads <= 1024:
            continue
        for warps in (2, 4, 8, 16):
            rows = warps * 32 // threads
            if not 1 <= rows <= 32 or (rows > 1 and warps > 8):
                continue
            if sums:
                for ctas in (132, 264, 396, 528):
                    for ahead in (False, True):
                        name = f"{rows}x{warps}/{ctas}{' ahead' * ahead}"
                        yield name, RowsConfig(rows, warps, ctas=ctas, ahead=ahead)
                continue
            yield f"{rows}x{warps}", RowsConfig(rows, warps)
            for piece in (1, 2) if rows == 1 else ():
                config = RowsConfig(1, warps, piece * most // vector, vector, held=True)
                yield f"held {warps} {piece}", config
    for cluster in (2, 4, 8, 16) if n >= 16384 and not sums else ():
        yield f"cluster {cluster}", RowsConfig(1, 8, cluster=cluster)
    for warps in (4, 8, 16, 32) if n >= 8192 and not sums else ():
        for piece in (1, 2, 4):
            config = RowsConfig(1, warps, piece * most // vector, vector)
            yield f"read {warps} {piece}", config
